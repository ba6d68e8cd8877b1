"""Cuts through the grid: ``x[:, i]`` is a token of each sequence; ``x[:, a:b]``, ``x[a:b]`` those of a smaller grid."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from .. import masks, shapes
from ..op import NoRule
from ..pair import Pair
from . import dim_order as orders
from . import views
from .dim_order import GRID
from .packed import Packed


def select(x: Packed, dim: int, index: int) -> Packed | Pair:
    """``x.select(dim, index)``: of a feature, or of one place of every sequence."""
    d = views.feature_dim(dim, x)
    if x.order[d] != (1,) or (0,) not in x.order or x.first != GRID or not x.values.shape[0]:
        return views.select(x, dim, index)
    time = x.grid.shape[1]
    if not -time <= index < time:
        raise NoRule
    stored = x.grid.numbers[:, index % time]
    some = stored >= 0
    data = x.values.index_select(0, stored.clamp_min(0))
    inner = None if x.inner is None else x.inner.index_select(0, stored.clamp_min(0))
    read = [0 if a == 0 else a - GRID + 1 for a in orders.read_order(x.order) if a != 1]
    shape = [n for k, n in enumerate(x.shape) if k != d]
    wide = some.reshape(-1, *(1,) * (data.dim() - 1))
    mask = wide.expand(data.shape) if inner is None else wide & inner
    return Pair(data.permute(read).reshape(shape), masks.reshape(mask.permute(read), shape))


def index(x: Packed, indices: Sequence[Any]) -> Pair:
    """``x[mask]`` and ``x[sequences, times]``: tokens picked out of the grid; a place that stores none is masked."""
    if x.order[:2] != ((0,), (1,)) or x.first != GRID or not x.values.shape[0]:
        raise NoRule
    if (
        not all(type(i) is Tensor for i in indices)
        or sum(i.dim() if i.dtype is torch.bool else 1 for i in indices) != 2
    ):
        raise NoRule
    try:
        chosen = x.grid.numbers[tuple(indices)]
    except (IndexError, RuntimeError) as reason:
        raise NoRule from reason  # the strided rule says it in torch's own words
    stored = chosen.reshape(-1).clamp_min(0)
    data = x.values.index_select(0, stored)
    some = (chosen >= 0).reshape(-1, *(1,) * (data.dim() - 1))
    mask = some.expand(data.shape) if x.inner is None else some & x.inner.index_select(0, stored)
    read = [0, *(a - GRID + 1 for a in orders.read_order(x.order[2:]))]
    shape = (*chosen.shape, *x.shape[2:])
    return Pair(data.permute(read).reshape(shape), masks.reshape(mask.permute(read), shape))


def slice_(x: Packed, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Packed:
    """``x[..., start:end:step]``: of a feature, of time or of the batch."""
    d = views.feature_dim(dim, x)
    if x.order[d] not in ((0,), (1,)) or x.first != GRID:
        return views.slice_(x, dim, start, end, step)
    size = x.shape[d]
    first, last = shapes.slice_bounds(size, start, end)
    if (first, last, step) == (0, size, 1):
        return views.alias(x)
    if last <= first:
        raise NoRule
    if x.order[d] == (0,):
        return _rows(x, first, last, step)
    if step != 1:
        raise NoRule
    grid, kept = x.grid.cut(first, last)
    take: Any = partial(torch.index_select, dim=0, index=kept)
    inner = None if x.inner is None else take(x.inner)
    return Packed(take(x.values), grid, x.order, inner, x.payload)


def split(x: Packed, split_size: Any, dim: int = 0) -> list[Packed]:
    """``split``, ``chunk`` along a feature, or the batch."""
    d = views.feature_dim(dim, x)
    if x.order[d] != (0,) or x.first != GRID:
        return views.split(x, split_size, dim)
    sizes = list(split_size) if not isinstance(split_size, int) else [split_size] * -(-x.shape[d] // max(split_size, 1))
    if min(sizes, default=0) < 1 or (not isinstance(split_size, int) and sum(sizes) != x.shape[d]):
        raise NoRule
    ends = list(accumulate(sizes))
    return [_rows(x, last - n, min(last, x.shape[d]), 1) for n, last in zip(sizes, ends, strict=True)]


def _rows(x: Packed, first: int, last: int, step: int) -> Packed:
    """Some of the sequences."""
    grid, kept = x.grid.rows(first, last, step)
    if not len(grid.index):  # of none there is nothing to store
        raise NoRule
    inner = None if x.inner is None else x.inner[kept]
    return Packed(x.values[kept], grid, x.order, inner, x.payload)
