"""Elementwise: the result is valid where every masked operand is valid.

The op runs on the data as it is; NaN or inf computed at a valid entry stays valid.  Where the local derivative depends
on the masked-out data, every operand's gradient is guarded with the result's mask, plain operands included.
"""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from .. import masks, shapes
from ..compat import current_node, in_transform
from ..errors import MaskMismatchError
from ..op import Op
from ..packing.kinds import elementwise as as_values
from ..pair import Pair, Payload
from ..select import guard, zero_masked
from ..settings import STACK, current
from ..sparse.rules import on_values

ZERO, ANY = Payload.ZERO, Payload.ANY  # read on every op's way
NUMBERS = (int, float, complex)
KeepsZero = Callable[[tuple[Any, ...]], bool]


def elementwise(
    linear: bool = False, scales: bool = False, smooth: bool = True, adds: bool = False,
    keeps_zero: KeepsZero | None = None) -> Callable[..., Any]:  # fmt: skip
    """The rule of an elementwise op.

    ``linear``: its derivative is the same for any masked-out data (or a choice, which does not multiply).
    ``scales``: with Python numbers for all other operands it is linear.  ``keeps_zero(operands)``: whether 0 stays 0
    (static).  ``smooth``: its derivative at 0 is finite, so zeros under the mask need no guard.  ``adds``: it is a sum.
    """

    def alone(op: Callable[..., Any], x: Pair, keywords: dict[str, Any]) -> Any:
        zero = keeps_zero is not None and x.payload is ZERO
        data = x.data
        if not (linear or (smooth and zero)):
            data = guard_operands([data], x.mask)[0]
        result = op(data, **keywords) if keywords else op(data)
        payload = ZERO if zero else ANY
        if isinstance(result, tuple):
            return tuple(Pair(r, x.mask, payload) for r in result)
        return Pair(result, x.mask, payload)

    def pointwise(op: Callable[..., Any], *operands: Any, **keywords: Any) -> Any:
        """The op on the data, under the AND of the masks."""
        if len(operands) == 1:
            return alone(op, operands[0], keywords)
        if adds and STACK.get() and current_node() is not None and current().in_gradient:
            return sum_gradients(op, operands, keywords)
        data, mask, shared = join_operands(operands)
        zero = shared and keeps_zero is not None and keeps_zero(operands)
        constant = linear
        if keywords and "alpha" in keywords and not keeps_zero_of_product((keywords["alpha"],)):
            constant = zero = False
        if not (constant or (smooth and zero)):
            data = guard_operands(data, mask, scales)
        result = op(*data, **keywords) if keywords else op(*data)
        payload = ZERO if zero else ANY
        if isinstance(result, tuple):
            return tuple(Pair(r, masks.expand_to(mask, r.shape), payload) for r in result)
        shape = result.shape
        return Pair(result, mask if shape == mask.shape else mask.expand(shape), payload)

    return pointwise


def join_operands(operands: tuple[Any, ...]) -> tuple[list[Any], Tensor, bool]:
    """The operands' data, the AND of their masks, and whether they share one mask with zeros under it (static)."""
    data: list[Any] = []
    mask = None
    shared = True
    for x in operands:
        if type(x) is not Pair:
            data.append(x)
        else:
            data.append(x.data)
            if mask is None:
                mask = x.mask
            elif mask is not x.mask:
                combined = masks.logical_and(mask, x.mask)
                if combined is not mask or masks.is_all_valid(x.mask):  # else they are the same memory
                    shared = False
                    if STACK.get() and current().mismatch == "raise":
                        check_match(mask, x.mask)
                mask = combined
            if x.payload is not ZERO:
                shared = False
    assert mask is not None
    return data, mask, shared


def sum_gradients(op: Callable[..., Any], operands: tuple[Any, ...], keywords: dict[str, Any]) -> Pair:
    """A sum of gradients in code that is not ours: a masked entry is a 0, so the sum is valid where any operand is."""
    result = op(*(zero_masked(x) if type(x) is Pair else x for x in operands), **keywords)
    small = [masks.compact(x.mask) for x in operands if type(x) is Pair]
    if len(small) < len(operands):
        return Pair(result, masks.full(result.shape, result.device), ZERO)
    return Pair(result, masks.expand_to(torch.bitwise_or(*small), result.shape), ZERO)


def check_match(a: Tensor, b: Tensor) -> None:
    """Under ``meaning(mismatch="raise")``: reads both masks."""
    if not torch.equal(*torch.broadcast_tensors(a, b)):
        raise MaskMismatchError(
            "two operands have different masks, and meaning(mismatch='raise') is in force; give both the same mask "
            "(as_masked_tensor(x, mask)), fill one with x.filled(value), or leave the context to get their AND"
        )


