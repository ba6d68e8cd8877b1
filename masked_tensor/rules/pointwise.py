"""Elementwise: the result is valid where every masked operand is valid.

The op runs on the data as it is; NaN or inf computed at a valid place stays valid.  Where the local derivative depends
on the payload, every operand's gradient is guarded with the result's mask, plain operands included.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from .. import masks
from ..errors import MaskMismatchError
from ..op import Op
from ..pair import Pair, Payload
from ..select import guard, tracked, transforming
from ..settings import MISMATCH

KeepsZero = Callable[[tuple[Any, ...]], bool]


def pointwise(
    op: OpOverload,
    *operands: Any,
    linear: bool = False,
    scales: bool = False,
    smooth: bool = True,
    keeps_zero: KeepsZero | None = None,
    **keywords: Any,
) -> Any:
    """Any elementwise op.

    ``linear``: its derivative is the same whatever the payload (or a choice, which does not multiply).  ``scales``:
    with non-zero Python numbers for all other operands it is linear.  ``keeps_zero(operands)``: whether 0 stays 0 (static).
    ``smooth``: its derivative at 0 is finite, so zeros under the mask need no guard.
    """
    mask = None
    shared = True
    for x in operands:
        if type(x) is Pair:
            if mask is None:
                mask = x.mask
            elif not masks.same(mask, x.mask):
                mask = combined(mask, x.mask)
                shared = False
            shared = shared and x.payload is Payload.ZERO
    assert mask is not None
    zero = shared and keeps_zero is not None and keeps_zero(operands)
    if keywords and not finite_numbers((keywords.get("alpha", 1),)):
        linear = zero = False
    data = [x.data if type(x) is Pair else x for x in operands]
    if not (linear or (smooth and zero) or (scales and finite_numbers(operands[1:]) and 0 not in operands[1:])):
        data = guarded(data, mask)
    result = op(*data, **keywords)
    payload = Payload.ZERO if zero else Payload.ANY
    if type(result) is tuple:
        return tuple(Pair(r, masks.fit(mask, r.shape), payload) for r in result)
    return Pair(result, mask if result.shape == mask.shape else mask.expand(result.shape), payload)


def combined(a: Tensor, b: Tensor) -> Tensor:
    """The AND of two masks, or under ``mask_mismatch("raise")`` the error that they differ."""
    mask = masks.both(a, b)
    if MISMATCH.get() == "raise" and not torch.equal(a.expand(mask.shape), b.expand(mask.shape)):
        raise MaskMismatchError(
            "two operands have different masks, and mask_mismatch('raise') is in force; give both the same mask "
            "(as_masked_tensor(x, mask)), fill one with x.filled(value), or leave the context to get their AND"
        )
    return mask


def guarded(data: list[Any], mask: Tensor) -> list[Any]:
    """The operands, their gradients 0 outside ``mask`` (broadcast to all); type promotion stays the plain op's."""
    tensors = [x for x in data if isinstance(x, Tensor)]
    if not (torch.is_grad_enabled() and any(x.requires_grad for x in tensors)) and not transforming():
        return data
    shape = torch.broadcast_shapes(mask.shape, *(x.shape for x in tensors))
    mask = masks.fit(mask, shape)
    wide = [x for x in tensors if x.dim() > 0]
    result = []
    for x in data:
        if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()):
            if x.dim() == 0 and wide:
                x = x.to(torch.result_type(wide[0], x))  # a 0-d operand does not promote; expanded it would
            x = guard(x, mask)
        result.append(x)
    return result


def polygamma(n: Any, x: Any) -> Any:
    """``polygamma(n, x)``; the in-place twin alone has its arguments the other way round."""
    n, x = (x, n) if type(n) is Pair else (n, x)
    return pointwise(torch.ops.aten.polygamma.default, n, x)


