"""Indexing, entry by entry in Python loops; a masked index gives a masked entry."""

import itertools
from typing import Any

import torch

from ..helpers.harness import Masked
from .shape import moved


def masked(value: Any) -> Masked:
    """Plain tensors as valid everywhere."""
    return value if isinstance(value, Masked) else Masked(value, torch.ones(value.shape, dtype=torch.bool))


def every(shape: Any) -> Any:
    """All positions of a shape."""
    return itertools.product(*(range(n) for n in shape))


def gather(op: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Masked:
    x, index = masked(x), masked(index)
    if x.data.dim() == 0 and index.data.dim() == 1:
        x = Masked(x.data.reshape(1), x.mask.reshape(1))
    data, mask = torch.zeros(index.data.shape, dtype=x.data.dtype), torch.zeros(index.data.shape, dtype=torch.bool)
    for place in every(index.data.shape):
        if index.mask[place]:
            source = list(place)
            if source:
                source[dim] = int(index.data[place])
            data[place], mask[place] = x.data[tuple(source)], x.mask[tuple(source)]
    return Masked(data, mask)


def take(op: Any, x: Any, index: Any) -> Masked:
    x, index = masked(x), masked(index)
    flat = gather(
        op, Masked(x.data.reshape(-1), x.mask.reshape(-1)), 0, Masked(index.data.reshape(-1), index.mask.reshape(-1))
    )
    return Masked(flat.data.reshape(index.data.shape), flat.mask.reshape(index.data.shape))


def take_along_dim(op: Any, x: Any, index: Any, dim: int | None = None) -> Masked:
    x, index = masked(x), masked(index)
    if dim is None:
        return take(op, x, Masked(index.data.reshape(-1), index.mask.reshape(-1)))
    shape = list(
        torch.broadcast_shapes(
            *([n if d != dim % x.data.dim() else 1 for d, n in enumerate(v.data.shape)] for v in (x, index))
        )
    )
    outer, inner = list(shape), list(shape)
    outer[dim], inner[dim] = x.data.shape[dim], index.data.shape[dim]
    wide = Masked(x.data.expand(outer), x.mask.expand(outer))
    return gather(op, wide, dim, Masked(index.data.expand(inner), index.mask.expand(inner)))


def index_select(op: Any, x: Any, dim: int, index: Any) -> Masked:
    x, index = masked(x), masked(index)
    index = Masked(index.data.reshape(-1), index.mask.reshape(-1))
    if x.data.dim() == 0:
        return Masked(x.data, x.mask & index.mask[0])
    rows = [x.data.select(dim, int(i) if ok else 0) for i, ok in zip(index.data, index.mask, strict=True)]
    valid = [x.mask.select(dim, int(i) if ok else 0) & ok for i, ok in zip(index.data, index.mask, strict=True)]
    if not rows:
        return Masked(x.data.narrow(dim, 0, 0), x.mask.narrow(dim, 0, 0))
    return Masked(torch.stack(rows, dim), torch.stack(valid, dim))


def masked_select(op: Any, x: Any, where: Any) -> Masked:
    x, where = masked(x), masked(where)
    data, mask, where, ok = torch.broadcast_tensors(x.data, x.mask, where.data, where.mask)
    chosen = [place for place in every(data.shape) if where[place] and ok[place]]
    if not chosen:
        return Masked(data.new_empty(0), mask.new_empty(0))
    return Masked(torch.stack([data[p] for p in chosen]), torch.stack([mask[p] for p in chosen]))


def nonzero(op: Any, x: Any, as_tuple: bool = False) -> Any:
    x = masked(x)
    x = Masked(x.data.reshape(1), x.mask.reshape(1)) if as_tuple and x.data.dim() == 0 else x
    found = [place for place in every(x.data.shape) if x.mask[place] and x.data[place] != 0]
    result = torch.tensor(found, dtype=torch.int64).reshape(len(found), x.data.dim())
    return result.unbind(1) if as_tuple else result


def nonzero_static(op: Any, x: Any, *, size: int, fill_value: int = -1) -> torch.Tensor:
    found = nonzero(op, x)[:size]
    return torch.cat([found, torch.full((size - len(found), found.shape[1]), fill_value)])


def index_or(op: Any, x: Any, where: Any, indices: Any, fill: float) -> Masked:
    """Every entry of the samples' matrices is read through two keys, cut off to the range; the fill hides no mask."""
    x, where, keys = masked(x), masked(where), [masked(k) for k in indices]
    shape = torch.broadcast_shapes(*(k.data.shape for k in keys))
    data, mask = torch.full(shape, fill, dtype=x.data.dtype), where.mask.expand(shape).clone()
    for place in every(shape):
        source = named(x, keys, shape, place)
        mask[place] &= source is not None and bool(x.mask[source])
        if source is not None and where.data.expand(shape)[place]:
            data[place] = x.data[source]
    return Masked(data, mask)


def named(x: Masked, keys: list[Masked], shape: Any, place: Any) -> tuple[int, ...] | None:
    """The entry of ``x`` that the keys name at one place, None where a key is masked."""
    if not all(k.mask.expand(shape)[place] for k in keys):
        return None
    found = (int(k.data.expand(shape)[place]) for k in keys)
    return tuple(min(max(i, -n), n - 1) % n for i, n in zip(found, x.data.shape, strict=True))


ORACLES = {
    "gather": gather,
    "take": take,
    "take_along_dim": take_along_dim,
    "index_select": index_select,
    "masked_select": masked_select,
    "nonzero": nonzero,
    "argwhere": nonzero,
    "nonzero_static": nonzero_static,
    "__getitem__": moved,
    "_unsafe_masked_index": index_or,
}
XFAIL = {
    (name, "compiled"): "the length of the result depends on the data"
    for name in ("masked_select", "nonzero", "argwhere")
}
