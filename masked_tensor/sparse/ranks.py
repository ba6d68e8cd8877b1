"""Order statistics of sparse tensors: median and quantile of the valid elements of every slice.

The stored values of a slice are sorted, and its valid zeros that nobody stores counted: they lie behind the negative
values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from .. import settings
from ..shared.interpolation import interpolated
from .reduction import finished, outputs, taken
from .slices import Slices, arranged, total


@dataclass(eq=False)
class Ordered:
    """The valid elements of every slice in order: the zeros that nobody stores lie behind its negative values."""

    values: Tensor  #: the stored ones, slice by slice (NaN last)
    slices: Slices
    negative: Tensor  #: how many of each slice are negative

    def at(self, rank: Tensor) -> Tensor:
        """The element of every slice at ``rank`` (one or more per slice)."""
        if self.values.shape[0] == 0:
            return self.values.new_zeros(rank.shape)
        s = self.slices
        per_slice = (-1, *[1] * (rank.dim() - 1))
        start, negative = (s.stored.cumsum(0) - s.stored).view(per_slice), self.negative.view(per_slice)
        rank = rank.minimum((s.count - 1).clamp_min(0).view(per_slice))
        if s.zeros is None:
            return self.values[(start + rank).clamp_max(self.values.shape[0] - 1)]
        zeros = s.zeros.view(per_slice)
        place = start + torch.where(rank < negative, rank, rank - zeros)
        picked = self.values[place.clamp(0, self.values.shape[0] - 1)]
        return torch.where((rank >= negative) & (rank < negative + zeros), 0, picked)


def ordered(v: Tensor, s: Slices) -> Ordered:
    """The stored values sorted inside their slices."""
    return Ordered(v[arranged(s.ids, v.detach())], s, total(v.detach() < 0, s))


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
    result = ordered(t.values, s).at((number - 1).clamp_min(0) // 2)
    if t.values.is_floating_point():
        result = torch.where((number <= 0) | (nans > 0) & (not skip_nan), torch.nan, result)
    else:
        result = torch.where(number <= 0, 0, result)
    return finished(result, o, x, dims, keepdim, fill_value, min_count)


def quantile(
    x: Tensor,
    mask: Tensor | None,
    q: float | Tensor,
    dims: Sequence[int],
    keepdim: bool,
    *,
    interpolation: str,
    skip_nan: bool,
    fill_value: Any = None,
) -> tuple[Tensor, Tensor | None]:
    """The element at rank ``q * (n - 1)`` of the n valid ones; a 1-d ``q`` gives the first dimension."""
    if x.numel() == 0:
        raise RuntimeError(f"{'nan' if skip_nan else ''}quantile() input tensor must be non-empty")
    t = taken(x, mask)
    share = q if isinstance(q, Tensor) else t.values.new_tensor(q)
    torch.quantile(t.values.new_zeros(1), share.detach(), interpolation=interpolation)  # for its checks of arguments
    o = outputs(t, dims, False, fill_value is not None)
    s = o.slices
    nans = total(t.values.isnan(), s)
    highest = (s.count - 1).clamp_min(0)
    wide = share.double() if prod(x.shape[d] for d in dims) > settings.EXACT else share
    per_slice = (-1, *[1] * share.dim())
    if skip_nan:
        rank = wide * (highest - nans).clamp_min(0).view(per_slice)
    else:
        rank = torch.where((nans > 0).view(per_slice), highest.view(per_slice), wide * highest.view(per_slice))
    result = interpolated(ordered(t.values, s).at, rank, interpolation)
    result = torch.where((s.count == 0).view(per_slice), torch.nan, result)
    return finished(result, o, x, dims, keepdim, fill_value, None)
