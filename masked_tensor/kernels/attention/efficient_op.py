"""The efficient kernel of GPUs as one op of a graph: the shapes of torch's own derivative are not known there."""

from typing import Any

import torch
from torch import Tensor

from .graph_library import LIBRARY

_aten: Any = torch.ops.aten
LIBRARY.define(
    "efficient(Tensor q, Tensor k, Tensor v, Tensor starts, Tensor key_starts, SymInt most, SymInt key_most, "
    "float dropout, bool causal, float scale) -> (Tensor, Tensor, Tensor, Tensor)",
    tags=(torch.Tag.nondeterministic_seeded, torch.Tag.needs_exact_strides),
)
LIBRARY.define(
    "efficient_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor sums, Tensor seed, "
    "Tensor offset, Tensor starts, Tensor key_starts, SymInt most, SymInt key_most, float dropout, bool causal, "
    "float scale) -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.needs_exact_strides,),
)


def attend(
    q: Tensor, k: Tensor, v: Tensor, starts: Tensor, key_starts: Tensor, most: int, key_most: int, dropout: float,
    causal: bool, scale: float,
) -> Tensor:  # fmt: skip
    """``(1, N, H, D)`` of queries, keys and values to ``(1, N, H, D)``."""
    given = q, k, v, starts, key_starts, most, key_most, dropout, causal, scale
    result: Tensor = torch.ops.masked_tensor.efficient(*given)[0]
    return result


def _forward(
    q: Tensor, k: Tensor, v: Tensor, starts: Tensor, key_starts: Tensor, most: int, key_most: int, dropout: float,
    causal: bool, scale: float,
) -> Any:  # fmt: skip
    given = q, k, v, None, starts, key_starts, most, key_most, dropout, int(causal), True
    return _aten._efficient_attention_forward(*given, scale=scale)[:4]


def _backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, sums: Tensor, seed: Tensor, offset: Tensor,
    starts: Tensor, key_starts: Tensor, most: int, key_most: int, dropout: float, causal: bool, scale: float,
) -> Any:  # fmt: skip
    grad = grad if grad.stride(-1) == 1 else grad.contiguous()
    given = grad, q, k, v, None, out, starts, key_starts, most, key_most, sums, dropout, seed, offset, int(causal)
    return _aten._efficient_attention_backward(*given, False, scale=scale)[:3]


def _save_for_backward(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, starts, key_starts, *ctx.options = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(q, k, v, *output, starts, key_starts)


def _differentiate(ctx: Any, grad: Tensor, *_: Any) -> Any:
    grads = torch.ops.masked_tensor.efficient_backward(grad, *ctx.saved_tensors, *ctx.options)
    return *grads, *(None,) * 7


LIBRARY.impl("efficient", _forward, "CUDA")
LIBRARY.impl("efficient_backward", _backward, "CUDA")
torch.library.register_fake("masked_tensor::efficient", _forward, lib=LIBRARY)
torch.library.register_fake(
    "masked_tensor::efficient_backward",
    lambda grad, q, k, v, *rest: tuple(torch.empty_like(x) for x in (q, k, v)),
    lib=LIBRARY,
)
torch.library.register_autograd(
    "masked_tensor::efficient", _differentiate, setup_context=_save_for_backward, lib=LIBRARY
)
