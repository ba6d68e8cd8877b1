"""Positions of extremes in sparse tensors: the first stored one, or the first valid position that is not stored."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..shared.too_few import MASKED, TooFew
from . import slices
from .reduction import Outputs, StoredValid, assemble_result, check_nonempty, outputs, take_valid
from .slices import flip_order
from .valid_positions import first_unstored


def position(
    x: Tensor,
    mask: Tensor | None,
    dims: Sequence[int],
    keepdim: bool,
    *,
    largest: bool,
    few: TooFew = MASKED,
) -> tuple[Tensor, Tensor | None]:
    """argmax or argmin: the first position of the extreme along ``dims`` (one dim, or all for the flat position)."""
    check_nonempty("argmax" if largest else "argmin", x.shape, dims)
    o, where, _ = _find(x, mask, dims, largest, few.is_shown)
    return assemble_result(where, o, x, dims, keepdim, few)


def extreme(
    x: Tensor,
    mask: Tensor | None,
    dims: Sequence[int],
    keepdim: bool,
    *,
    largest: bool,
    few: TooFew = MASKED,
) -> tuple[tuple[Tensor, Tensor | None], tuple[Tensor, Tensor | None]]:
    """max or min: the values and the positions; only values are filled."""
    check_nonempty("max" if largest else "min", x.shape, dims)
    o, where, best = _find(x, mask, dims, largest, few.is_shown)
    values = assemble_result(best, o, x, dims, keepdim, few)
    return values, assemble_result(where, o, x, dims, keepdim, few.positions())


def _find(
    x: Tensor, mask: Tensor | None, dims: Sequence[int], largest: bool, filled: bool
) -> tuple[Outputs, Tensor, Tensor]:
    """Which results there are, and the position and the value of the extreme of each."""
    t = take_valid(x, mask)
    o = outputs(t, dims, mask is not None, filled)
    return o, *_extreme(t, o, dims, largest)


def _extreme(t: StoredValid, o: Outputs, dims: Sequence[int], largest: bool) -> tuple[Tensor, Tensor]:
    s = o.slices
    v = t.values if largest else flip_order(t.values)
    position = t.position(dims)
    best = slices.stored_maximum(v.detach(), s)
    hit = v == s.to_values(best)
    if v.is_floating_point():
        hit |= v.isnan()
    none = torch.iinfo(torch.int64).max
    first = position.new_full((s.number,), none).scatter_reduce(0, s.ids[hit], position[hit], "amin")
    mirror = 0 if largest else slices.flipped_zero(v.dtype)
    value = slices.max_slices(v, s, mirror)
    if s.zeros is not None:
        place = first_unstored(t, o, dims)
        zero = torch.full_like(best, mirror)
        order = torch.where(s.stored == 0, True, best < zero) & (s.zeros > 0)
        first = torch.where(order, place, first)
        first = torch.where((best == zero) & (s.zeros > 0), torch.minimum(first, place), first)
    return torch.where(first == none, 0, first), value if largest else flip_order(value)
