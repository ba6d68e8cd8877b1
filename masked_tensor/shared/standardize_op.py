"""Standardizing as one op of a compiled graph: its body is what runs outside of graphs, in the cache.

A compiler makes one loop for each pass over the data, and keeps none of them in the cache: of a random mask the graph
takes two to three times as long as the op.  What is exported has the formula's steps, which every runtime knows.
"""

from typing import Any

import torch
from torch import Tensor

from ..compat import current_trace, in_transform
from ..pair import Payload
from . import fused

_LIBRARY = torch.library.Library("masked_tensor", "FRAGMENT")  # lives as long as the process
_GIVEN = "Tensor data, Tensor? weight, Tensor? bias, Tensor mask, Tensor count, bool zero, int[] dims"
_LIBRARY.define(f"standardize({_GIVEN}, float eps, bool centred) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
_LIBRARY.define(
    f"standardize_backward(Tensor grad, Tensor? grad_mean, Tensor? grad_rstd, {_GIVEN}, float eps, bool centred, "
    "Tensor mean, Tensor rstd, Tensor rest) -> (Tensor, Tensor, Tensor)"
)


def is_supported(data: Tensor) -> bool:
    """Whether ``data`` is being compiled for the CPU."""
    return (
        data.device.type == "cpu"
        and data.is_floating_point()
        and current_trace() is not None
        and not (in_transform() or torch.compiler.is_exporting())
    )


def standardize(
    data: Tensor, weight: Any, bias: Any, mask: Tensor, count: Tensor, payload: Payload, dims: Any, eps: float,
    centred: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """As ``fused.forward``."""
    found: Any = torch.ops.masked_tensor.standardize(
        data, weight, bias, mask, count, payload is Payload.ZERO, dims, eps, centred
    )
    return tuple(found)


def _payload(zero: bool) -> Payload:
    return Payload.ZERO if zero else Payload.ANY


def _forward(
    data: Tensor, weight: Any, bias: Any, mask: Tensor, count: Tensor, zero: bool, dims: Any, eps: float, centred: bool
) -> Any:
    *found, rest = fused.forward(data, weight, bias, mask, count, _payload(zero), tuple(dims), eps, centred)
    return *found, count.new_empty(0) if rest is None else rest


def _backward(
    grad: Tensor, grad_mean: Any, grad_rstd: Any, data: Tensor, weight: Any, bias: Any, mask: Tensor, count: Tensor,
    zero: bool, dims: Any, eps: float, centred: bool, mean: Tensor, rstd: Tensor, rest: Tensor,
) -> Any:  # fmt: skip
    saved = data, weight, bias, mask, count, mean, rstd, rest if rest.numel() else None
    found = fused.backward(saved, (grad, grad_mean, None, grad_rstd), _payload(zero), tuple(dims), centred)
    return tuple(data.new_empty(0) if t is None else t for t in found)


def _meta(data: Tensor, weight: Any, bias: Any, mask: Tensor, count: Tensor, *rest: Any) -> Any:
    corrected = rest[-1] and data.dtype is torch.float32
    small = (torch.empty_like(count) for _ in range(3))
    return torch.empty_like(data), *small, torch.empty_like(count) if corrected else count.new_empty(0)


def _meta_backward(grad: Tensor, _: Any, __: Any, data: Tensor, weight: Any, bias: Any, *rest: Any) -> Any:
    parameters = (data.new_empty(0) if p is None else torch.empty_like(p) for p in (weight, bias))
    return torch.empty_like(data), *parameters


def _save_for_backward(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.zero, ctx.dims, ctx.eps, ctx.centred = inputs
    _, mean, variance, rstd, rest = output
    ctx.mark_non_differentiable(variance, rest, *(() if ctx.centred else (mean,)))
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*tensors, mean, rstd, rest)


def _differentiate(ctx: Any, grad: Any, grad_mean: Any, _: Any, grad_rstd: Any, __: Any) -> Any:
    data, weight, bias, mask, count, *made = ctx.saved_tensors
    grad = torch.zeros_like(data) if grad is None else grad
    found = torch.ops.masked_tensor.standardize_backward(
        grad, grad_mean, grad_rstd, data, weight, bias, mask, count, ctx.zero, ctx.dims, ctx.eps, ctx.centred, *made
    )
    return *(None if p is None else g for p, g in zip((data, weight, bias), found, strict=True)), *(None,) * 6


_LIBRARY.impl("standardize", _forward, "CompositeExplicitAutograd")
_LIBRARY.impl("standardize_backward", _backward, "CompositeExplicitAutograd")
torch.library.register_fake("masked_tensor::standardize", _meta, lib=_LIBRARY)
torch.library.register_fake("masked_tensor::standardize_backward", _meta_backward, lib=_LIBRARY)
torch.library.register_autograd(
    "masked_tensor::standardize", _differentiate, setup_context=_save_for_backward, lib=_LIBRARY
)
