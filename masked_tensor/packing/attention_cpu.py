"""The fused attention kernel of the CPU over runs: one node of the graph for all of them.

Outputs and gradients are written into one memory each, so that nothing is held twice for the backward pass: the
projection behind attention keeps the very tensor that attention keeps.

The kernel's gradients have no derivative.  Where one is wanted (``create_graph=True``) they are computed by the formula
of attention instead, in plain ops.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from ..kernels.precision import rounds_noticeably
from .blocks import Run, split_runs

_aten: Any = torch.ops.aten
of_kernel = _aten._scaled_dot_product_flash_attention_for_cpu.default
gradient_of_kernel = _aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def is_supported(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool) -> bool:
    """Whether torch would choose the kernel for ``(B, H, T, D)``, and its gradient is all that is asked for."""
    if q.device.type != "cpu" or q.shape[1] != k.shape[1] or (mask is not None and mask.requires_grad):
        return False
    choice: int = torch._fused_sdp_choice(q, k, v, mask, dropout, causal)
    return choice == SDPBackend.FLASH_ATTENTION.value


def kernel_bias(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """What the kernel adds for a mask: a bool one hides by -inf."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def forward(
    q: Tensor, k: Tensor, v: Tensor, runs: list[Run], masks: list[Any], causal: bool, scale: float | None
) -> tuple[Tensor, list[Tensor]]:
    """The output ``(N, H, D)``, and for each run what the backward pass wants to know of the scores."""
    result = torch.empty_like(q, memory_format=torch.contiguous_format)
    sums = []
    given = [split_runs(x, runs, asks) for x, asks in ((q, True), (k, False), (v, False), (result, True))]
    for mask, a, b, c, out in zip(masks, *given, strict=True):
        part, total = of_kernel(a, b, c, 0.0, causal, attn_mask=mask, scale=scale)
        out.copy_(part)
        sums.append(total)
    return result, sums


def backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, result: Tensor, sums: list[Tensor], runs: list[Run],
    masks: list[Any], causal: bool, scale: float | None,
) -> list[Tensor]:  # fmt: skip
    """The gradients of queries, keys and values."""
    grads = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v)]
    given = [split_runs(x, runs, asks) for x, asks in ((grad, True), (q, True), (k, False), (v, False), (result, True))]
    wanted = [split_runs(x, runs, asks) for x, asks in zip(grads, (True, False, False), strict=True)]
    for args, targets, total, mask in zip(
        zip(*given, strict=True), zip(*wanted, strict=True), sums, masks, strict=True
    ):
        parts = gradient_of_kernel(*args, total, 0.0, causal, attn_mask=mask, scale=scale)
        for target, part in zip(targets, parts, strict=True):
            target.copy_(part)
    return grads


def formula(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, runs: list[Run], masks: list[Any], causal: bool, scale: float | None
) -> list[Tensor]:
    """The gradients of queries, keys and values, as functions that have derivatives of every order."""
    g, a, b, c = (split_runs(x, runs, asks) for x, asks in ((grad, True), (q, True), (k, False), (v, False)))
    found = [_formula(*parts, causal, scale) for parts in zip(g, a, b, c, masks, strict=True)]
    return [torch.cat([part.transpose(1, 2).flatten(0, 1) for part in parts]) for parts in zip(*found, strict=True)]


def _formula(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None
) -> tuple[Tensor, ...]:
    """Of one run: with weights ``w = softmax(q k scale + mask)`` the gradient of the scores is ``w (d - sum(w d))``."""
    wide = [x.float() if rounds_noticeably(x.dtype) else x for x in (grad, q, k, v)]
    g, a, b, c = wide
    factor = a.shape[-1] ** -0.5 if scale is None else scale
    scores = a @ b.mT * factor
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    weights = scores.softmax(-1)
    terms = weights * (g @ c.mT)
    slopes = (terms - weights * terms.sum(-1, keepdim=True)) * factor
    return tuple(x.to(grad.dtype) for x in (slopes @ b, slopes.mT @ a, weights.mT @ g))


class Attend(torch.autograd.Function):
    """``(N, H, D)`` of queries, keys and values to ``(N, H, D)``; ``masks``: for each run a bias, or None."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, runs: list[Run], masks: list[Any], causal: bool, scale: float | None
    ) -> Tensor:
        result, sums = forward(q, k, v, runs, masks, causal, scale)
        ctx.save_for_backward(q, k, v, result, *sums)
        ctx.settings = runs, masks, causal, scale
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        q, k, v, result, *sums = ctx.saved_tensors
        runs, masks, causal, scale = ctx.settings
        if torch.is_grad_enabled():  # a gradient of these gradients may be asked for
            return *formula(grad, q, k, v, runs, masks, causal, scale), None, None, None, None
        return *backward(grad, q, k, v, result, sums, runs, masks, causal, scale), None, None, None, None
