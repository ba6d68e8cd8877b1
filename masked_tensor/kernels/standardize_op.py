"""Standardizing as one op of a compiled graph: its body is what runs outside of graphs, in the cache.

A compiler makes one loop for each pass over the data, and keeps none of them in the cache: of a random mask the graph
takes two to three times as long as the op.  What is exported has the formula's steps, which every runtime knows.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..compat import current_trace, in_transform, is_functional_tensor
from ..pair import Payload
from . import standardize as closed
from .attention.graph_library import LIBRARY
from .standardize_formula import formula
from .table import differentiate

_GIVEN = "Tensor data, Tensor? weight, Tensor? bias, Tensor flags"  # the mask in bytes, as a graph is given it
_HOW = "bool zero, int[] dims, float eps, bool centred"
LIBRARY.define(f"standardize({_GIVEN}, {_HOW}, ScalarType dtype) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)")
LIBRARY.define(
    f"standardize_backward(Tensor grad, Tensor? grad_mean, Tensor? grad_rstd, {_GIVEN}, {_HOW}, "
    "Tensor mean, Tensor rstd, Tensor count, Tensor rest) -> (Tensor, Tensor, Tensor)"
)


def is_supported(data: Tensor) -> bool:
    """Whether ``data`` is being compiled for the CPU; what lies on a mesh is not."""
    return (
        is_functional_tensor(data)
        and data.device.type == "cpu"
        and data.is_floating_point()
        and current_trace() is not None
        and not (in_transform() or torch.compiler.is_exporting())
    )


def standardize(
    data: Tensor, weight: Any, bias: Any, mask: Tensor, payload: Payload, dims: Any, eps: float, centred: bool,
    dtype: torch.dtype,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Result, mean, variance, rstd and the number of valid entries, computed in ``dtype``."""
    flags, zero = masks.to_bytes(mask), payload is Payload.ZERO
    found: Any = torch.ops.masked_tensor.standardize(data, weight, bias, flags, zero, dims, eps, centred, dtype)
    return tuple(found[:5])


def _payload(zero: bool) -> Payload:
    return Payload.ZERO if zero else Payload.ANY


def _forward(
    data: Tensor, weight: Any, bias: Any, flags: Tensor, zero: bool, dims: Any, eps: float, centred: bool,
    dtype: torch.dtype,
) -> Any:  # fmt: skip
    mask = flags.view(torch.bool)
    count = masks.count(mask, dims, True).to(dtype)
    found, (*_, rest) = closed.forward(data, weight, bias, mask, count, _payload(zero), tuple(dims), eps, centred)
    return *found, count, count.new_empty(0) if rest is None else rest


def _backward(
    grad: Tensor, grad_mean: Any, grad_rstd: Any, data: Tensor, weight: Any, bias: Any, flags: Tensor, zero: bool,
    dims: Any, eps: float, centred: bool, mean: Tensor, rstd: Tensor, count: Tensor, rest: Tensor,
) -> Any:  # fmt: skip
    saved = data, weight, bias, flags.view(torch.bool), count, mean, rstd, rest if rest.numel() else None
    found = closed.backward(saved, (grad, grad_mean, None, grad_rstd), _payload(zero), tuple(dims), eps, centred)
    return tuple(data.new_empty(0) if t is None else t for t in found[:3])


def _meta(
    data: Tensor, weight: Any, bias: Any, flags: Tensor, zero: bool, dims: Any, eps: float, centred: bool,
    dtype: torch.dtype,
) -> Any:  # fmt: skip
    shape = [1 if d in dims else n for d, n in enumerate(data.shape)]
    small = [data.new_empty(shape, dtype=dtype) for _ in range(5)]
    return (
        torch.empty_like(data),
        *small[:4],
        small[4] if centred and data.dtype is torch.float32 else small[4].new_empty(0),
    )


def _meta_backward(grad: Tensor, _: Any, __: Any, data: Tensor, weight: Any, bias: Any, *rest: Any) -> Any:
    parameters = (data.new_empty(0) if p is None else torch.empty_like(p) for p in (weight, bias))
    return torch.empty_like(data), *parameters


def _save_for_backward(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, zero, dims, eps, centred, _ = inputs
    _, mean, variance, rstd, count, rest = output
    ctx.mark_non_differentiable(variance, count, rest, *(() if centred else (mean,)))
    ctx.set_materialize_grads(False)
    ctx.how = zero, dims, eps, centred
    ctx.save_for_backward(*tensors, mean, rstd, count, rest)


def _differentiate(ctx: Any, grad: Any, grad_mean: Any, _: Any, grad_rstd: Any, *__: Any) -> Any:
    *given, mean, rstd, count, rest = ctx.saved_tensors
    if torch.is_grad_enabled():  # a gradient of these gradients may be asked for
        return *_differentiate_formula(ctx, given, count, (grad, grad_mean, None, grad_rstd)), *(None,) * 6
    grad = torch.zeros_like(given[0]) if grad is None else grad
    found = torch.ops.masked_tensor.standardize_backward(
        grad, grad_mean, grad_rstd, *given, *ctx.how, mean, rstd, count, rest
    )
    return *(None if p is None else g for p, g in zip(given[:3], found, strict=True)), *(None,) * 6


def _differentiate_formula(ctx: Any, given: Any, count: Tensor, grads: Any) -> Any:
    *tensors, flags = given
    zero, *how = ctx.how
    tensors = *tensors, masks.from_bytes(flags), count
    needed = *ctx.needs_input_grad[:3], False, False
    return differentiate(formula, tensors, (_payload(zero), *how), grads, needed)[:3]


LIBRARY.impl("standardize", _forward, "CompositeExplicitAutograd")
LIBRARY.impl("standardize_backward", _backward, "CompositeExplicitAutograd")
torch.library.register_fake("masked_tensor::standardize", _meta, lib=LIBRARY)
torch.library.register_fake("masked_tensor::standardize_backward", _meta_backward, lib=LIBRARY)
torch.library.register_autograd(
    "masked_tensor::standardize", _differentiate, setup_context=_save_for_backward, lib=LIBRARY
)
