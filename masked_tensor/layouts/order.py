"""Positions, medians and distinct values of sparse tensors, by sorting the stored values inside their slices."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import slices, validity
from .elements import keys
from .keys import find, ravel, unravel
from .reduction import Outputs, Taken, finished, outputs, taken
from .slices import mirrored, total


def position(
    x: Tensor,
    mask: Tensor | None,
    dims: Sequence[int],
    keepdim: bool,
    *,
    largest: bool,
    fill_value: Any = None,
    min_count: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """argmax or argmin: the first position of the extreme along ``dims`` (one dim, or all for the flat position)."""
    t = taken(x, mask)
    o = outputs(t, dims, mask is not None, fill_value is not None or min_count == 0)
    where, _ = _extreme(t, o, dims, largest)
    return finished(where, o, x, dims, keepdim, fill_value, min_count)


def extreme(
    x: Tensor, mask: Tensor | None, dims: Sequence[int], keepdim: bool, *, largest: bool
) -> tuple[tuple[Tensor, Tensor | None], tuple[Tensor, Tensor | None]]:
    """max or min: the values and the positions."""
    t = taken(x, mask)
    o = outputs(t, dims, mask is not None, False)
    where, best = _extreme(t, o, dims, largest)
    return finished(best, o, x, dims, keepdim, None, None), finished(where, o, x, dims, keepdim, None, None)


def _extreme(t: Taken, o: Outputs, dims: Sequence[int], largest: bool) -> tuple[Tensor, Tensor]:
    s = o.slices
    v = t.values if largest else mirrored(t.values)
    along = ravel(t.coordinate, t.x.shape, dims)
    if along is None:
        along = torch.zeros_like(v, dtype=torch.int64)
    best = slices.stored_maximum(v.detach(), s)
    hit = v == s.to_values(best)
    if v.is_floating_point():
        hit |= v.isnan()
    none = torch.iinfo(torch.int64).max
    first = along.new_full((s.number,), none).scatter_reduce(0, s.ids[hit], along[hit], "amin")
    mirror = 0 if largest else slices.mirrored_zero(v.dtype)
    value = slices.maximum(v, s, mirror)
    if s.zeros is not None:
        vacant = _first_vacant(t, o, dims, along)
        zero = torch.full_like(best, mirror)
        order = torch.where(s.stored == 0, True, best < zero) & (s.zeros > 0)
        first = torch.where(order, vacant, first)
        first = torch.where((best == zero) & (s.zeros > 0), torch.minimum(first, vacant), first)
    return torch.where(first == none, 0, first), value if largest else mirrored(value)


def _first_vacant(t: Taken, o: Outputs, dims: Sequence[int], along: Tensor) -> Tensor:
    """The first valid position of each slice that stores nothing; out of range if there is none."""
    s = o.slices
    if t.mask is None:
        by_slice = torch.argsort(along, stable=True)
        by_slice = by_slice[torch.argsort(s.ids[by_slice], stable=True)]
        ids = s.ids[by_slice]
        rank = torch.arange(ids.numel(), device=ids.device) - (s.stored.cumsum(0) - s.stored)[ids]
        gap = along[by_slice] != rank
        return s.stored.scatter_reduce(0, ids[gap], rank[gap], "amin")
    shape = t.x.shape
    key = validity.expanded(t.mask, shape)
    key = key[~find(key, keys(t.x).sort().values)[1]]
    coordinates = unravel(key, shape)
    kept = [d for d in range(len(shape)) if d not in dims]
    slot = ravel(lambda d: coordinates[d], shape, kept)
    place = torch.zeros_like(key) if slot is None else find(slot, o.keys)[0]
    where = ravel(lambda d: coordinates[d], shape, dims)
    none = torch.iinfo(torch.int64).max
    vacant = torch.full((s.number,), none, device=key.device)
    return vacant if where is None else vacant.scatter_reduce(0, place, where, "amin")


def median(
    x: Tensor,
    mask: Tensor | None,
    dims: Sequence[int],
    keepdim: bool,
    *,
    skip_nan: bool,
    fill_value: Any = None,
    min_count: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The lower median, the valid zeros counted between the negative and the positive values."""
    t = taken(x, mask)
    o = outputs(t, dims, False, fill_value is not None or min_count == 0)
    v, s = t.values, o.slices
    order = torch.argsort(v.detach(), stable=True)
    order = order[torch.argsort(s.ids[order], stable=True)]
    start = s.stored.cumsum(0) - s.stored
    number, nans = s.count, total(v != v, s)
    if skip_nan:
        number = number - nans
    rank = ((number - 1) // 2).clamp_min(0)
    zeros = torch.zeros_like(number) if s.zeros is None else s.zeros
    negative = total(v < 0, s)
    stored_rank = torch.where(rank < negative, rank, rank - zeros)
    place = (start + stored_rank).clamp(0, max(v.numel() - 1, 0))
    picked = v[order][place] if v.numel() else v.new_zeros(s.number)
    result = torch.where((rank >= negative) & (rank < negative + zeros), 0, picked)
    if v.is_floating_point():
        bad = number <= 0 if skip_nan else (nans > 0) | (number <= 0)
        result = torch.where(bad, torch.nan, result)
    return finished(result, o, x, dims, keepdim, fill_value, min_count)


def unique(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The distinct valid values and how often each occurs, strided."""
    t = taken(x, mask)
    found, counts = t.values.unique(return_counts=True)
    valid = validity.counts(mask, x.shape, range(x.dim()), torch.zeros(1, dtype=torch.int64, device=x.device))
    zeros = torch.as_tensor(valid, device=x.device).reshape(1) - t.values.numel()
    zero = torch.zeros_like(zeros, dtype=found.dtype)
    found, inverse = torch.cat((found, zero[zeros > 0])).unique(return_inverse=True)
    counts = torch.cat((counts, zeros[zeros > 0]))
    return found, torch.zeros_like(found, dtype=torch.int64).index_add(0, inverse, counts)
