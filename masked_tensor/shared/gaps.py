"""Holes along one dimension, and the valid entries around them."""

import torch
from torch import Tensor

from .. import masks
from ..pair import Pair


def narrow_constant(mask: Tensor, dim: int) -> Tensor:
    """``mask`` of size 1 where it is constant, save along ``dim``: what the questions below are asked of."""
    compact = masks.compact(mask)
    return compact.expand(*compact.shape[:dim], mask.shape[dim], *compact.shape[dim + 1 :])


def before(mask: Tensor, dim: int) -> Tensor:
    """The position along ``dim`` of the last valid entry up to here, -1 where there is none."""
    position = _positions(mask, dim)
    return torch.where(mask, position, -1).cummax(dim).values


def after(mask: Tensor, dim: int) -> Tensor:
    """The position along ``dim`` of the next valid entry from here on, the size of ``dim`` where there is none."""
    position = _positions(mask, dim)
    return torch.where(mask, position, mask.shape[dim]).flip(dim).cummin(dim).values.flip(dim)


def fillable(
    mask: Tensor, dim: int, limit: int | None, area: str | None, *, forward: bool = True, backward: bool = False
) -> Tensor:
    """Which entries are filled: those ``limit`` steps at most from what they are filled from, in the ``area`` asked."""
    last, following, position = before(mask, dim), after(mask, dim), _positions(mask, dim)
    size = mask.shape[dim]
    reach = size if limit is None else limit
    ahead = (last >= 0) & (position - last <= reach)
    behind = (following < size) & (following - position <= reach)
    filled = (ahead & forward) | (behind & backward)
    inside = (last >= 0) & (following < size)
    if area is not None:
        filled = filled & (inside if area == "inside" else ~inside)
    return filled | mask


def gather_clamped(x: Pair, dim: int, index: Tensor) -> Tensor:
    """The data at these positions along ``dim``; out of range, that of some entry at the edge."""
    index = index.clamp(0, max(x.data.shape[dim] - 1, 0))
    return x.data.gather(dim, index.expand(x.data.shape))


def interpolate_line(x: Pair, dim: int, places: Tensor) -> Tensor:
    """The data on the straight line between the valid entries around each, constant beyond the first and the last.

    ``places`` are the positions along ``dim``, in its shape ``(T,)``: rising, of the dtype of the data's real part.
    """
    mask = narrow_constant(x.mask, dim)
    last, following = before(mask, dim), after(mask, dim)
    first = torch.where(last < 0, following, last)
    second = torch.where(following >= mask.shape[dim], last, following)
    at = places.view(-1, *(1,) * (mask.dim() - dim - 1)).expand(mask.shape)
    start, end = (at.gather(dim, i.clamp(0, max(mask.shape[dim] - 1, 0))) for i in (first, second))
    share = torch.where(end > start, (at - start) / torch.where(end > start, end - start, 1), 0)
    low, high = gather_clamped(x, dim, first), gather_clamped(x, dim, second)
    return torch.lerp(low, high, share.expand(low.shape).to(low.dtype))


def nearest(mask: Tensor, dim: int, places: Tensor) -> Tensor:
    """The position of the valid entry that is nearest, the earlier of two."""
    last, following = before(mask, dim), after(mask, dim)
    at = places.view(-1, *(1,) * (mask.dim() - dim - 1)).expand(mask.shape)
    edge = max(mask.shape[dim] - 1, 0)
    back = at - at.gather(dim, last.clamp(0, edge))
    ahead = at.gather(dim, following.clamp(0, edge)) - at
    return torch.where((following >= mask.shape[dim]) | ((last >= 0) & (back <= ahead)), last, following)


def _positions(mask: Tensor, dim: int) -> Tensor:
    return torch.arange(mask.shape[dim], device=mask.device).view(-1, *(1,) * (mask.dim() - dim - 1))
