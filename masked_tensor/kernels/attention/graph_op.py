"""Attention over packed batches as one op of a compiled graph, which knows nothing of how long the sequences are.

The op reads the lengths when the graph runs, and its body is what runs outside of graphs.
"""

from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from . import dropped
from . import fused as kernel
from .fused import Run
from .graph_library import LIBRARY

LIBRARY.define(
    "attend(Tensor q, Tensor k, Tensor v, Tensor lengths, Tensor? seed, float dropout, bool causal, float? scale) "
    "-> (Tensor, Tensor)"
)
LIBRARY.define(
    "attend_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor sums, Tensor lengths, Tensor? seed, "
    "float dropout, bool causal, float? scale) -> (Tensor, Tensor, Tensor)"
)


def is_supported(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the op takes values ``(N, H, D)``: of one size, on the CPU."""
    return q.device.type == "cpu" and q.shape[1:] == k.shape[1:] == v.shape[1:] and q.is_floating_point()


def attend(
    q: Tensor, k: Tensor, v: Tensor, lengths: Tensor, dropout: float, causal: bool, scale: float | None
) -> Tensor:
    """``(N, H, D)`` of queries, keys and values of the same sequences to ``(N, H, D)``."""
    # the graph draws a seed, and the op from it what is dropped, forward and backward
    seed = torch.randint(torch.iinfo(torch.int32).max, (), device=q.device) if dropout else None
    result: Tensor = torch.ops.masked_tensor.attend(q, k, v, lengths, seed, dropout, causal, scale)[0]
    return result


def _runs(lengths: Tensor) -> list[Run]:
    runs, at = [], 0
    for n, several in groupby(lengths.tolist()):
        number = len(list(several))
        if n:
            runs.append(Run(at, number, n, n))
        at += number
    return runs


def _forward(
    q: Tensor, k: Tensor, v: Tensor, lengths: Tensor, seed: Tensor | None, dropout: float, causal: bool,
    scale: float | None,
) -> Any:  # fmt: skip
    runs = _runs(lengths)
    if not runs:
        return *_like(q), _sums_like(q)
    if seed is not None:
        kept = dropped.draw_kept(seed, dropout, runs, q)
        return dropped.attend(q, k, v, runs, kept, causal, scale), _sums_like(q).zero_()
    out, totals = kernel.attend(q, k, v, runs, [None] * len(runs), causal, scale)
    return out, torch.cat([total.transpose(1, 2).flatten(0, 1) for total in totals])


def _backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, sums: Tensor, lengths: Tensor, seed: Tensor | None,
    dropout: float, causal: bool, scale: float | None,
) -> Any:  # fmt: skip
    runs = _runs(lengths)
    if not runs:
        return _like(q, k, v)
    if seed is not None:
        return tuple(_formula(grad, q, k, v, runs, seed, dropout, causal, scale))
    parts = sums.split([run.number * run.queries for run in runs])
    totals = [
        p.unflatten(0, (run.number, run.queries)).transpose(1, 2).contiguous()
        for p, run in zip(parts, runs, strict=True)
    ]
    return tuple(kernel.attend_backward(grad, q, k, v, out, totals, runs, [None] * len(runs), causal, scale))


def _formula(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, runs: list[Run], seed: Tensor | None, dropout: float, causal: bool,
    scale: float | None,
) -> list[Tensor]:  # fmt: skip
    kept = None if seed is None else dropped.draw_kept(seed, dropout, runs, q)
    return kernel.differentiate(grad, q, k, v, runs, [None] * len(runs), causal, scale, kept)


def _sums_like(q: Tensor) -> Tensor:
    return q.new_empty(q.shape[:2], dtype=torch.float64 if q.dtype is torch.float64 else torch.float32)


def _like(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in tensors)


def _meta(q: Tensor, *_: Any) -> Any:
    return *_like(q), _sums_like(q)


def _save_for_backward(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, lengths, seed, *ctx.options = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(q, k, v, *output, lengths, seed)


def _differentiate(ctx: Any, grad: Tensor, _: Any) -> Any:
    grads = torch.ops.masked_tensor.attend_backward(grad, *ctx.saved_tensors, *ctx.options)
    return *grads, *(None,) * 5


def _saved_again(ctx: Any, inputs: Any, output: Any) -> None:
    *given, _, _, lengths, seed, dropout, causal, scale = inputs
    ctx.options = dropout, causal, scale
    ctx.save_for_backward(*given, lengths, seed)


def _differentiated_again(ctx: Any, *grads: Tensor) -> Any:
    *given, lengths, seed = ctx.saved_tensors
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in given]
        grad, q, k, v = leaves
        parts = _formula(grad, q, k, v, _runs(lengths), seed, *ctx.options)
    return *torch.autograd.grad(parts, leaves, grads), *(None,) * 7


LIBRARY.impl("attend", _forward, "CompositeExplicitAutograd")
LIBRARY.impl("attend_backward", _backward, "CompositeExplicitAutograd")
torch.library.register_fake("masked_tensor::attend", _meta, lib=LIBRARY)
torch.library.register_fake("masked_tensor::attend_backward", lambda grad, q, k, v, *rest: _like(q, k, v), lib=LIBRARY)
torch.library.register_autograd("masked_tensor::attend", _differentiate, setup_context=_save_for_backward, lib=LIBRARY)
torch.library.register_autograd(
    "masked_tensor::attend_backward", _differentiated_again, setup_context=_saved_again, lib=LIBRARY
)
