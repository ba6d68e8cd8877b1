"""Attention over runs with dropout of weights: the kept ones are drawn from a seed, and drawn again in backward."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .fused import Run, split_runs, weigh, widened


def draw_kept(seed: Tensor, dropout: float, runs: list[Run], q: Tensor) -> list[Tensor]:
    """For each run by what each weight ``(sequences, H, queries, keys)`` is multiplied: 0, or ``1 / (1 - dropout)``."""
    generator = torch.Generator().manual_seed(int(seed))
    dtype = widened(q[:0]).dtype
    kept = []
    for run in runs:
        chosen = torch.empty(run.number, q.shape[1], run.queries, run.keys, dtype=dtype)
        chosen.bernoulli_(1 - dropout, generator=generator)
        kept.append(chosen if dropout == 1 else chosen.div_(1 - dropout))
    return kept


def attend(
    q: Tensor, k: Tensor, v: Tensor, runs: list[Run], kept: Sequence[Tensor], causal: bool, scale: float | None
) -> Tensor:
    """``(N, H, D)`` of queries, keys and values to ``(N, H, D)``."""
    given: Any = (split_runs(x, runs, asks) for x, asks in ((q, True), (k, False), (v, False)))
    parts = []
    for a, b, c, keep in zip(*given, kept, strict=True):
        weights, _ = weigh(widened(a), widened(b), None, causal, scale)
        parts.append((weights * keep @ widened(c)).to(q.dtype).transpose(1, 2).flatten(0, 1))
    return torch.cat(parts)
