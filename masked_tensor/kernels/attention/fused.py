"""The fused attention kernel of the CPU over runs: one node of the graph for all of them.

Outputs and gradients are written into one memory each, so that nothing is held twice for the backward pass: the
projection behind attention keeps the very tensor that attention keeps.

The kernel's gradients have no derivative.  Where one is wanted (``create_graph=True``) they are computed by the formula
of attention instead, in plain ops.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend

from ...compat import is_tracked
from ...fill import write_constant_
from ...masks import compact
from ..precision import rounds_noticeably
from ..table import KERNELS, Kernel

_aten: Any = torch.ops.aten
of_kernel = _aten._scaled_dot_product_flash_attention_for_cpu.default
gradient_of_kernel = _aten._scaled_dot_product_flash_attention_for_cpu_backward.default


class Run(NamedTuple):
    """Sequences that lie side by side, with one number of queries and one number of keys each."""

    first: int
    number: int
    queries: int
    keys: int

    @property
    def sequences(self) -> slice:
        """Which sequences of the batch."""
        return slice(self.first, self.first + self.number)


def formula(
    q: Tensor, k: Tensor, v: Tensor, runs: list[Run], masks: list[Any], dropout: float, causal: bool,
    scale: float | None, grouped: bool,
) -> Tensor:  # fmt: skip
    """``(N, H, D)`` of queries, keys and values to ``(N, H, D)``; ``masks``: for each run what torch takes, or None.

    One call of torch's own attention for each run.
    """
    given = zip(split_runs(q, runs, True), split_runs(k, runs, False), split_runs(v, runs, False), masks, strict=True)
    parts = [
        F.scaled_dot_product_attention(a, b, c, mask, dropout, causal, scale=scale, enable_gqa=grouped)
        for a, b, c, mask in given
    ]
    return torch.cat([part.transpose(1, 2).flatten(0, 1) for part in parts])


def split_runs(x: Tensor, runs: list[Run], queries: bool) -> list[Tensor]:
    """Each run's part of ``(N, H, D)``, as ``(sequences, H, T, D)``: one split, whose gradient is one cat."""
    lengths = [run.queries if queries else run.keys for run in runs]
    parts = x.split([run.number * n for run, n in zip(runs, lengths, strict=True)])
    return [p.unflatten(0, (run.number, n)).transpose(1, 2) for p, run, n in zip(parts, runs, lengths, strict=True)]


def serves(
    q: Tensor, k: Tensor, v: Tensor, runs: list[Run], masks: list[Any], dropout: float, causal: bool, *_: Any
) -> str | None:
    number, queries, keys = runs[0][1:]
    parts = (q, queries), (k, keys), (v, keys)
    first = [x[: number * n].unflatten(0, (number, n)).transpose(1, 2) for x, n in parts]
    return why_not((q, k, v), first, masks[0], dropout, causal)


def why_not(
    given: Sequence[Tensor], first: Sequence[Tensor], mask: Tensor | None, dropout: float, causal: bool
) -> str | None:
    """Whether torch would choose the kernel for ``first``, ``(B, H, T, D)``, and all that is asked is its gradient."""
    if not any(is_tracked(x) for x in given):
        return "where nothing is differentiated torch's own call costs no more"
    q, k, v = first
    if q.shape[1] != k.shape[1] or (mask is not None and mask.requires_grad):
        return "it repeats no heads, and has no gradient of a mask"
    choice: int = torch._fused_sdp_choice(q, k, v, mask, dropout, causal)
    return None if choice == SDPBackend.FLASH_ATTENTION.value else "torch would choose another kernel"


def kernel_bias(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """What the kernel adds for a mask: a bool one hides by -inf."""
    return mask if mask is None or mask.dtype is not torch.bool else additive(mask, dtype)


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where ``mask`` is True, else -inf, in no more memory."""
    small = compact(mask)
    found = torch.zeros(small.shape, dtype=dtype, device=mask.device)
    write_constant_(found, small, -torch.inf)
    return found.expand(mask.shape)


def attend(
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


def attend_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, result: Tensor, sums: Sequence[Tensor], runs: list[Run],
    masks: Sequence[Any], causal: bool, scale: float | None,
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


def differentiate(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, runs: list[Run], masks: Sequence[Any], causal: bool,
    scale: float | None, kept: Sequence[Any] | None = None,
) -> list[Tensor]:  # fmt: skip
    """The gradients of queries, keys and values, as functions that have derivatives of every order.

    ``kept``: for each run by what each weight is multiplied, where some are dropped.
    """
    g, a, b, c = (split_runs(x, runs, asks) for x, asks in ((grad, True), (q, True), (k, False), (v, False)))
    kept = [None] * len(runs) if kept is None else kept
    runs_of_all: Any = zip(g, a, b, c, masks, kept, strict=True)
    found = [_differentiate_run(d, x, y, z, m, w, causal, scale) for d, x, y, z, m, w in runs_of_all]
    return [torch.cat([part.transpose(1, 2).flatten(0, 1) for part in parts]) for parts in zip(*found, strict=True)]


def _differentiate_run(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, kept: Tensor | None, causal: bool,
    scale: float | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """One run: with weights ``w = softmax(q k scale + mask)`` the gradient of the scores is ``w (d - sum(w d))``."""
    g, a, b, c = (widened(x) for x in (grad, q, k, v))
    weights, factor = weigh(a, b, mask, causal, scale)
    used, slopes = weights, g @ c.mT
    if kept is not None:
        used, slopes = weights * kept, slopes * kept
    terms = weights * slopes
    slopes = (terms - weights * terms.sum(-1, keepdim=True)) * factor
    return tuple(x.to(grad.dtype) for x in (slopes @ b, slopes.mT @ a, used.mT @ g))


def widened(x: Tensor) -> Tensor:
    """In a precision in which sums do not round noticeably."""
    return x.float() if rounds_noticeably(x.dtype) else x


def weigh(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> tuple[Tensor, float]:
    """The weights of one run, and by what the scores are multiplied."""
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.mT * factor
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return scores.softmax(-1), factor


def forward(
    q: Tensor, k: Tensor, v: Tensor, runs: list[Run], masks: list[Any], dropout: float, causal: bool,
    scale: float | None, *_: Any,
) -> tuple[Tensor, tuple[Any, ...]]:  # fmt: skip
    """The same by the kernel itself."""
    biases = [kernel_bias(mask, q.dtype) for mask in masks]
    result, sums = attend(q, k, v, runs, biases, causal, scale)
    return result, (q, k, v, result, *sums, *biases)


def backward(
    saved: Any, grad: Tensor, runs: list[Run], masks: Any, dropout: float, causal: bool, scale: float | None, *_: Any
) -> list[Tensor]:
    """The gradients of queries, keys and values."""
    q, k, v, result, *rest = saved
    return attend_backward(grad, q, k, v, result, rest[: len(runs)], runs, rest[len(runs) :], causal, scale)


def twice(
    saved: Any, grad: Tensor, runs: list[Run], masks: Any, dropout: float, causal: bool, scale: float | None, *_: Any
) -> list[Tensor]:
    """The same, where a gradient of these gradients may be asked for."""
    q, k, v, _, *rest = saved
    return differentiate(grad, q, k, v, runs, rest[len(runs) :], causal, scale)


KERNELS["attention", "cpu"] = Kernel(forward, backward, serves, twice)
