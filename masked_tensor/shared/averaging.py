"""Averaging: how a loss reduces its entries; a mean divides by the number, or the summed weights, of the valid ones.

The numerator and what it is divided by are separate functions, so that they add up over micro-batches and ranks.
"""

import torch
from torch import Tensor

from .. import errors, masks
from ..kernels.losses import MEAN, NONE, SUM, Number, added
from ..pair import Pair, Payload
from ..settings import in_force

__all__ = ["MEAN", "NONE", "SUM", "finish_average", "reduce_loss"]


def reduce_loss(loss: Tensor, mask: Tensor, reduction: int, weight: Tensor | None = None, kind: object = "") -> Pair:
    """The entries themselves, their sum or their mean; masked, with value and gradient 0, if none is valid.

    ``kind``: the op, or its name, by which ``mean_over`` tells whether ranks take the same losses.
    """
    if reduction == NONE:
        return Pair(loss, mask)
    return finish_average(
        *added(loss, mask, reduction, weight), empty=mask.numel() == 0, reduction=reduction, kind=kind
    )


def finish_average(
    total: Tensor,
    number: Number,
    some: Tensor,
    dtype: torch.dtype,
    *,
    empty: bool,
    reduction: int,
    kind: object = "",
) -> Pair:
    """The sum (of integers in int64), or the mean that it is the numerator of, of entries of ``dtype``.

    ``number`` of them are valid (an int if it was noted and is not 0, or a function that gives their summed weights),
    ``some``: whether one is.  Where there is none at all (``empty``), the result is that of the plain op.
    """
    exact = not (dtype.is_floating_point or dtype.is_complex)
    if reduction != SUM:
        if exact:
            raise errors.not_inexact("mean", dtype)
        over = (
            None if torch.compiler.is_dynamo_compiling() else in_force().over
        )  # Dynamo cannot read it; mean_over notices
        if over is not None:
            data, valid = over(total, _as_tensor(number, total), some, kind)
            return Pair(data.to(dtype), valid, Payload.ZERO)
        if type(number) is int:  # noted, and not 0
            total = total / number
        elif empty or masks.is_all_valid(some):
            total = total / (number if isinstance(number, Tensor) else _as_tensor(number, total))
        elif isinstance(number, Tensor):
            total = total / number.clamp_min(1)
        else:
            total = total / torch.where(some, _as_tensor(number, total), 1)
    valid = torch.ones_like(some) if empty else some
    return Pair(total if exact or total.dtype is dtype else total.to(dtype), valid, Payload.ZERO)


def _as_tensor(number: Number, total: Tensor) -> Tensor:
    if isinstance(number, Tensor):
        return number.to(total.dtype)
    return number() if callable(number) else total.new_full((), number)