def guard_operands(data: list[Any], mask: Tensor, scales: bool = False) -> list[Any]:
    """The operands, their gradients 0 outside ``mask`` (broadcast to all); type promotion stays the plain op's.

    With ``scales``, none is needed where all operands but the first are finite non-zero Python numbers.
    """
    if not may_differentiate(data) or (scales and keeps_zero_of_product(data[1:]) and 0 not in data[1:]):
        return data
    tensors = [x for x in data if isinstance(x, Tensor)]
    copied = scales
    if any(x.dim() != mask.dim() or x.shape != mask.shape for x in tensors):  # traced sizes are compared one by one
        mask = masks.expand_to(mask, reduce(shapes.broadcast_two, (x.shape for x in tensors), mask.shape))
        copied = scales and all(
            x.is_contiguous() for x in tensors
        )  # an expanded copy has an order in memory of its own
    wide = [x for x in tensors if x.dim() > 0]
    result = []
    for x in data:
        if isinstance(x, Tensor) and is_fractional(x):
            if x.dim() == 0 and wide:
                x = x.to(torch.result_type(wide[0], x))  # a 0-d operand does not promote; expanded it would
            x = guard(x, mask, owned=copied, once=True)  # products and quotients make their gradients afresh
        result.append(x)
    return result


def may_differentiate(data: list[Any]) -> bool:
    """Whether autograd or a transform may ask for a derivative."""
    if torch.is_grad_enabled():
        for x in data:  # on every op's way: a plain loop
            if isinstance(x, Tensor) and x.requires_grad:
                return True
    return in_transform()


run_elementwise = elementwise()


def is_fractional(x: Tensor) -> bool:
    """Whether ``x`` is floating or complex."""
    return x.is_floating_point() or x.is_complex()


def always_keeps_zero(operands: tuple[Any, ...]) -> bool:
    """f(0) == 0 whatever the other arguments."""
    return True


def keeps_zero_of_sum(operands: tuple[Any, ...]) -> bool:
    """Sums: 0 + 0 == 0, but not 0 + number or 0 + plain."""
    for x in operands:  # noqa: SIM110 (a plain loop is faster)
        if type(x) is not Pair:
            return False
    return True


def keeps_zero_of_product(operands: Sequence[Any]) -> bool:
    """Products: 0 * number == 0 unless the number is inf or NaN; of a plain tensor nothing is known."""
    for x in operands:  # noqa: SIM110 (a plain loop is faster)
        if type(x) is not Pair and not (isinstance(x, NUMBERS) and abs(x) < math.inf):
            return False
    return True


def run_on_zeros(op: Callable[..., Any], *operands: Any) -> Any:
    """The elementwise rule with zeros at masked entries, for kernels that fail on some values.

    torch's lcm divides: the least integer over -1 ends the process.  Its polynomials loop up to their degree.
    """
    return run_elementwise(op, *(x if type(x) is not Pair else Pair(zero_masked(x), x.mask, ZERO) for x in operands))


def elementwise_ops(names: str, **params: Any) -> list[Op]:
    """One op per name, all of the elementwise rule."""
    rule = elementwise(**params)
    return [Op(name, rule, generic=True, binding=True, sparse=on_values, packed=as_values) for name in names.split()]


def zeroed_ops(names: str) -> list[Op]:
    """The same of :func:`run_on_zeros`."""
    return [
        Op(name, run_on_zeros, generic=True, binding=True, sparse=on_values, packed=as_values) for name in names.split()
    ]


OPS = [
    *elementwise_ops("add sub", linear=True, keeps_zero=keeps_zero_of_sum, adds=True),
    *elementwise_ops("mul", scales=True, keeps_zero=keeps_zero_of_product),
    # Derivatives that are constants or choose.
    *elementwise_ops("neg deg2rad rad2deg _conj_physical", linear=True, keeps_zero=always_keeps_zero),
    *elementwise_ops(
        "trunc floor ceil round frac sign signbit isinf isnan isneginf isposinf",
        linear=True,
        keeps_zero=always_keeps_zero,
    ),
    *elementwise_ops("rsub", linear=True, adds=True),
    *elementwise_ops("clamp clamp_min clamp_max heaviside isfinite", linear=True),
    *elementwise_ops("maximum minimum max.other min.other fmax fmin", linear=True),
    # 0 stays 0, and the derivative at 0 is finite.
    *elementwise_ops(
        "abs sgn square sin sinh tan tanh asin asinh atan atanh erf expm1 log1p nan_to_num",
        keeps_zero=always_keeps_zero,
    ),
    *elementwise_ops("sqrt", keeps_zero=always_keeps_zero, smooth=False),
    # The rest.
    *elementwise_ops("cos cosh acos acosh exp exp2 log log2 log10 reciprocal rsqrt sigmoid angle polar complex"),
    *elementwise_ops("pow float_power atan2 hypot copysign nextafter"),
    *elementwise_ops("logaddexp logaddexp2 xlogy ldexp frexp lerp addcmul addcdiv"),
    *elementwise_ops("eq ne lt le gt ge isclose logical_and logical_or logical_xor logical_not"),
    *elementwise_ops("bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift gcd"),
    *zeroed_ops("lcm"),
    *elementwise_ops("__and__ __or__ __xor__ __lshift__ __rshift__"),
]
