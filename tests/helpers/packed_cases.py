"""From a plain sample to the same call on padded and on packed tensors, and the law that both keep.

The law: a call on packed tensors gives what it gives on strided ones: values, validity, dtype, whether it is tracked,
every gradient; and where the one raises, the other raises the same.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.engine.boundary import packed as packed_boundary
from masked_tensor.engine.tensor import pair_of
from masked_tensor.masks import sides
from masked_tensor.op import Op

from ..laws import plain_runs
from . import harness
from .backward import differentiate
from .database import Sample
from .forced import forced
from .harness import Masked, differentiable, is_record, poisoned
from .trees import tree_leaves, tree_map

# what the mask is like, how many of the tensors are packed, and which dimensions are the grid
KINDS = (
    ("prefix", "first", (0, 1)),
    ("rows", "all", (0, 1)),
    ("scattered", "all", (0, 1)),
    ("gaps", "all", (0, 1)),  # packed with its lengths: steps that are missing, or masked in part; an empty sequence
)
MORE = (
    ("nothing", "all", (0, 1)),
    ("missing", "all", (0, 1)),  # as gaps, of steps that are valid as a whole or not at all
    ("gaps", "first", (0, 2)),
    ("left", "all", (0, 1)),  # as gaps, padded on the left
    ("scattered", "first", (0, 1)),
    ("apart", "all", (0, 1)),  # each tensor has rows of its own
    ("prefix", "all", (0, 2)),
    ("rows", "first", (0, 2)),
)
_ERRORS = (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError)


@dataclass(frozen=True)
class Grid(Masked):
    """A masked value that is packed over these two dimensions, perhaps with its lengths."""

    dims: tuple[int, int]
    lengths: list[int] | None
    side: str


def fits(value: Any, dims: tuple[int, int]) -> bool:
    """Whether it is a tensor that can be packed over ``dims``."""
    return (
        isinstance(value, Tensor)
        and value.layout is torch.strided
        and value.dim() > max(dims)
        and value.numel() > 0
        and not value.is_quantized
    )


def widened(sample: Sample) -> Sample:
    """The sample with a batch and a time before the dimensions of each tensor, of the same values in another order."""
    generator = torch.Generator().manual_seed(0)

    def wide(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.layout is not torch.strided:
            return x
        values = x.detach().expand(3, 4, *x.shape).reshape(-1)
        return values[torch.randperm(values.numel(), generator=generator)].view(3, 4, *x.shape)

    args, kwargs = tree_map(wide, (sample.args, sample.kwargs))
    return Sample(sample.op, args, kwargs)


def chosen(samples: list[Sample], limit: int) -> list[Sample]:
    """Those with the most to pack: first of the most dimensions; where there is nothing to pack, widened ones."""

    def size(sample: Sample) -> tuple[int, int]:
        found = [x for x in tree_leaves((sample.args, sample.kwargs)) if fits(x, (0, 1))]
        return -min(3, max((x.dim() for x in found), default=0)), -len(found)

    def mixed(sample: Sample) -> bool:  # indices, which would no longer fit
        leaves = [x for x in tree_leaves((sample.args, sample.kwargs)) if isinstance(x, Tensor)]
        return len({differentiable(x) for x in leaves}) > 1

    good = sorted((s for s in samples if size(s) < (0, 0)), key=size)[: 4 * limit]
    good = [s for s in good if plain_runs(s)]
    if not any(size(s) <= (-3, 0) for s in good):
        good = [*filter(plain_runs, map(widened, [s for s in samples if not mixed(s)][: 2 * limit])), *good]
    return good[:limit]


def ragged(shape: torch.Size, kind: str, dims: tuple[int, int]) -> tuple[Tensor, list[int]]:
    """Sequences with gaps, also at their ends, and their lengths; one of them is empty if there are several."""
    batch, time = (shape[d] for d in dims)
    generator = torch.Generator().manual_seed(batch * 31 + time)
    lengths = torch.randint(1, time + 1, (batch,), generator=generator)
    lengths[1:2] = 0
    steps = torch.arange(time) < lengths[:, None]
    steps = (steps.flip(1) if kind == "left" else steps) & (torch.rand(batch, time, generator=generator) < 0.7)
    wide = steps.reshape([shape[d] if d in dims else 1 for d in range(len(shape))]).expand(shape)
    parts = torch.rand(shape, generator=generator) < 0.7
    return wide if kind == "missing" else wide & parts, lengths.tolist()


def grid_mask(shape: torch.Size, kind: str, dims: tuple[int, int], number: int) -> Tensor:
    """Valid places of a grid of that size: one for all tensors of a call, but for the kind ``apart``."""
    batch, time = (shape[d] for d in dims)
    generator = torch.Generator().manual_seed(batch * 31 + time + (1000 * number if kind == "apart" else 0))
    if kind == "prefix":
        grid = torch.arange(time) < torch.randint(0, time + 1, (batch,), generator=generator)[:, None]
    else:
        grid = (torch.rand(batch, time, generator=generator) < 0.6) & (kind != "nothing")
    wide = grid.reshape([shape[d] if d in dims else 1 for d in range(len(shape))]).expand(shape)
    return wide & (torch.rand(shape, generator=generator) < 0.7) if kind == "scattered" else wide


def packed_case(sample: Sample, kind: str, which: str, dims: tuple[int, int]) -> Sample | None:
    """The sample with what can be packed as ``Grid`` records; None if nothing can."""
    made: list[Grid] = []

    def one(value: Any) -> Any:
        if not fits(value, dims) or (which == "first" and made):
            return value
        side = "left" if kind == "left" else "right"
        if kind in ("gaps", "missing", "left"):
            mask, lengths = ragged(value.shape, kind, dims)
            made.append(Grid(value.detach(), mask, dims, lengths, side))
        else:
            made.append(Grid(value.detach(), grid_mask(value.shape, kind, dims, len(made)), dims, None, side))
        return made[-1]

    args, kwargs = tree_map(one, (sample.args, sample.kwargs))
    return Sample(sample.op, args, kwargs) if made else None


def build(case: Sample, packed: bool, backward: bool) -> tuple[Any, Any]:
    """The arguments, with NaN under the masks; with ``backward``, leaves that require grad."""

    def make(value: Any) -> Any:
        if not isinstance(value, Tensor | Grid):
            return value
        if isinstance(value, Tensor):
            new = value.detach().clone()
        else:
            new = mt.as_masked_tensor(poisoned(value.data.clone(), value.mask, float("nan")), value.mask)
            if packed and value.lengths is None:
                new = forced(new, value.dims)
            elif packed:
                new = new.packed(value.dims, lengths=value.lengths, padding_side=value.side)
            elif value.side == "left":  # the packed one is told, too
                sides.note_left(pair_of(new).mask, value.dims[1])
        return new.requires_grad_() if backward and differentiable(new) else new

    built: tuple[Any, Any] = tree_map(make, (case.args, case.kwargs), is_leaf=is_record)
    return built


def outcome(case: Sample, packed: bool, backward: bool) -> tuple[Any, list[Any]]:
    """The results, or the error; and the gradients of a weighted sum of all that is tracked."""
    args, kwargs = build(case, packed, backward)
    torch.manual_seed(1)
    try:
        found = tree_leaves(case.op(*args, **kwargs))
    except _ERRORS as error:
        return error, []
    inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    for x in (*found, *inputs):
        harness.assert_keeps_promise(x)
    wanted = [x for x in inputs if x.requires_grad]
    tracked = [o for o in found if isinstance(o, Tensor) and o.requires_grad and not any(o is x for x in inputs)]
    if not (backward and tracked and wanted):
        return found, []
    generator = torch.Generator().manual_seed(3)
    seeds = [torch.rand(o.shape, generator=generator, dtype=torch.float64).to(o.dtype) for o in tracked]
    gradients = list(differentiate(tracked, wanted, seeds, allow_unused=True))
    for x, g in zip(wanted, gradients, strict=True):
        assert g is None or type(g) is type(x), f"the gradient of a {type(x).__name__} is a {type(g).__name__}"
        if type(g) is MaskedTensor:
            assert g.is_packed == x.is_packed, "the gradient of a packed tensor is not packed"
            hidden = harness.seen(g).data[~harness.seen(x).mask]
            assert not (hidden != 0).any(), "the gradient at a masked-out position is not 0"
    return found, gradients


def check(case: Sample, counts: Counter[str], drawn: bool = False) -> None:
    """Raises AssertionError if the law is broken; ``counts`` says how often it was kept and how.

    Of results that are ``drawn`` at random only the validity is compared: what is stored is drawn in another order.
    """
    backward = harness.plain_has_gradient(case) and not drawn
    expected, slopes = outcome(case, False, backward)
    actual, packed_slopes = outcome(case, True, backward)
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        assert type(actual) is type(expected), f"packed: {actual!r}, strided: {expected!r}"
        counts["both raise"] += 1
        return
    assert len(actual) == len(expected), f"{len(actual)} results, not {len(expected)}"
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        _same(a, e, f"result {i}", values=not drawn)
    counts["equal"] += 1
    ragged = next((x for x in tree_leaves((case.args, case.kwargs), is_leaf=is_record) if isinstance(x, Grid)), None)
    if ragged is not None and ragged.lengths is not None:
        counts["with gaps"] += 1
        counts["with gaps, stayed packed"] += any(type(a) is MaskedTensor and a.is_packed for a in actual)
    counts["stayed packed"] += any(type(a) is MaskedTensor and a.is_packed for a in actual)
    assert len(packed_slopes) == len(slopes), "no gradient comes back"
    for i, (a, e) in enumerate(zip(packed_slopes, slopes, strict=True)):
        if a is not None and e is not None:
            harness.assert_same(a, e, f"gradient {i}")
            continue
        given = harness.seen(e if a is None else a)
        assert given is None or not given.data[given.mask].any(), f"gradient {i} is {a}, not {e}"
    counts["gradients"] += bool(slopes)


def second_derivatives(case: Sample, packed: bool) -> list[Any] | Exception | None:
    """The gradients of a function of the gradients, in which the inputs stand, too; None without gradients.

    The function is ``sum(g ** 2 + g * x)`` of each gradient and its input, so that an input from which only the
    derivative of the gradient is cut off still gets a number, a wrong one.
    """
    args, kwargs = build(case, packed, True)
    inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    wanted = [x for x in inputs if x.requires_grad]
    torch.manual_seed(1)
    try:
        found = tree_leaves(case.op(*args, **kwargs))
        tracked = [o for o in found if isinstance(o, Tensor) and o.requires_grad and not any(o is x for x in inputs)]
        if not (tracked and wanted):
            return None
        seeds = [torch.linspace(0.5, 1.5, o.numel(), dtype=o.dtype).reshape(o.shape) for o in tracked]
        gradients = differentiate(tracked, wanted, seeds, allow_unused=True, create_graph=True)
        pairs = [(g, x) for g, x in zip(gradients, wanted, strict=True) if g is not None]
        total = sum((g.to(x.dtype) * (g + x)).sum() for g, x in pairs)
        return list(differentiate(total, wanted, allow_unused=True))
    except _ERRORS as error:
        return error


def twice(case: Sample) -> bool:
    """Whether there is a second derivative to ask for: real floating point, and torch has a first one."""
    leaves = [getattr(x, "data", x) for x in tree_leaves((case.args, case.kwargs), is_leaf=is_record)]
    given = [x for x in leaves if isinstance(x, Tensor)]
    real = any(x.is_floating_point() for x in given) and not any(x.is_complex() for x in given)
    return real and harness.plain_has_gradient(case)


def check_second_derivatives(case: Sample, counts: Counter[str]) -> None:
    """Those of packed tensors are those of strided ones, whose attention is computed by torch's formula."""
    with sdpa_kernel(SDPBackend.MATH):
        expected = second_derivatives(case, False)
    actual = second_derivatives(case, True)
    if isinstance(expected, Exception):  # torch has none; then none may be given in silence
        counts["strided raises"] += 1
        assert not isinstance(actual, list), f"strided: {expected!r}, packed: {actual}"
        return
    if isinstance(actual, Exception):  # where there is no form, torch's own kernel raises unless told not to run
        plainly = second_derivatives(case, False)
        assert isinstance(plainly, Exception), f"packed: {actual!r}"
        assert str(plainly) == str(actual)
        counts["both raise"] += 1
        return
    if expected is None or actual is None:
        assert actual is expected, f"packed: {actual}, strided: {expected}"
        counts["no gradient"] += 1
        return
    counts["second derivatives"] += 1
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        assert (a is None) is (e is None), f"second derivative {i}: {a}, not {e}"
        if e is not None:
            harness.assert_same(a, e, f"second derivative {i}")


def _same(actual: Any, expected: Any, what: str, values: bool) -> None:
    if isinstance(expected, Tensor):
        assert type(actual) is type(expected), f"{what} is a {type(actual).__name__}, not a {type(expected).__name__}"
        assert actual.requires_grad == expected.requires_grad, f"{what}: tracked {actual.requires_grad}"
    a, e = harness.seen(actual), harness.seen(expected)
    if isinstance(e, Masked) and isinstance(a, Masked) and not values:
        assert a.data.dtype == e.data.dtype, what
        a, e = Masked(a.mask, a.mask), Masked(e.mask, e.mask)
    harness.assert_same(a, e, what)


@contextmanager
def forms_taken() -> Iterator[Counter[Op]]:
    """Counts, while it lasts, the rows of the table whose form for packed tensors served a call."""
    taken: Counter[Op] = Counter()
    ask = packed_boundary.run_packed_rule

    def counted(entry: Any, *args: Any) -> Any:
        result = ask(entry, *args)  # raises NoForm where there is none
        taken[entry.op] += 1
        return result

    packed_boundary.run_packed_rule = counted
    try:
        yield taken
    finally:
        packed_boundary.run_packed_rule = ask
