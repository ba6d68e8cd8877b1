"""Elementwise losses: an entry counts where the common mask is True.

The formulas and the kernels give the entries; or, to be added up, the sum of those that count, what a mean divides it
by, whether one counts, and the dtype of an entry.  Their options are the op, the names of its operands, what is known
of each under the common mask (None: the op may see it, whatever it is), the parameters and the reduction.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..pair import Payload
from ..select import guard, select
from .precision import rounds_noticeably

NONE, MEAN, SUM = 0, 1, 2  # the reductions as operators number them
Number = Tensor | int | Callable[[], Tensor]


def entries(*given: Any) -> Any:
    """The loss of ``(*operands, mask)``: each entry by the op, then their sum."""
    *operands, mask, op, names, known, parameters, reduction = given
    if known:
        data = [_zeroed(x, mask, payload) for x, payload in zip(operands, known, strict=True)]
    else:
        data = [guard(x, mask, inside=True) for x in operands]
    each = op(**parameters, **dict(zip(names, data, strict=True)), reduction=NONE)
    return each if reduction == NONE else added(each, mask, reduction)


def distances(
    x: Tensor, y: Tensor, mask: Tensor, op: Any, names: Any, known: Any, parameters: dict[str, Any], reduction: int
) -> Any:
    """The loss of zeros is 0 and so is its derivative: the op adds up operands that are zeroed."""
    first, second = _zeroed(x, mask, known[0]), _zeroed(y, mask, known[1])
    if not rounds_noticeably(first.dtype) and not rounds_noticeably(second.dtype):
        total = op(first, second, SUM, **parameters)
        return total, *counted(mask, None, reduction, total.dtype), total.dtype
    each = op(first, second, NONE, **parameters)
    total = each.sum(dtype=sum_dtype(each))
    return total, *counted(mask, None, reduction, total.dtype), each.dtype


def in_python(*given: Any) -> Any:
    """A loss that torch writes in Python: 1 under the mask is a number that every logarithm and quotient can take."""
    *operands, mask, op, _, _, parameters, reduction = given
    each = op(*(select(x, mask, 1) for x in operands), **parameters, reduction="none")
    return each if reduction == NONE else added(each, mask, reduction)


def added(each: Tensor, mask: Tensor, reduction: int, weight: Tensor | None = None) -> tuple[Any, ...]:
    """Entries added up."""
    total = numerator(each, mask)
    return total, *counted(mask, weight, reduction, total.dtype), each.dtype


def numerator(loss: Tensor, mask: Tensor) -> Tensor:
    """The sum of the valid entries; of half precision in float32."""
    return select(loss, mask, 0).sum(dtype=sum_dtype(loss))


def sum_dtype(loss: Tensor) -> torch.dtype | None:
    """The dtype to add up entries in; None: their own."""
    return torch.float32 if rounds_noticeably(loss.dtype) else None


def counted(mask: Tensor, weight: Tensor | None, reduction: int, dtype: torch.dtype) -> tuple[Number, Tensor]:
    """What a mean divides by: the number of valid entries, or what gives their summed weights; and whether one is."""
    if weight is None and reduction != SUM:
        if noted := masks.known.number(mask):
            return noted, masks.any(mask)
        number = masks.count(mask)
        return number, masks.has_valid(mask, number)
    return lambda: total_weight(mask, weight, dtype), masks.any(mask)


def total_weight(mask: Tensor, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The number of valid entries, or the sum of their weights."""
    return masks.count(mask).to(dtype) if weight is None else select(weight, mask, 0).sum(dtype=dtype)


def _zeroed(x: Tensor, mask: Tensor, known: Payload | None) -> Tensor:
    if known is Payload.ZERO:  # the mask is its own
        return guard(x, mask)
    return select(x if x.shape == mask.shape else x.expand(mask.shape), mask, 0)
