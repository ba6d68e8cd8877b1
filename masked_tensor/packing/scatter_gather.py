"""Take and put: tokens out of a grid and back into one.

The places are distinct, so each is the other's backward; ``index_select``'s own would add up what cannot meet.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..compat import in_transform, is_tracked
from .grid import Grid

Way = Callable[..., Tensor]


def gather_tokens(flat: Tensor, grid: Grid) -> Tensor:
    """The stored tokens ``(N, ...)`` of a flat grid ``(B * T, ...)``."""
    if grid.full:
        return flat
    if in_transform():
        return _gather(flat, grid.index, grid.places)
    return move(flat, _gather, _scatter, grid.index, grid.places)


def scatter_tokens(values: Tensor, grid: Grid) -> Tensor:
    """The flat grid ``(B * T, ...)`` with the tokens in their places and 0 elsewhere."""
    if grid.full:
        return values
    if in_transform():
        return _scatter(values, grid.index, grid.places)
    return move(values, _scatter, _gather, grid.index, grid.places)


def gather_mask(flat: Tensor, grid: Grid) -> Tensor:
    """As :func:`gather_tokens`, of a mask; constant along the features where that is."""
    return masks.expand_to(gather_tokens(masks.compact_others(flat, 0), grid), (len(grid.index), *flat.shape[1:]))


def scatter_mask(mask: Tensor, grid: Grid) -> Tensor:
    """As :func:`scatter_tokens`, of a mask; constant along the features where that is."""
    return masks.expand_to(scatter_tokens(masks.compact_others(mask, 0), grid), (grid.places, *mask.shape[1:]))


def _scatter(values: Tensor, index: Tensor, places: int) -> Tensor:
    return values.new_zeros((places, *values.shape[1:])).index_copy(0, index, values)


def _gather(flat: Tensor, index: Tensor, places: int) -> Tensor:
    return flat.index_select(0, index)


def move(x: Tensor, there: Way, back: Way, *to: Any) -> Tensor:
    """``there(x, *to)`` of distinct places, whose gradient comes by ``back(grad, *to)``, each the other's backward."""
    result: Tensor = _Move.apply(x, there, back, to) if is_tracked(x) else there(x, *to)
    return result


class _Move(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Way, back: Way, to: Any) -> Tensor:
        ctx.ways = back, there, to
        return there(x, *to)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        back, there, to = ctx.ways
        return move(grad, back, there, *to), None, None, None
