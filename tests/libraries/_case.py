"""A case: how a class is made, what it is given, and what is expected of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

import masked_tensor as mt

from ..models.judge import padded

load = import_module  #: a case names its class by this, so that its file can be read without the package
LENGTHS = (12, 7, 10)


drawing = SimpleNamespace(seed=0)  #: of what weights and data are drawn


@dataclass(frozen=True)
class Input:
    """One argument: the shape of a row, in which None is what differs in length, and what it is filled with."""

    shape: tuple[int | None, ...]
    kind: str = "normal"
    size: int = 0

    def rows(self, lengths: tuple[int, ...], generator: torch.Generator) -> list[Tensor]:
        """A row for each length, each of them a batch of one."""
        shapes = [tuple(n if m is None else m for m in self.shape) for n in lengths]
        return [self._drawn((1, *shape), generator) for shape in shapes]

    def _drawn(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        if self.kind == "integers":
            return torch.randint(self.size, shape, generator=generator)
        if self.kind == "unit":
            return 0.1 + 0.8 * torch.rand(shape, generator=generator, dtype=torch.float64)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    @property
    def garbage(self) -> float:
        """What lies under the mask."""
        return -100 if self.kind == "integers" else torch.nan


def integers(size: int, *shape: int | None) -> Input:
    """Random integers from 0 on."""
    return Input(shape, "integers", size)


def unit(*shape: int | None) -> Input:
    """Random numbers from 0.1 to 0.9."""
    return Input(shape, "unit")


def plain(given: Input) -> Input:
    """The same, plain in the masked batch, too."""
    return replace(given, kind="plain " + given.kind)


LENGTH = Input((), "length")  #: the lengths themselves, as integers


@dataclass(frozen=True)
class Given:
    """What a model is called with: rows alone, and the masked batch; ``kept`` are the rows that are not masked."""

    rows: list[tuple[Any, ...]]
    batch: tuple[Any, ...]
    kept: Tensor | None = None


def ragged(*inputs: Any, lengths: tuple[int, ...] = LENGTHS) -> Callable[[], Given]:
    """A padded batch of rows of different length; each row alone is what it is compared with."""

    def given() -> Given:
        generator = torch.Generator().manual_seed(drawing.seed)
        columns, batch = [], []
        for one in map(_input, inputs):
            if one.kind == "length":
                columns.append([torch.tensor([n]) for n in lengths])
                batch.append(torch.tensor(lengths))
                continue
            is_plain, one = one.kind.startswith("plain "), replace(one, kind=one.kind.removeprefix("plain "))
            rows = one.rows(lengths, generator)
            columns.append(rows)
            dim = one.shape.index(None) + 1 if None in one.shape else 0
            batch.append(_padded(rows, one.garbage, dim, is_plain))
        return Given(list(zip(*columns, strict=True)), tuple(batch))

    return given


@dataclass(frozen=True)
class Beside:
    """A batch of which some rows are masked altogether; the batch without them is what it is compared with."""

    inputs: tuple[Input, ...]
    number: int
    masked: tuple[int, ...]

    def __call__(self) -> Given:
        """The rows that are kept, and the batch."""
        generator = torch.Generator().manual_seed(drawing.seed)
        kept = torch.tensor([i for i in range(self.number) if i not in self.masked])
        alone, batch = [], []
        for one in self.inputs:
            is_plain, one = one.kind.startswith("plain "), replace(one, kind=one.kind.removeprefix("plain "))
            x = torch.cat(one.rows((0,) * self.number, generator))
            alone.append(x[kept])
            mask = torch.zeros(self.number, dtype=torch.bool).index_fill(0, kept, True)
            mask = mask.view(-1, *[1] * (x.dim() - 1)).expand(x.shape)
            batch.append(x if is_plain else mt.as_masked_tensor(x.masked_fill(~mask, one.garbage), mask))
        return Given([tuple(alone)], tuple(batch), kept)

    def side(self, masked: int) -> "Beside":
        """The same with one input masked alone."""
        inputs = (one if i == masked or "plain" in one.kind else plain(one) for i, one in enumerate(self.inputs))
        return replace(self, inputs=tuple(inputs))

    def padded(self) -> Callable[[], Given] | None:
        """All rows cut to one length, with padding behind it, along a dimension that all inputs share; or None."""
        shapes = [one.shape for one in self.inputs]
        dim = next((d for d in (-1, 0) if all(shapes) and len({s[d] for s in shapes}) == 1 and shapes[0][d] > 2), None)
        return None if dim is None else lambda: self._cropped(dim)

    def _cropped(self, dim: int) -> Given:
        whole, last = replace(self, masked=())().rows[0], dim if dim < 0 else dim + 1
        size = whole[0].shape[last]
        length, batch = (2 * size + 2) // 3, []
        for x, one in zip(whole, self.inputs, strict=True):
            mask = (torch.arange(size) < length).view(-1, *[1] * (x.dim() - 1)).transpose(0, last).expand(x.shape)
            batch.append(mt.as_masked_tensor(x.masked_fill(~mask, one.garbage), mask))
        rows = tuple(x.narrow(last, 0, length) for x in whole)
        return Given([rows], tuple(batch), torch.arange(self.number))

    @property
    def sides(self) -> list[int]:
        """The inputs that are masked."""
        return [i for i, one in enumerate(self.inputs) if "plain" not in one.kind]


def beside(*inputs: Any, rows: int = 4, masked: tuple[int, ...] = (1,)) -> Beside:
    """A batch of ``rows`` of which some are masked altogether."""
    return Beside(tuple(map(_input, inputs)), rows, masked)


@dataclass(frozen=True)
class Images:
    """Images of which one is masked altogether; ``--images`` does more with a class that is given them."""

    image: Input
    others: tuple[Input, ...] = ()

    def __call__(self) -> Given:
        """The second of three is masked."""
        return beside(self.image, *self.others, rows=3)()

    def drawn(self, rows: int = 3) -> list[Tensor]:
        """Images, and what else the class is given with each of them."""
        generator = torch.Generator().manual_seed(drawing.seed)
        given = [replace(one, kind=one.kind.removeprefix("plain ")) for one in (self.image, *self.others)]
        return [torch.cat(one.rows((0,) * rows, generator)) for one in given]


def images(*shape: int, others: tuple[Input, ...] = (), kind: str = "normal") -> Images:
    """Random images."""
    return Images(Input(shape, kind), others)


def _input(given: Any) -> Input:
    return given if isinstance(given, Input) else Input(given)


def _padded(rows: list[Tensor], garbage: float, dim: int, is_plain: bool) -> Tensor:
    if not dim:
        joined = torch.cat(rows)
        return joined if is_plain else mt.as_masked_tensor(joined, torch.ones(joined.shape, dtype=torch.bool))
    made = padded(rows, garbage, dim)
    return made.filled(0) if is_plain else made


def call(model: Any, *given: Any) -> Any:
    """The usual call."""
    return model(*given)


def kept(model: Any, *given: Any) -> Any:
    """A call with the rows that are valid in all that is given."""
    masks = [x.get_mask().flatten(1).all(1) if x.dim() > 1 else x.get_mask() for x in given if mt.is_masked_tensor(x)]
    rows = torch.stack(masks).all(0) if masks else slice(None)
    return model(*(mt.filled(x, 0)[rows] for x in given))


@dataclass(frozen=True)
class Case:
    """A class or function, and what a masked batch gives.

    ``outcome`` is ``exact`` (with the context that ``within`` names, if any), ``refused`` (an error) or ``declared``
    (another result); for the last two ``note`` says why, and what to write instead.
    """

    name: str
    make: Callable[[], Any]
    given: Callable[[], Given]
    outcome: str = "exact"
    note: str = ""
    within: str = ""
    call: Callable[..., Any] = call
    train: bool = False


def first(found: Any) -> Tensor:
    """The first floating tensor of what a model gave."""
    return next(y for y in _tensors(found) if y.is_floating_point())


def _tensors(found: Any) -> Iterator[Tensor]:
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, dict):
        yield from _tensors(list(found.values()))
    elif isinstance(found, tuple | list):
        for y in found:
            yield from _tensors(y)
