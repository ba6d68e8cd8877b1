"""Elementwise: the result is valid where every masked operand is valid.

The op runs on the data as it is; NaN or inf computed at a valid place stays valid.  Where the local derivative depends
on the payload, every operand's gradient is guarded with the result's mask, plain operands included.  ``where`` and
``masked_fill`` choose: only the operand that is chosen has a say in validity.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from .. import masks, pair
from ..op import Op
from ..pair import Pair, Payload
from ..select import guard, tracked, transforming

KeepsZero = Callable[[tuple[Any, ...]], bool]


def pointwise(
    op: OpOverload,
    *operands: Any,
    linear: bool = False,
    smooth: bool = True,
    keeps_zero: KeepsZero | None = None,
    **keywords: Any,
) -> Any:
    """Any elementwise op.

    ``linear``: its derivative is the same whatever the payload.  ``keeps_zero(numbers)``: whether 0 stays 0 (static).
    ``smooth``: its derivative at 0 is finite, so zeros under the mask need no guard.
    """
    pairs = [x for x in operands if type(x) is Pair]
    mask = pairs[0].mask
    shared = pairs[0].payload is Payload.ZERO
    for x in pairs[1:]:
        if not masks.same(mask, x.mask):
            mask = masks.both(mask, x.mask)
            shared = False
        shared = shared and x.payload is Payload.ZERO
    payload = Payload.ANY
    if keeps_zero is not None and shared and keeps_zero(operands):
        payload = Payload.ZERO
    data: Any = [x.data if type(x) is Pair else x for x in operands]
    if not linear and not (smooth and payload is Payload.ZERO):
        data = guarded(data, mask)
    result = op(*data, **keywords)
    if type(result) is tuple:
        return tuple(Pair(r, masks.fit(mask, r.shape), payload) for r in result)
    return Pair(result, mask if result.shape == mask.shape else mask.expand(result.shape), payload)


def guarded(data: list[Any], mask: Tensor) -> list[Any]:
    """The operands, their gradients 0 outside ``mask`` (broadcast to all of them).  Type promotion stays the plain op's."""
    tensors = [x for x in data if isinstance(x, Tensor)]
    if not any(tracked(x) for x in tensors) and not transforming():
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


def where(condition: Pair | Tensor, x: Pair | Tensor, other: Pair | Tensor) -> Pair:
    """``v = vc & (c ? vx : vo)``.  The branch not taken never sends NaN back: torch's own derivative selects."""
    c, x, other = pair.of(condition), _operand(x, condition), _operand(other, condition)
    if masks.same(x.mask, other.mask):
        chosen = x.mask
    else:
        chosen = (c.data & masks.compact(x.mask)) | (~c.data & masks.compact(other.mask))
    result = torch.where(c.data, x.data, other.data)
    mask = masks.both(c.mask, chosen)
    zero = x.payload is Payload.ZERO and other.payload is Payload.ZERO and _all_share(c, x, other)
    return Pair(result, masks.fit(mask, result.shape), Payload.ZERO if zero else Payload.ANY)


def _operand(value: Any, condition: Pair | Tensor) -> Pair:
    if isinstance(value, Pair | Tensor):
        return pair.of(value)
    device = condition.data.device
    if isinstance(value, bool):
        return pair.plain(torch.tensor(value, device=device))
    if isinstance(value, int):
        return pair.plain(torch.tensor(value, device=device))
    dtype = torch.get_default_dtype()
    if isinstance(value, complex):
        dtype = torch.complex128 if dtype is torch.float64 else torch.complex64
    return pair.plain(torch.tensor(value, dtype=dtype, device=device))


def _all_share(c: Pair, x: Pair, other: Pair) -> bool:
    return masks.same(x.mask, other.mask) and masks.same(c.mask, x.mask)


def masked_fill(x: Pair | Tensor, mask: Pair | Tensor, value: Any) -> Pair:
    """``v = vx & v_mask``: writes ``value`` where ``mask`` is True, but never turns padding into data."""
    x, chosen = pair.of(x), pair.of(mask)
    valid = masks.both(x.mask, chosen.mask)
    if type(value) is Pair:
        valid = masks.both(valid, ~chosen.data | value.mask)
        value = value.data
    result = torch.masked_fill(x.data, chosen.data, value)
    return Pair(result, masks.fit(valid, result.shape))


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


def finite_numbers(operands: tuple[Any, ...]) -> bool:
    """Products and quotients: 0 * number == 0 unless the number is inf or NaN (0 / 0 counts the same)."""
    return all(
        type(x) is Pair or (isinstance(x, int | float) and math.isfinite(x) and (x != 0 or isinstance(x, bool)))
        for x in operands
    )


def _rows(names: str, **params: Any) -> list[Op]:
    return [Op(name, pointwise, params, generic=True) for name in names.split()]


ROWS = [
    *_rows("add sub", linear=True, keeps_zero=no_others),
    *_rows("mul", keeps_zero=finite_numbers),
    *_rows("div", keeps_zero=lambda operands: finite_numbers(operands) and type(operands[1]) is not Pair),
    *_rows(
        "neg positive relu deg2rad rad2deg conj_physical _conj_physical trunc floor ceil frac sign",
        linear=True,
        keeps_zero=always,
    ),
    *_rows("rsub threshold clamp clamp_min clamp_max heaviside round", linear=True),
    *_rows(
        "abs sgn sin sinh tan tanh asin asinh atan atanh erf expm1 log1p square elu selu celu gelu silu mish "
        "leaky_relu hardswish hardshrink softshrink nan_to_num erfinv special_i1 special_i1e",
        keeps_zero=always,
    ),
    *_rows("sqrt", keeps_zero=always, smooth=False),
    *_rows(
        "cos cosh acos acosh tanh sinc exp exp2 log log2 log10 reciprocal rsqrt sigmoid erfc digamma lgamma i0".replace(
            "tanh ", ""
        )
    ),
    *_rows(
        "logit polygamma mvlgamma hardsigmoid hardtanh relu6 softplus angle signbit isfinite isinf isnan isneginf isposinf"
    ),
    *_rows("eq ne lt le gt ge logical_and logical_or logical_xor logical_not"),
    *_rows("bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift"),
    *_rows("__and__ __or__ __xor__ __lshift__ __rshift__ gcd lcm"),
    *_rows("pow float_power atan2 hypot copysign nextafter fmod remainder floor_divide true_divide"),
    *_rows("maximum minimum fmax fmin max.other min.other logaddexp logaddexp2 xlogy igamma igammac ldexp frexp"),
    *_rows("lerp addcmul addcdiv complex polar _prelu_kernel"),
    *_rows(
        "special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_entr "
        "special_erfcx special_i0e special_log_ndtr special_ndtri special_modified_bessel_i0 "
        "special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 "
        "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0 "
        "special_xlog1py special_zeta special_chebyshev_polynomial_t special_chebyshev_polynomial_u "
        "special_chebyshev_polynomial_v special_chebyshev_polynomial_w special_hermite_polynomial_h "
        "special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p "
        "special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u "
        "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w"
    ),
    # Derivatives, for callers below autograd.
    *_rows(
        "threshold_backward sigmoid_backward tanh_backward gelu_backward silu_backward logit_backward elu_backward "
        "hardtanh_backward hardswish_backward hardsigmoid_backward leaky_relu_backward softplus_backward "
        "mish_backward hardshrink_backward softshrink_backward native_dropout_backward"
    ),
    Op("where", where),
    Op("masked_fill", masked_fill),
    Op("glu", glu),
    Op("log_sigmoid_forward", log_sigmoid_forward),
]
