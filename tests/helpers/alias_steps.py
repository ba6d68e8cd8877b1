"""The steps of random aliasing programs: on a masked tensor, and on two plain tensors that really alias.

The plain tensors are data and validity, of one geometry; whatever is a view of one is the same view of the other.  A
plain step runs first: where torch itself refuses it, there is no step.
"""

import copy
import io
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor

GARBAGE = (float("nan"), float("inf"), 1e30, None)


@dataclass(eq=False)
class Trio:
    """A masked tensor, and what it should be: plain data with its validity beside it."""

    x: Any
    data: Tensor
    mask: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    def each(self, step: Callable[[Any], Any], plain: Callable[[Any], Any] | None = None) -> "Trio | None":
        """The same view of all three, if torch takes it of a plain tensor."""
        plain = plain or step
        try:
            data, mask = plain(self.data), plain(self.mask)
        except (RuntimeError, IndexError, ValueError):
            return None
        return Trio(step(self.x), data, mask)


def drawn(rng: random.Random, shape: tuple[int, ...], *, kind: str | None = None, requires_grad: bool = False) -> Trio:
    """A new value; under its mask anything may lie.  The plain data is 0 there, so that nothing comes of it."""
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    data = torch.randint(-9, 10, shape, generator=generator).double()
    kind = kind or rng.choice(["scattered", "rows", "prefix", "all"])
    if kind == "prefix" and len(shape) > 1:
        lengths = torch.randint(0, shape[1] + 1, shape[:1], generator=generator)
        small = (torch.arange(shape[1]) < lengths[:, None]).reshape(*shape[:2], *(1,) * (len(shape) - 2))
    elif kind == "all":
        small = torch.ones(shape, dtype=torch.bool)
    else:
        short = tuple(1 if kind == "rows" and d > 1 else n for d, n in enumerate(shape))
        small = torch.rand(short, generator=generator) < 0.6
    mask = small.expand(shape)
    garbage = rng.choice(GARBAGE)
    data = torch.where(mask, data, 0)
    x = mt.masked_tensor(data, mask) if garbage is None else mt.as_masked_tensor(data.where(mask, garbage), mask)
    return Trio(x.requires_grad_(requires_grad), data.requires_grad_(requires_grad), mask.clone())


# ------------------------------------------------------------------------------------------------------------- views


def _dim(rng: random.Random, t: Trio) -> int:
    return rng.randrange(-len(t.shape), len(t.shape))


