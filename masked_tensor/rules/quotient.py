"""Quotients and remainders, elementwise: integers are divided by 1 where the result is masked, as a 0 would raise."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..op import Op, ops
from ..packing.kinds import elementwise as as_values
from ..pair import Pair, Payload
from ..select import select, zero_masked
from ..shared import strict_counts
from ..sparse.rules import on_values
from .pointwise import NUMBERS, elementwise, is_fractional, join_operands, run_elementwise


def finite_divisor(operands: tuple[Any, ...]) -> bool:
    """Quotients: 0 / number == 0 unless the number is 0 or NaN."""
    divisor = operands[1]
    return isinstance(divisor, NUMBERS) and 0 < abs(divisor) < math.inf


by_any = elementwise(scales=True, keeps_zero=finite_divisor)


def quotient(op: Callable[..., Any], x: Any, other: Any, **keywords: Any) -> Any:
    """True division."""
    if strict_counts.KNOWN:
        strict_counts.refuse("div", other)
    return by_any(op, x, other, **keywords)


def divide(op: Callable[..., Any], x: Any, other: Any, **keywords: Any) -> Any:
    """Quotients and remainders: integers are divided by 1 where the result is masked, as a 0 would raise."""
    if type(x) is Pair and type(other) is int and other == -1:  # torch ends the process at the least integer
        x = Pair(zero_masked(x), x.mask, Payload.ZERO)
    values = [v.data if type(v) is Pair else v for v in (x, other)]
    if isinstance(values[1], Tensor) and not any(
        isinstance(v, float | complex) or (isinstance(v, Tensor) and is_fractional(v)) for v in values
    ):
        if type(other) is Pair and (type(x) is not Pair or x.mask is other.mask):
            other = Pair(select(other.data, other.mask, 1), other.mask)
        else:
            other = _nonzero_divisor(x, other, join_operands((x, other))[1])
    return run_elementwise(op, x, other, **keywords)


def _nonzero_divisor(x: Any, other: Pair | Tensor, mask: Tensor) -> Pair | Tensor:
    """The divisor of ``x`` with 1 where the quotient is masked."""
    data = pair.data_of(other)
    shape = torch.broadcast_shapes(data.shape, mask.shape)
    if data.dim() != len(shape) or data.shape != shape:  # sizes of different dimensions are not to be compared
        dividend = x.data if type(x) is Pair else x
        data = data.to(torch.result_type(dividend, data)).expand(shape)  # a 0-d operand does not promote
    data = select(data, mask, 1)
    return Pair(data, masks.expand_to(other.mask, shape)) if type(other) is Pair else data


SAID: dict[str, Any] = {"generic": True, "binding": True, "sparse": on_values, "packed": as_values}
OPS = [
    *ops("div true_divide", quotient, **SAID),
    *ops("fmod remainder floor_divide", divide, **SAID),
    *(Op(f"div.{mode}_mode", divide, **SAID) for mode in ("Tensor", "Scalar")),
]
