"""Activations: elementwise, so a result is valid where every masked operand is valid; ``glu`` joins two halves.

Gradients are guarded where the derivative depends on the payload; relu and its piecewise linear kin only choose.
"""

import torch

from .. import masks
from ..compat import tracked, transforming
from ..op import Op
from ..packing import per_token as packed
from ..packing.rules import elementwise as as_values
from ..pair import Pair, Payload
from ..select import guard
from ..sparse.rules import on_values
from .pointwise import always, elements, finite_factors, guarded


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


ROWS = [
    *elements("relu relu6", linear=True, keeps_zero=always),
    *elements("threshold hardtanh hardsigmoid", linear=True),
    *elements("selu gelu silu mish hardswish", keeps_zero=always),
    *elements("elu celu leaky_relu hardshrink softshrink", keeps_zero=finite_factors),
    *elements("softplus _prelu_kernel"),
    Op("glu", glu, rows=packed.along()),
    Op("log_sigmoid_forward", log_sigmoid_forward, sparse=on_values, rows=as_values),
    # Derivatives, for callers below autograd.
    *elements(
        "threshold_backward sigmoid_backward tanh_backward gelu_backward silu_backward logit_backward elu_backward"
    ),
    *elements("hardtanh_backward hardswish_backward hardsigmoid_backward leaky_relu_backward softplus_backward"),
    *elements("mish_backward hardshrink_backward softshrink_backward native_dropout_backward"),
]
