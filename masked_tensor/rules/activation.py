"""Activations: elementwise, so a result is valid where every masked operand is valid; ``glu`` joins two halves.

Gradients are guarded where the derivative depends on the masked-out data; relu and other
piecewise linear activations only select, so they need no guard.
"""

import torch

from .. import masks
from ..compat import in_transform, is_tracked
from ..op import Op
from ..packing import per_token as packed
from ..packing.kinds import elementwise as as_values
from ..pair import Pair, Payload
from ..select import guard
from ..sparse.rules import on_values
from .pointwise import always_keeps_zero, elementwise_ops, guard_operands, keeps_zero_of_product


def glu(x: Pair, dim: int = -1) -> Pair:
    """``a * sigmoid(b)`` for the halves a, b: valid where both halves are."""
    size = x.data.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    a, b = (x.mask.narrow(dim, start, size // 2) for start in (0, size // 2))
    mask = masks.logical_and(a, b)
    data = x.data
    if is_tracked(data) or in_transform():
        data = guard(data, torch.cat([mask, mask], dim))
    return Pair(torch.ops.aten.glu.default(data, dim), mask)


def log_sigmoid_forward(x: Pair) -> tuple[Pair, Pair]:
    """``log_sigmoid`` and the buffer that its backward uses."""
    data, buffer = torch.ops.aten.log_sigmoid_forward(guard_operands([x.data], x.mask)[0])
    scratch = masks.full(buffer.shape, buffer.device)
    return Pair(data, x.mask), Pair(buffer, scratch, Payload.ZERO)


OPS = [
    *elementwise_ops("relu relu6", linear=True, keeps_zero=always_keeps_zero),
    *elementwise_ops("threshold hardtanh hardsigmoid", linear=True),
    *elementwise_ops("selu gelu silu mish hardswish", keeps_zero=always_keeps_zero),
    *elementwise_ops("elu celu leaky_relu hardshrink softshrink", keeps_zero=keeps_zero_of_product),
    *elementwise_ops("softplus _prelu_kernel"),
    Op("glu", glu, packed=packed.along_feature()),
    Op("log_sigmoid_forward", log_sigmoid_forward, sparse=on_values, packed=as_values),
    # Derivatives, for callers below autograd.
    *elementwise_ops(
        "threshold_backward sigmoid_backward tanh_backward gelu_backward silu_backward logit_backward elu_backward"
    ),
    *elementwise_ops("hardtanh_backward hardswish_backward hardsigmoid_backward leaky_relu_backward softplus_backward"),
    *elementwise_ops("mish_backward hardshrink_backward softshrink_backward native_dropout_backward"),
]
