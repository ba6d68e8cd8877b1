"""Averaging: what a loss makes of its entries; a mean divides by the number, or the summed weights, of the valid ones.

The numerator and the denominator are separate functions, so that they add up over micro-batches and ranks.
"""

import torch
from torch import Tensor

from .. import errors, masks
from ..pair import Pair, Payload
from ..select import select
from ..settings import OVER
from .chunks import rounds

NONE, MEAN, SUM = 0, 1, 2  # the reductions as operators number them


def reduced(loss: Tensor, mask: Tensor, reduction: int, weight: Tensor | None = None) -> Pair:
    """The entries themselves, their sum or their mean; masked, with value and gradient 0, if none is valid."""
    if reduction == NONE:
        return Pair(loss, mask)
    return averaged(numerator(loss, mask), mask, reduction, weight, loss.dtype)


def averaged(total: Tensor, mask: Tensor, reduction: int, weight: Tensor | None, dtype: torch.dtype) -> Pair:
    """The sum (of integers in int64), or the mean that it is the numerator of."""
    exact = not (dtype.is_floating_point or dtype.is_complex)
    if reduction != SUM:
        if exact:
            raise errors.not_inexact("mean", dtype)
        over = OVER.get()
        if over is not None:
            data, valid = over(total, weighed(mask, weight, total.dtype), masks.any(mask))
            return Pair(data.to(dtype), valid, Payload.ZERO)
        total = total / denominator(mask, weight, total.dtype)
    return Pair(total if exact else total.to(dtype), masks.reduced(mask), Payload.ZERO)


def numerator(loss: Tensor, mask: Tensor) -> Tensor:
    """The sum of the valid entries; of half precision in float32."""
    return select(loss, mask, 0).sum(dtype=torch.float32 if rounds(loss.dtype) else None)


def weighed(mask: Tensor, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The number of valid entries, or the sum of their weights."""
    return masks.count(mask).to(dtype) if weight is None else select(weight, mask, 0).sum(dtype=dtype)


def denominator(mask: Tensor, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The number of valid entries, or the sum of their weights; 1 if none is valid, 0 if there is none at all."""
    if mask.numel() == 0:
        return weighed(mask, weight, dtype)
    if weight is None:
        return masks.count(mask).clamp_min(1).to(dtype)
    return torch.where(masks.any(mask), weighed(mask, weight, dtype), 1)
