"""Assignment and scattered accumulation, entry by entry in Python loops."""

import math
from collections.abc import Callable
from typing import Any

import torch

from ..helpers.harness import Masked
from .index import every, masked, named
from .shape import moved

Cell = tuple[int, ...]
REDUCE: dict[str, Callable[[list[Any]], Any]] = {
    "sum": lambda v: sum(v[1:], v[0]),
    "add": lambda v: sum(v[1:], v[0]),
    "prod": math.prod,
    "multiply": math.prod,
    "mean": lambda v: sum(v[1:], v[0]) / len(v),
    "amax": lambda v: torch.stack(v).amax(),
    "amin": lambda v: torch.stack(v).amin(),
}


def assigned(x: Masked, writes: list[tuple[Cell, torch.Tensor, torch.Tensor]]) -> Masked:
    """Each write (place, value, validity) in order."""
    data, mask = x.data.clone(), x.mask.clone()
    for place, value, valid in writes:
        data[place], mask[place] = value, valid
    return Masked(data, mask)


def accumulated(x: Masked, writes: list[tuple[Cell, Any, Any]], reduce: str, include_self: bool = True) -> Masked:
    """Valid writes and, if asked, the valid destination are reduced; a place without any of them stays."""
    data, mask = x.data.clone(), x.mask.clone()
    for place in every(x.data.shape):
        values = [value for where, value, valid in writes if where == place and valid]
        if not values:
            continue
        if include_self and x.mask[place]:
            values = [x.data[place], *values]
        data[place], mask[place] = REDUCE[reduce](values), True
    return Masked(data, mask)


def _scattered(x: Masked, dim: int, index: Any, src: Any) -> list[tuple[Cell, Any, Any]]:
    index = masked(index)
    number = not isinstance(src, Masked | torch.Tensor)
    source = None if number else masked(src)
    writes = []
    for place in every(index.data.shape):
        if index.mask[place]:
            target = list(place)
            if target:
                target[dim] = int(index.data[place])
            value = torch.tensor(src, dtype=x.data.dtype) if source is None else source.data[place]
            writes.append((tuple(target), value, True if source is None else bool(source.mask[place])))
    return writes


def _along(x: Masked, dim: int, index: Any, source: Any) -> list[tuple[Cell, Any, Any]]:
    """Writes of whole rows: the index is spelled out to the shape of the source."""
    index = masked(index)
    index = Masked(index.data.reshape(-1), index.mask.reshape(-1))
    if x.data.dim() == 0:
        source = masked(source)
        return [((), source.data.reshape(()), source.mask.reshape(()))] * int(index.mask.sum())
    shape = [1] * x.data.dim()
    shape[dim] = -1
    source = masked(source)
    wide = Masked(
        index.data.reshape(shape).expand(source.data.shape), index.mask.reshape(shape).expand(source.data.shape)
    )
    wide = Masked(torch.where(wide.mask & (wide.data < 0), wide.data + x.data.shape[dim], wide.data), wide.mask)
    return _scattered(x, dim, wide, source)


def index_copy(op: Any, x: Any, dim: int, index: Any, source: Any) -> Masked:
    return assigned(masked(x), _along(masked(x), dim, index, source))


def index_fill(op: Any, x: Any, dim: int, index: Any, value: Any) -> Masked:
    x = masked(x)
    value = masked(value if isinstance(value, Masked | torch.Tensor) else torch.tensor(value, dtype=x.data.dtype))
    shape = list(x.data.shape)
    if shape:
        shape[dim] = masked(index).data.numel()
    return assigned(x, _along(x, dim, index, Masked(value.data.expand(shape), value.mask.expand(shape))))


def put(op: Any, x: Any, index: Any, source: Any, accumulate: bool = False) -> Masked:
    x, index, source = masked(x), masked(index), masked(source)
    places = list(every(x.data.shape))
    writes = [
        (places[int(i)], value, bool(valid))
        for i, ok, value, valid in zip(
            index.data.reshape(-1),
            index.mask.reshape(-1),
            source.data.reshape(-1),
            source.mask.reshape(-1),
            strict=True,
        )
        if ok
    ]
    return accumulated(x, writes, "sum") if accumulate else assigned(x, writes)


def index_put(op: Any, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Masked:
    """The database's samples have one key for the first dimension."""
    x, key, values = masked(x), masked(indices[0]), masked(values)
    if key.data.dtype is torch.bool:
        rows = [i for i in range(len(key.data)) if key.data[i] and key.mask[i]]
    else:
        rows = [int(i) if ok else None for i, ok in zip(key.data, key.mask, strict=True)]
    shape = (len(rows), *x.data.shape[1:])
    data, mask = values.data.expand(shape), values.mask.expand(shape)
    writes = [
        ((row, *rest), data[(i, *rest)], bool(mask[(i, *rest)]))
        for i, row in enumerate(rows)
        if row is not None
        for rest in every(x.data.shape[1:])
    ]
    return accumulated(x, writes, "sum") if accumulate else assigned(x, writes)


def add_at(op: Any, x: Any, where: Any, indices: Any, values: Any) -> Masked:
    x, where, values, keys = masked(x), masked(where), masked(values), [masked(k) for k in indices]
    shape = values.data.shape
    places = [p for p in every(shape) if where.mask.expand(shape)[p]]
    added = torch.where(where.data, values.data, 0)
    writes = [(named(x, keys, shape, p), added[p], bool(values.mask[p])) for p in places]
    return accumulated(x, [w for w in writes if w[0] is not None], "sum")


def masked_scatter(op: Any, x: Any, where: Any, source: Any) -> Masked:
    x, where, source = masked(x), masked(where), masked(source)
    data, mask, chosen, ok = torch.broadcast_tensors(x.data, x.mask, where.data, where.mask)
    places = [place for place in every(data.shape) if chosen[place] and ok[place]]
    values = zip(places, source.data.reshape(-1), source.mask.reshape(-1), strict=False)
    return assigned(Masked(data.contiguous(), mask.contiguous()), list(values))


def fill(op: Any, x: Any, value: Any) -> Masked:
    value = masked(value if isinstance(value, Masked | torch.Tensor) else torch.tensor(value))
    x, shape = masked(x), x.data.shape
    return Masked(value.data.to(x.data.dtype).expand(shape), x.mask & value.mask)


def zero(op: Any, x: Any) -> Masked:
    return Masked(torch.zeros_like(x.data), x.mask)


ORACLES = {
    "index_copy": index_copy,
    "index_fill": index_fill,
    "index_put": index_put,
    "put": put,
    "_unsafe_masked_index_put_accumulate": add_at,
    "masked_scatter": masked_scatter,
    "fill": fill,
    "zero_": zero,
    **dict.fromkeys(("select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter"), moved),
}
XFAIL = {
    ("as_strided_scatter", "gradient"): "torch's own gradient of as_strided_scatter fails gradcheck on these samples",
}
