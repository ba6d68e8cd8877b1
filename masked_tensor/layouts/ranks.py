"""Order statistics of sparse tensors: median, quantile and mode of the valid elements of every slice.

The stored values of a slice are sorted; its valid zeros that nobody stores are one more entry, which stands for all of
them.  The n-th element is then found by a binary search in the running number of elements.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from ..interpolation import interpolated
from .keys import ravel
from .places import vacant
from .reduction import finished, outputs, taken
from .slices import Slices, arranged, total

_EXACT = 1 << 24  #: torch.quantile takes no longer slices: float32 holds no greater ranks


@dataclass(eq=False)
class Entries:
    """Values with the slice of each and the number of elements it stands for."""

    values: Tensor
    ids: Tensor
    weight: Tensor

    def at(self, order: Tensor, count: Tensor, rank: Tensor) -> Tensor:
        """The element of every slice at ``rank`` (one or more per slice) in ``order``."""
        if self.values.shape[0] == 0:
            return self.values.new_zeros(rank.shape)
        per_slice = (-1, *[1] * (rank.dim() - 1))
        start = (count.cumsum(0) - count).view(per_slice)
        rank = rank.minimum((count - 1).clamp_min(0).view(per_slice))
        place = torch.searchsorted(self.weight[order].cumsum(0), start + rank, right=True)
        return self.values[order[place.clamp_max(order.shape[0] - 1)]]


def entries(v: Tensor, s: Slices) -> tuple[Entries, Tensor]:
    """The stored values and, behind them, one zero for each slice of the second result."""
    weight = torch.ones_like(s.ids)
    some = s.ids[:0] if s.zeros is None else (s.zeros > 0).nonzero().view(-1)
    if s.zeros is None or some.numel() == 0:
        return Entries(v, s.ids, weight), some
    zeros = v.new_zeros(some.shape)
    return Entries(torch.cat((v, zeros)), torch.cat((s.ids, some)), torch.cat((weight, s.zeros[some]))), some


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
    """The lower median; NaN (integers: 0) where nothing is valid, or nothing but NaN."""
    t = taken(x, mask)
    o = outputs(t, dims, False, fill_value is not None or min_count == 0)
    s = o.slices
    nans = total(t.values != t.values, s)
    number = s.count - nans if skip_nan else s.count
    e, _ = entries(t.values, s)
    result = e.at(arranged(e.ids, e.values.detach()), s.count, (number - 1).clamp_min(0) // 2)
    if t.values.is_floating_point():
        result = torch.where((number <= 0) | (nans > 0) & (not skip_nan), torch.nan, result)
    else:
        result = torch.where(number <= 0, 0, result)
    return finished(result, o, x, dims, keepdim, fill_value, min_count)


def quantile(
    x: Tensor,
    mask: Tensor | None,
    share: Tensor,
    dims: Sequence[int],
    keepdim: bool,
    *,
    interpolation: str,
    skip_nan: bool,
    fill_value: Any = None,
) -> tuple[Tensor, Tensor | None]:
    """The element at rank ``share * (n - 1)`` of the n valid ones; a 1-d ``share`` gives the first dimension."""
    t = taken(x, mask)
    o = outputs(t, dims, False, fill_value is not None)
    s = o.slices
    nans = total(t.values.isnan(), s)
    highest = (s.count - 1).clamp_min(0)
    wide = share.double() if prod(x.shape[d] for d in dims) > _EXACT else share
    per_slice = (-1, *[1] * share.dim())
    if skip_nan:
        rank = wide * (highest - nans).clamp_min(0).view(per_slice)
    else:
        rank = torch.where((nans > 0).view(per_slice), highest.view(per_slice), wide * highest.view(per_slice))
    e, _ = entries(t.values, s)
    order = arranged(e.ids, e.values.detach())
    result = interpolated(lambda n: e.at(order, s.count, n), rank, interpolation)
    result = torch.where((s.count == 0).view(per_slice), torch.nan, result)
    return finished(result, o, x, dims, keepdim, fill_value, None)


def mode(
    x: Tensor, mask: Tensor | None, dims: Sequence[int], keepdim: bool
) -> tuple[tuple[Tensor, Tensor | None], tuple[Tensor, Tensor | None]]:
    """The most frequent value, the least one of several, and the last position that has it."""
    t = taken(x, mask)
    o = outputs(t, dims, True, False)  # the last position of a slice of zeros is not 0
    e, some = entries(t.values, o.slices)
    along = ravel(t.coordinate, x.shape, dims)
    along = torch.zeros_like(o.slices.ids) if along is None else along
    if some.numel():
        along = torch.cat((along, vacant(t, o, dims, last=True)[some]))
    order = arranged(e.ids, e.values.detach(), along)
    if order.numel() == 0:
        value, where = e.values.new_zeros(o.slices.number), along.new_zeros(o.slices.number)
    else:
        place = order[_last_of_longest(e.values.detach()[order], e.ids[order], e.weight[order], o.slices.number)]
        value, where = e.values[place], along[place]
    return finished(value, o, x, dims, keepdim, None, None), finished(where, o, x, dims, keepdim, None, None)


def _last_of_longest(v: Tensor, ids: Tensor, weight: Tensor, number: int) -> Tensor:
    """Where the heaviest run of equal values (the first of several) of each slice ends, or somewhere if it has none."""
    run = runs(v, ids)
    length = torch.bincount(run)
    heavy = torch.zeros_like(length).index_add(0, run, weight)
    end = length.cumsum(0) - 1
    owner = ids[end]
    most = heavy.new_zeros(number).scatter_reduce(0, owner, heavy, "amax")
    hit = (heavy == most[owner]).nonzero().view(-1)
    first = hit.new_full((number,), length.numel() - 1).scatter_reduce(0, owner[hit], hit, "amin")
    return end[first]


def runs(v: Tensor, ids: Tensor | None = None) -> Tensor:
    """The number of the run of equal neighbours (of one slice) that each value belongs to; every NaN is its own."""
    new = torch.zeros(v.shape, dtype=torch.bool, device=v.device)
    new[1:] = v[1:] != v[:-1]
    if ids is not None:
        new[1:] |= ids[1:] != ids[:-1]
    return new.cumsum(0)