def key_of(rng: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Slices, integers, new axes; often at the end, where the features are."""
    first = rng.randint(0, len(shape))
    key: list[Any] = []
    for size in shape[first:]:
        kind = rng.random()
        if kind < 0.45 and size:
            key.append(rng.randrange(-size, size))
        elif kind < 0.5:
            key += [None, slice(None)]
        elif kind < 0.7:
            key.append(slice(None))
        else:
            start, stop = sorted((rng.randint(0, size), rng.randint(0, size)))
            key.append(slice(start, stop, rng.choice([None, 2])))
    return (..., *key) if first else (*key, ...)


def by_key(rng: random.Random, t: Trio) -> Trio | None:
    key = key_of(rng, t.shape)
    return t.each(lambda x: x[key])


def permuted(rng: random.Random, t: Trio) -> Trio | None:
    order = list(range(len(t.shape)))
    rng.shuffle(order)
    return t.each(lambda x: x.permute(order))


def transposed(rng: random.Random, t: Trio) -> Trio | None:
    if len(t.shape) < 2:
        return None
    a, b = _dim(rng, t), _dim(rng, t)
    return t.each(lambda x: x.transpose(a, b))


def squeezed(rng: random.Random, t: Trio) -> Trio | None:
    a = rng.randint(0, len(t.shape))
    if rng.random() < 0.5 and 1 in t.shape:
        return t.each(lambda x: x.squeeze(t.shape.index(1)))
    return t.each(lambda x: x.unsqueeze(a))


def cut(rng: random.Random, t: Trio) -> Trio | None:
    """One of several; the plain one is taken by itself, since torch takes no tracked write into one of several."""
    if not t.shape or not t.shape[dim := _dim(rng, t)]:
        return None
    n, kind = t.shape[dim], rng.randrange(3)
    if kind == 0:
        k = rng.randrange(n)
        return t.each(lambda x: x.unbind(dim)[k], lambda x: x.select(dim, k))
    if kind == 1:
        size = -(-n // 2)
        last = -(-n // size) - 1
        return t.each(lambda x: x.chunk(2, dim)[-1], lambda x: x.narrow(dim, last * size, n - last * size))
    k = rng.randint(1, n)
    return t.each(lambda x: x.split(k, dim)[0], lambda x: x.narrow(dim, 0, k))


def selected(rng: random.Random, t: Trio) -> Trio | None:
    if not t.shape or not t.shape[dim := _dim(rng, t)]:
        return None
    k, kind = rng.randrange(t.shape[dim]), rng.random()
    if kind < 0.5:
        return t.each(lambda x: x.select(dim, k))
    return t.each(lambda x: x.narrow(dim, k, t.shape[dim] - k))


def diagonal(rng: random.Random, t: Trio) -> Trio | None:
    if len(t.shape) < 2:
        return None
    a, b = rng.sample(range(len(t.shape)), 2)
    return t.each(lambda x: x.diagonal(0, a, b))


def shapes_of(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Another shape of as many elements: dimensions joined, cut, or both."""
    n, result = max(1, torch.Size(shape).numel()), []
    while n > 1:
        factors = [f for f in range(2, n + 1) if n % f == 0]
        result.append(rng.choice(factors))
        n //= result[-1]
    if rng.random() < 0.3:
        result.insert(rng.randint(0, len(result)), 1)
    return tuple(result)


def viewed(rng: random.Random, t: Trio) -> Trio | None:
    if 0 in t.shape:
        return None
    kind, last = rng.random(), len(t.shape) - 1
    if kind < 0.2:
        return t.each(lambda x: x.view_as(x))
    if kind < 0.5 and last >= 0 and t.shape[-1] % 2 == 0:  # heads
        return t.each(lambda x: x.view(*t.shape[:-1], 2, t.shape[-1] // 2))
    if kind < 0.7:
        return t.each(lambda x: x.view(-1))
    shape = shapes_of(rng, t.shape)
    return t.each(lambda x: x.view(shape))


def reshaped(rng: random.Random, t: Trio) -> Trio | None:
    """A view or a copy, as memory allows."""
    if 0 in t.shape or t.data.stride() != t.mask.stride() or not _of_contiguous(t):
        return None
    kind, shape = rng.random(), shapes_of(rng, t.shape)
    if kind < 0.3:
        return t.each(lambda x: x.contiguous())
    if kind < 0.6:
        return t.each(lambda x: x.flatten())
    return t.each(lambda x: x.reshape(shape))


def _of_contiguous(t: Trio) -> bool:
    """Whether the memory of ``t`` is laid out as that of a packed tensor would be, where this is a question."""
    return getattr(t.x, "_packed", None) is None or (t.data if t.data._base is None else t.data._base).is_contiguous()


def expanded(rng: random.Random, t: Trio) -> Trio | None:
    return t.each(lambda x: x.expand(2, *t.shape))


def detached(rng: random.Random, t: Trio) -> Trio | None:
    return t.each(lambda x: x.detach())


VIEWS = (
    *(by_key, by_key, by_key, permuted, transposed, squeezed, cut, selected, selected),
    *(diagonal, viewed, viewed, reshaped, expanded, detached),
)

# -------------------------------------------------------------------------------------------------------- new values


def doubled(rng: random.Random, t: Trio) -> Trio | None:
    return Trio(t.x * 2, t.data * 2, t.mask.clone())


def squared(rng: random.Random, t: Trio) -> Trio | None:
    return Trio(t.x * t.x, t.data * t.data, t.mask.clone())


def cloned(rng: random.Random, t: Trio) -> Trio | None:
    return Trio(t.x.clone(), t.data.clone(), t.mask.clone())


def stacked(rng: random.Random, t: Trio) -> Trio | None:
    return t.each(lambda x: torch.stack([x, x], -1))


VALUES = (doubled, squared, cloned, stacked)

# ------------------------------------------------------------------------------------------------------------ writes

Leaves = list[Trio]


def written(rng: random.Random, t: Trio, leaves: Leaves, tracked: bool) -> str | None:
    """Writes into ``t``, or says nothing was written because torch refuses it."""
    if any(n > 1 and stride == 0 for n, stride in zip(t.shape, t.data.stride(), strict=True)):
        return None  # what is written twice
    kind = rng.choice(WRITES)
    key = key_of(rng, t.shape) if rng.random() < 0.7 else (...,)
    source = drawn(rng, tuple(t.data[key].shape), requires_grad=tracked and rng.random() < 0.7)
    where = torch.rand(t.shape, generator=torch.Generator().manual_seed(rng.randrange(2**31))) < 0.4
    with torch.set_grad_enabled(rng.random() < 0.8):
        try:
            kind(t.data, key, source.data, where)
        except RuntimeError:
            return None
        with torch.no_grad():
            MEANINGS[kind](t.mask, key, source.mask, where)
        kind(t.x, key, source.x, where)
    if source.data.requires_grad:
        leaves.append(source)
    return kind.__name__


def assign_number(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x[key] = 5.0


def assign_tensor(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x[key] = source * 3


def copy_into(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x[key].copy_(source)


def times_item(x: Any, key: Any, source: Any, where: Tensor) -> None:
    if type(x) is MaskedTensor:
        x[key] *= source
    else:  # torch may refuse the assignment, when the product is already written
        x[key].mul_(source)


def times_number(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x[key].mul_(3)


def plus_item(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x[key].add_(source)


def whole_times(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x.mul_(2)


def whole_fill(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x.fill_(4)


def whole_zero(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x[key].zero_()


def fill_where(x: Any, key: Any, source: Any, where: Tensor) -> None:
    x.masked_fill_(where, 6.0)


def assign_where(x: Any, key: Any, source: Any, where: Tensor) -> None:
    if where.dim():
        x[where] = 7.0


def _valid(m: Tensor, key: Any, source: Tensor, where: Tensor) -> None:
    m[key] = True


def _theirs(m: Tensor, key: Any, source: Tensor, where: Tensor) -> None:
    m[key] = source


def _both(m: Tensor, key: Any, source: Tensor, where: Tensor) -> None:
    m[key] &= source


def _kept(m: Tensor, key: Any, source: Tensor, where: Tensor) -> None:
    pass


def _chosen(m: Tensor, key: Any, source: Tensor, where: Tensor) -> None:
    if where.dim():
        m[where] = True


MEANINGS: dict[Callable[..., None], Callable[..., None]] = {
    assign_number: _valid,
    assign_tensor: _theirs,
    copy_into: _theirs,
    times_item: _both,
    times_number: _kept,
    plus_item: _both,
    whole_times: _kept,
    whole_fill: _kept,
    whole_zero: _kept,
    fill_where: _kept,
    assign_where: _chosen,
}
WRITES = tuple(MEANINGS)

# ------------------------------------------------------------------------------------------------------------ copies


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def _saved(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


COPIES: tuple[Callable[[Any], Any], ...] = (copy.deepcopy, copy.deepcopy, _pickled, _saved)


def copied(rng: random.Random, pool: list[Trio]) -> tuple[list[Trio], str]:
    """Several tensors copied at once: what shared memory shares it again, where torch's own tensors do."""
    chosen = rng.sample(pool, min(len(pool), rng.randint(1, 4)))
    how = rng.choice(COPIES)
    copies = [how(_leaves([getattr(t, name) for t in chosen])) for name in ("x", "data", "mask")]
    return [Trio(*parts) for parts in zip(*copies, strict=True)], how.__name__


def _leaves(tensors: list[Any]) -> list[Any]:
    """Each outside of its graph; what is one object stays one, since a plain pickle knows shared memory by that."""
    made = {id(v): v if v.is_leaf else v.detach() for v in tensors}
    return [made[id(v)] for v in tensors]


def differs(t: Trio) -> bool:
    """Whether a masked tensor is not what its plain data and validity say."""
    if type(t.x) is not MaskedTensor or tuple(t.x.shape) != t.shape:
        return True
    mask = t.x.get_mask()
    same = torch.equal(t.x.detach().filled(0.0), torch.where(t.mask, t.data.detach(), 0))
    return not (torch.equal(mask, t.mask) and same)