def glu(x: Pair, dim: int = -1) -> Pair:
    """``a * sigmoid(b)`` for the halves a, b: valid where both halves are."""
    size = x.data.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    a, b = (x.mask.narrow(dim, start, size // 2) for start in (0, size // 2))
    mask = masks.both(a, b)
    data = x.data
    if tracked(data) or transforming():
        data = guard(data, torch.cat([mask, mask], dim))
    return Pair(torch.ops.aten.glu.default(data, dim), mask)


def log_sigmoid_forward(x: Pair) -> tuple[Pair, Pair]:
    """``log_sigmoid`` and the buffer of its backward."""
    data, buffer = torch.ops.aten.log_sigmoid_forward(guarded([x.data], x.mask)[0])
    scratch = masks.full(buffer.shape, buffer.device)
    return Pair(data, x.mask), Pair(buffer, scratch, Payload.ZERO)


def always(operands: tuple[Any, ...]) -> bool:
    """f(0) == 0 whatever the other arguments."""
    return True


def no_others(operands: tuple[Any, ...]) -> bool:
    """Sums: 0 + 0 == 0, but not 0 + number or 0 + plain."""
    return all(type(x) is Pair for x in operands)


def finite_factors(operands: tuple[Any, ...]) -> bool:
    """Products: 0 * number == 0 unless the number is inf or NaN."""
    return finite_numbers(x for x in operands if type(x) is not Pair)


def finite_divisor(operands: tuple[Any, ...]) -> bool:
    """Quotients: 0 / number == 0 unless the number is 0 or NaN."""
    return type(operands[0]) is Pair and finite_numbers(operands[1:]) and operands[1] != 0


def finite_numbers(values: Any) -> bool:
    """Whether all of ``values`` are finite Python numbers."""
    return all(isinstance(v, int | float | complex) and abs(v) < math.inf for v in values)


def rows(names: str, **params: Any) -> list[Op]:
    """One row per name, all of the elementwise rule."""
    return [Op(name, pointwise, params, generic=True) for name in names.split()]


ROWS = [
    *rows("add sub", linear=True, keeps_zero=no_others),
    *rows("mul", scales=True, keeps_zero=finite_factors),
    *rows("div true_divide", scales=True, keeps_zero=finite_divisor),
    # Derivatives that are constants or choose.
    *rows("neg positive relu relu6 deg2rad rad2deg conj_physical _conj_physical", linear=True, keeps_zero=always),
    *rows("trunc floor ceil round frac sign signbit isinf isnan isneginf isposinf", linear=True, keeps_zero=always),
    *rows("rsub threshold clamp clamp_min clamp_max hardtanh hardsigmoid heaviside isfinite", linear=True),
    *rows("maximum minimum max.other min.other fmax fmin", linear=True),
    # 0 stays 0, and the derivative at 0 is finite.
    *rows("abs sgn square sin sinh tan tanh asin asinh atan atanh erf expm1 log1p nan_to_num", keeps_zero=always),
    *rows("selu gelu silu mish hardswish", keeps_zero=always),
    *rows("elu celu leaky_relu hardshrink softshrink", keeps_zero=finite_factors),
    *rows("sqrt", keeps_zero=always, smooth=False),
    # The rest.
    *rows("cos cosh acos acosh exp exp2 log log2 log10 reciprocal rsqrt sigmoid softplus angle polar complex"),
    *rows("pow float_power atan2 hypot copysign nextafter fmod remainder floor_divide"),
    *rows("logaddexp logaddexp2 xlogy ldexp frexp lerp addcmul addcdiv _prelu_kernel"),
    *rows("eq ne lt le gt ge isclose logical_and logical_or logical_xor logical_not"),
    *rows("bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift gcd lcm"),
    *rows("__and__ __or__ __xor__ __lshift__ __rshift__"),
    Op("glu", glu),
    Op("log_sigmoid_forward", log_sigmoid_forward),
    # Derivatives, for callers below autograd.
    *rows("threshold_backward sigmoid_backward tanh_backward gelu_backward silu_backward logit_backward elu_backward"),
    *rows("hardtanh_backward hardswish_backward hardsigmoid_backward leaky_relu_backward softplus_backward"),
    *rows("mish_backward hardshrink_backward softshrink_backward native_dropout_backward"),
]
