"""Order statistics of sparse tensors: median and quantile of the valid elements of every slice.

The stored values of a slice are sorted, and its valid zeros that nobody stores counted: they lie behind the negative
values.
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from .. import settings
from ..layouts.elements import zeros_read
from ..shared.order_statistics import interpolate_rank, median_rank, quantile_rank
from ..shared.too_few import MASKED, TooFew
from .reduction import Outputs, StoredValid, assemble_result, outputs, take_valid
from .slices import check_ordered, sort_into_slices, sum_slices
from .valid_positions import first_unstored


class OrderedElements:
    """The valid elements of every slice in order, NaN last: the zeros that nobody stores lie behind the negative ones.

    A sort is stable.  From the greatest down (``descending``) only what is stored can be asked for.
    """

    def __init__(self, t: StoredValid, o: Outputs, descending: bool = False) -> None:
        check_ordered(t.values)
        self.slices = s = o.slices
        self.order = sort_into_slices(s.ids, t.values.detach(), descending=descending)
        self.values = t.values[self.order]  #: the stored ones, slice by slice
        self.start = s.stored.cumsum(0) - s.stored  #: where each slice begins among them
        self.nans = sum_slices(t.values.detach() != t.values.detach(), s)  #: how many of each slice are NaN
        self.negative = None if s.zeros is None else sum_slices(t.values.detach() < 0, s)  #: how many are negative

    def at(self, rank: Tensor) -> Tensor:
        """The element of every slice at ``rank`` (one or more per slice)."""
        if self.values.shape[0] == 0:
            return zeros_read(self.values, rank.shape)
        picked, zero = self.values[self.place(rank)], self.is_unstored(rank)
        return picked if zero is None else torch.where(zero, 0, picked)

    def is_unstored(self, rank: Tensor) -> Tensor | None:
        """Whether the element at ``rank`` is a zero that nobody stores; None if no slice has such."""
        if self.slices.zeros is None or self.negative is None:
            return None
        negative, zeros = (per_slice(n, rank.dim()) for n in (self.negative, self.slices.zeros))
        rank = self._within(rank)
        return (rank >= negative) & (rank < negative + zeros)

    def place(self, rank: Tensor) -> Tensor:
        """Where it is among the values (anywhere, if it is a zero that nobody stores)."""
        rank = self._within(rank)
        if self.slices.zeros is not None and self.negative is not None:
            negative, zeros = (per_slice(n, rank.dim()) for n in (self.negative, self.slices.zeros))
            rank = torch.where(rank < negative, rank, rank - zeros)
        return (per_slice(self.start, rank.dim()) + rank).clamp(0, max(self.values.shape[0] - 1, 0))

    def _within(self, rank: Tensor) -> Tensor:
        return rank.minimum(per_slice((self.slices.count - 1).clamp_min(0), rank.dim()))

    def middle(self, skip_nan: bool) -> Tensor:
        """The rank of the median."""
        return median_rank(self.slices.count - self.nans, None if skip_nan else self.nans)


def per_slice(number: Tensor, dim: int) -> Tensor:
    """One number per slice, shaped to broadcast with ``dim`` dimensions, the first of them the slices."""
    return number.view(-1, *[1] * (dim - 1))


def median(
    x: Tensor,
    mask: Tensor | None,
    dims: Sequence[int],
    keepdim: bool,
    *,
    skip_nan: bool,
    positions: bool = False,
    few: TooFew = MASKED,
) -> tuple[tuple[Tensor, Tensor | None], tuple[Tensor, Tensor | None] | None]:
    """The lower median, NaN (integers: 0) where nothing is valid, or nothing but NaN; and its position, if asked."""
    t = take_valid(x, mask)
    o = outputs(t, dims, positions and mask is not None, few.is_shown)
    s = OrderedElements(t, o)
    rank = s.middle(skip_nan)
    found = assemble_result(s.at(rank), o, x, dims, keepdim, few)
    if not positions:
        return found, None
    where = t.position(dims)[s.order]
    where = where[s.place(rank)] if where.numel() else torch.zeros_like(rank)
    zero = s.is_unstored(rank)
    if zero is not None:
        where = torch.where(zero, first_unstored(t, o, dims), where)
    return found, assemble_result(where, o, x, dims, keepdim, few.positions())


def quantile(
    x: Tensor,
    mask: Tensor | None,
    q: float | Tensor,
    dims: Sequence[int],
    keepdim: bool,
    *,
    interpolation: str,
    alphap: float = 1.0,
    betap: float = 1.0,
    skip_nan: bool,
    few: TooFew = MASKED,
) -> tuple[Tensor, Tensor | None]:
    """The element at rank ``q * (n - 1)`` of the n valid ones; a 1-d ``q`` gives the first dimension."""
    if x.numel() == 0:
        raise RuntimeError(f"{'nan' if skip_nan else ''}quantile() input tensor must be non-empty")
    t = take_valid(x, mask)
    share = q if isinstance(q, Tensor) else t.values.new_full((), q)
    torch.quantile(t.values.new_zeros(1), share.detach(), interpolation=interpolation)  # for its checks of arguments
    o = outputs(t, dims, False, few.is_shown)
    s = OrderedElements(t, o)
    wide = share.double() if prod(x.shape[d] for d in dims) > settings.EXACT else share
    numbers, nans = (per_slice(n, share.dim() + 1) for n in (s.slices.count - s.nans, s.nans))
    rank = quantile_rank(wide, numbers, None if skip_nan else nans, alphap, betap)
    result = interpolate_rank(s.at, rank, interpolation)
    return assemble_result(result, o, x, dims, keepdim, few)
