"""Take and put: tokens out of a grid and back into one.

The places are distinct, so each is the other's backward; ``index_select``'s own would add up what cannot meet.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..compat import in_transform, is_tracked
from .grid import Grid


def gather_tokens(flat: Tensor, grid: Grid) -> Tensor:
    """The stored tokens ``(N, ...)`` of a flat grid ``(B * T, ...)``."""
    if grid.full:
        return flat
    if is_tracked(flat) and not in_transform():
        result: Tensor = _GatherTokens.apply(flat, grid.index)
        return result
    return flat.index_select(0, grid.index)


def scatter_tokens(values: Tensor, grid: Grid) -> Tensor:
    """The flat grid ``(B * T, ...)`` with the tokens in their places and 0 elsewhere."""
    if grid.full:
        return values
    if is_tracked(values) and not in_transform():
        result: Tensor = _ScatterTokens.apply(values, grid.index, grid.places)
        return result
    return _scatter(values, grid.index, grid.places)


def gather_mask(flat: Tensor, grid: Grid) -> Tensor:
    """As :func:`gather_tokens`, of a mask; constant along the features where that is."""
    return masks.expand_to(gather_tokens(masks.compact_others(flat, 0), grid), (len(grid.index), *flat.shape[1:]))


def scatter_mask(mask: Tensor, grid: Grid) -> Tensor:
    """As :func:`scatter_tokens`, of a mask; constant along the features where that is."""
    return masks.expand_to(scatter_tokens(masks.compact_others(mask, 0), grid), (grid.places, *mask.shape[1:]))


def _scatter(values: Tensor, index: Tensor, places: int) -> Tensor:
    return values.new_zeros((places, *values.shape[1:])).index_copy(0, index, values)


class _GatherTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, flat: Tensor, index: Tensor) -> Tensor:
        ctx.index, ctx.places = index, flat.shape[0]
        return flat.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if is_tracked(grad):
            return _ScatterTokens.apply(grad, ctx.index, ctx.places), None
        return _scatter(grad, ctx.index, ctx.places), None


class _ScatterTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, index: Tensor, places: int) -> Tensor:
        ctx.index = index
        return _scatter(values, index, places)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if is_tracked(grad):
            return _GatherTokens.apply(grad, ctx.index), None, None
        return grad.index_select(0, ctx.index), None, None
