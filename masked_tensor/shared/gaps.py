"""Gaps along one dimension, and the valid entries around them."""

import torch
from torch import Tensor

from .. import masks
from ..pair import Pair


def narrow_constant(mask: Tensor, dim: int) -> Tensor:
    """``mask`` of size 1 where it is constant, save along ``dim``: what the questions below are asked of."""
    compact = masks.compact(mask)
    return compact.expand(*compact.shape[:dim], mask.shape[dim], *compact.shape[dim + 1 :])


def carry_valid(mask: Tensor, dim: int, forward: bool) -> tuple[Tensor, Tensor]:
    """Whether there is a valid entry up to here, or from here on, and the position along ``dim`` of the nearest.

    The greatest byte so far is 1 from the first valid entry on, and the last place where it was seen that of the last
    valid one.
    """
    found, place = masks.to_bytes(mask if forward else mask.flip(dim)).cummax(dim)
    if not forward:
        found, place = found.flip(dim), mask.shape[dim] - 1 - place.flip(dim)
    return masks.from_bytes(found), place


def before(mask: Tensor, dim: int) -> Tensor:
    """The position along ``dim`` of the last valid entry up to here, -1 where there is none."""
    found, place = carry_valid(mask, dim, True)
    return torch.where(found, place, -1)


def after(mask: Tensor, dim: int) -> Tensor:
    """The position along ``dim`` of the next valid entry from here on, the size of ``dim`` where there is none."""
    found, place = carry_valid(mask, dim, False)
    return torch.where(found, place, mask.shape[dim])


def fillable(
    mask: Tensor, dim: int, last: Tensor, following: Tensor, limit: int | None, area: str | None, direction: str
) -> Tensor:
    """Which entries are filled: those ``limit`` steps at most from what they are filled from, in the ``area`` asked.

    ``last`` and ``following`` are the positions of :func:`before` and :func:`after`.
    """
    ahead, behind = last >= 0, following < mask.shape[dim]
    filled = {"forward": ahead, "backward": behind}.get(direction)
    if limit is not None:
        position = _positions(mask, dim)
        near = {"forward": ahead & (position - last <= limit), "backward": behind & (following - position <= limit)}
        filled = near.get(direction, near["forward"] | near["backward"])
    elif filled is None:
        filled = ahead | behind
    if area is not None:
        inside = ahead & behind
        filled = filled & (inside if area == "inside" else ~inside)
        filled = filled | mask
    return filled


def gather_clamped(x: Pair, dim: int, index: Tensor) -> Tensor:
    """The data at these positions along ``dim``; out of range, that of some entry at the edge."""
    index = index.clamp(0, max(x.data.shape[dim] - 1, 0))
    return x.data.gather(dim, index.expand(x.data.shape))


def interpolate_line(x: Pair, dim: int, places: Tensor, last: Tensor, following: Tensor) -> Tensor:
    """The data on the straight line between the valid entries around each, constant beyond the first and the last.

    ``places`` are the positions along ``dim``, in its shape ``(T,)``: rising, of the dtype of the data's real part.
    """
    size = x.data.shape[dim]
    first = torch.where(last < 0, following, last)
    second = torch.where(following >= size, last, following)
    at = places.view(-1, *(1,) * (last.dim() - dim - 1)).expand(last.shape)
    start, end = (at.gather(dim, i.clamp(0, max(size - 1, 0))) for i in (first, second))
    apart = end - start
    share = torch.where(apart > 0, (at - start) / torch.where(apart > 0, apart, 1), 0)
    low, high = gather_clamped(x, dim, first), gather_clamped(x, dim, second)
    return torch.lerp(low, high, share.expand(low.shape).to(low.dtype))


def nearest(dim: int, places: Tensor, last: Tensor, following: Tensor) -> Tensor:
    """The position of the valid entry that is nearest, the earlier of two."""
    size = last.shape[dim]
    at = places.view(-1, *(1,) * (last.dim() - dim - 1)).expand(last.shape)
    edge = max(size - 1, 0)
    back = at - at.gather(dim, last.clamp(0, edge))
    ahead = at.gather(dim, following.clamp(0, edge)) - at
    return torch.where((following >= size) | ((last >= 0) & (back <= ahead)), last, following)


def _positions(mask: Tensor, dim: int) -> Tensor:
    return torch.arange(mask.shape[dim], device=mask.device).view(-1, *(1,) * (mask.dim() - dim - 1))
