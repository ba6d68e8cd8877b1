"""Take and put: rows out of a grid and back into one.

The places are distinct, so each is the other's backward; ``index_select``'s own would add up what cannot meet.
"""

from typing import Any

import torch
from torch import Tensor

from ..compat import tracked, transforming
from .grid import Rows


def take(flat: Tensor, rows: Rows) -> Tensor:
    """The stored rows ``(N, ...)`` of a flat grid ``(B * T, ...)``."""
    if rows.full:
        return flat
    if tracked(flat) and not transforming():
        result: Tensor = _Take.apply(flat, rows.index)
        return result
    return flat.index_select(0, rows.index)


def put(values: Tensor, rows: Rows) -> Tensor:
    """The flat grid ``(B * T, ...)`` with the rows in their places and 0 elsewhere."""
    if rows.full:
        return values
    if tracked(values) and not transforming():
        result: Tensor = _Put.apply(values, rows.index, rows.places)
        return result
    return _put(values, rows.index, rows.places)


def _put(values: Tensor, index: Tensor, places: int) -> Tensor:
    return values.new_zeros((places, *values.shape[1:])).index_copy(0, index, values)


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, flat: Tensor, index: Tensor) -> Tensor:
        ctx.index, ctx.places = index, flat.shape[0]
        return flat.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if tracked(grad):
            return _Put.apply(grad, ctx.index, ctx.places), None
        return _put(grad, ctx.index, ctx.places), None


class _Put(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, index: Tensor, places: int) -> Tensor:
        ctx.index = index
        return _put(values, index, places)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if tracked(grad):
            return _Take.apply(grad, ctx.index), None, None
        return grad.index_select(0, ctx.index), None, None
