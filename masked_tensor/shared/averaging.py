"""Averaging: what a loss makes of its entries; a mean divides by the number, or the summed weights, of the valid ones.

The numerator and what it is divided by are separate functions, so that they add up over micro-batches and ranks.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .. import errors, masks
from ..kernels.precision import rounds_noticeably
from ..pair import Pair, Payload
from ..select import select
from ..settings import in_force

NONE, MEAN, SUM = 0, 1, 2  # the reductions as operators number them


def reduce_loss(loss: Tensor, mask: Tensor, reduction: int, weight: Tensor | None = None, kind: object = "") -> Pair:
    """The entries themselves, their sum or their mean; masked, with value and gradient 0, if none is valid.

    ``kind``: the op, or its name, by which ``mean_over`` tells whether ranks take the same losses.
    """
    if reduction == NONE:
        return Pair(loss, mask)
    return average(numerator(loss, mask), mask, reduction, weight, loss.dtype, kind)


def average(
    total: Tensor, mask: Tensor, reduction: int, weight: Tensor | None, dtype: torch.dtype, kind: object = ""
) -> Pair:
    """The sum (of integers in int64), or the mean that it is the numerator of."""
    empty = mask.numel() == 0
    if weight is None and reduction != SUM:
        number = masks.count(mask)
        return finish_average(total, number, masks.has_valid(mask, number), empty, reduction, dtype, kind)
    return finish_average(
        total, lambda: total_weight(mask, weight, total.dtype), masks.any(mask), empty, reduction, dtype, kind
    )


def finish_average(
    total: Tensor,
    number: Tensor | Callable[[], Tensor],
    some: Tensor,
    empty: bool,
    reduction: int,
    dtype: torch.dtype,
    kind: object = "",
) -> Pair:
    """The same for entries of ``dtype``, ``number`` of which are valid (or a function that gives their summed weights).

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
            data, valid = over(total, number.to(total.dtype) if isinstance(number, Tensor) else number(), some, kind)
            return Pair(data.to(dtype), valid, Payload.ZERO)
        if empty or masks.is_all_valid(some):
            total = total / (number if isinstance(number, Tensor) else number())
        elif isinstance(number, Tensor):
            total = total / number.clamp_min(1)
        else:
            total = total / torch.where(some, number(), 1)
    valid = torch.ones_like(some) if empty else some
    return Pair(total if exact else total.to(dtype), valid, Payload.ZERO)


def numerator(loss: Tensor, mask: Tensor) -> Tensor:
    """The sum of the valid entries; of half precision in float32."""
    return select(loss, mask, 0).sum(dtype=torch.float32 if rounds_noticeably(loss.dtype) else None)


def total_weight(mask: Tensor, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The number of valid entries, or the sum of their weights."""
    return masks.count(mask).to(dtype) if weight is None else select(weight, mask, 0).sum(dtype=dtype)
