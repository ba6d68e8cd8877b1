"""Attention over flat tokens: queries, keys and values ``(.., N, D)`` of plain tensors, kept within each sequence."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..compat import in_transform, is_readable_memory
from ..kernels.attention import cuda
from ..kernels.attention.fused import Run, formula, split_runs
from ..kernels.precision import rounds_noticeably
from ..op import NoRule
from .attention import attend_tokens, scaled_dot_product_attention
from .blocks import runs_of
from .dim_order import Order
from .grid import Grid
from .packed import Packed
from .scatter_gather import gather_tokens, scatter_tokens

_SEEN_AS: Order = ((0,), (2,), (1,), (3,))  # (B, H, T, D) of values (N, H, D)


def attend_within(
    grid: Grid, query: Tensor, key: Tensor, value: Tensor, dropout: float = 0.0, causal: bool = False,
    scale: float | None = None, grouped: bool = False, window: int | None = None, softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``softmax(query @ key.T * scale) @ value`` of each sequence of ``grid``, ``(.., N, D)`` like the query.

    ``window`` lets a query see keys less than so many steps away; ``softcap`` bounds scores by ``c * tanh(score / c)``;
    ``sinks`` ``(H,)`` are one more score of each head, whose key has no value.
    """
    q, k, v = (
        x.flatten(0, -3).transpose(0, 1) if x.dim() > 2 else x[:, None] for x in (query, key, value)
    )  # (N, H, D)
    if not grid.host:
        out = _traced(grid, q, k, v, dropout, causal, scale, grouped, window, softcap, sinks)
    elif grid.index.shape[0] == 0:
        out = q.new_zeros(*q.shape[:2], v.shape[-1]) + 0 * (q.sum() + k.sum() + v.sum())
    else:
        window = None if window is None or window >= grid.shape[1] else window
        if softcap is None and sinks is None and not in_transform():
            out = _by_kernel(grid, q, k, v, window, dropout, causal, scale, grouped)
        else:
            out = _by_run(grid, (q, k, v), _within_window(grid, window), dropout, causal, scale, softcap, sinks)
    return out.transpose(0, 1).reshape(*query.shape[:-1], v.shape[-1])


def _by_kernel(
    grid: Grid, q: Tensor, k: Tensor, v: Tensor, window: int | None, dropout: float, causal: bool,
    scale: float | None, grouped: bool,
) -> Tensor:  # fmt: skip
    direct = grouped or q.shape[1] == k.shape[1] == v.shape[1]  # a hot path: no record is made
    try:
        if direct and cuda.is_supported(q, k, v):
            return cuda.attend(q, k, v, grid, grid, dropout, causal, scale, window=window)[0]
        mask = _within_window(grid, window)
        if direct and mask is None and is_readable_memory(grid.index):
            return attend_tokens((q, k, v), grid, grid, dropout, causal, scale, grouped)
        query, key, value = (Packed(x, grid, _SEEN_AS) for x in (q, k, v))
        found = scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale=scale, enable_gqa=grouped)
    except NoRule:
        return _by_run(grid, (q, k, v), _within_window(grid, window), dropout, causal, scale, None, None)
    return found.values.reshape(*q.shape[:2], v.shape[-1])


def _traced(
    grid: Grid, q: Tensor, k: Tensor, v: Tensor, dropout: float, causal: bool, scale: float | None, grouped: bool,
    window: int | None, softcap: float | None, sinks: Tensor | None,
) -> Tensor:  # fmt: skip
    """In a graph, where no length is known: by an op of packed batches, or padded."""
    if softcap is None and sinks is None and cuda.is_supported(q, k, v):
        try:
            return cuda.attend(q, k, v, grid, grid, dropout, causal, scale, window=window)[0]
        except NoRule:
            pass
    if window is None and softcap is None and sinks is None:
        query, key, value = (Packed(x, grid, _SEEN_AS) for x in (q, k, v))
        try:
            found = scaled_dot_product_attention(
                query, key, value, None, dropout, causal, scale=scale, enable_gqa=grouped
            )
        except NoRule:
            pass
        else:
            return found.values.reshape(*q.shape[:2], v.shape[-1])
    batch, time = grid.shape
    k, v = _as_many_heads(q, k, v)
    a, b, c = (scatter_tokens(x, grid).unflatten(0, (batch, time)).transpose(1, 2) for x in (q, k, v))
    place, valid = torch.arange(time, device=q.device), grid.mask
    gap = place[:, None] - place
    seen = valid[:, None, :] & (gap >= 0 if causal else gap == gap)
    if window is not None:
        seen = seen & (gap.abs() < window)
    seen = (seen | ~valid[:, :, None])[:, None]  # of what is not there nothing is kept, but it must not be NaN
    if softcap is None and sinks is None:
        out = F.scaled_dot_product_attention(a, b, c, seen, dropout, scale=scale)
    else:
        out = _by_formula(a, b, c, seen, dropout, False, scale, softcap, sinks)
    return gather_tokens(out.transpose(1, 2).flatten(0, 1), grid)


def _as_many_heads(q: Tensor, *given: Tensor) -> list[Tensor]:
    """Keys and values ``(N, H, D)`` for each head of the queries."""
    groups = q.shape[1] // given[0].shape[1]
    return [x.repeat_interleave(groups, 1) if groups > 1 else x for x in given]


def _by_run(
    grid: Grid, given: tuple[Tensor, ...], mask: Tensor | None, dropout: float, causal: bool, scale: float | None,
    softcap: float | None, sinks: Tensor | None,
) -> Tensor:  # fmt: skip
    """Sequences of one length that lie side by side at once, by plain ops that have derivatives of every order."""
    q, k, v = given
    k, v = _as_many_heads(q, k, v)
    runs = runs_of(grid, grid)
    seen = [None if mask is None else _of_run(mask, grid, run) for run in runs]
    if softcap is None and sinks is None:
        shown = [s.tril() if causal and s is not None else s for s in seen]
        return formula(q, k, v, runs, shown, dropout, causal and mask is None, scale, False)
    pieces = (split_runs(x, runs, True) for x in (q, k, v))
    parts = [
        _by_formula(a, b, c, s, dropout, causal, scale, softcap, sinks)
        for a, b, c, s in zip(*pieces, seen, strict=True)
    ]
    return torch.cat([part.transpose(1, 2).flatten(0, 1) for part in parts])


def _by_formula(
    q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None, dropout: float, causal: bool, scale: float | None,
    softcap: float | None, sinks: Tensor | None,
) -> Tensor:  # fmt: skip
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if causal:
        earlier = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        seen = earlier if seen is None else seen & earlier
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    wide = scores.float() if rounds_noticeably(scores.dtype) else scores
    if sinks is not None:
        extra = sinks.to(wide.dtype).reshape(1, -1, 1, 1).expand(*wide.shape[:-1], 1)
        weights = torch.cat([wide, extra], -1).softmax(-1)[..., :-1]
    else:
        weights = wide.softmax(-1)
    weights = F.dropout(weights.to(q.dtype), dropout, dropout > 0)
    return weights @ v


def _within_window(grid: Grid, window: int | None) -> Tensor | None:
    """Which places of a sequence are less than ``window`` steps apart: bool, ``(T, T)``; all layers share one."""
    if window is None:
        return None
    key: Any = ("window", window)
    if key not in grid.known:
        place = torch.arange(grid.shape[1], device=grid.device)
        grid.known[key] = (place[:, None] - place).abs() < window
    found: Tensor = grid.known[key]
    return found


def _of_run(mask: Tensor, grid: Grid, run: Run) -> Tensor:
    """The part of a band ``(T, T)`` between the tokens of a run, ``(sequences or 1, 1, t, t)``."""
    size = run.queries
    if grid.contiguous:  # a band looks alike wherever a sequence begins
        return mask[:size, :size]
    start = sum(grid.sizes[: run.first])
    place = grid.time[start : start + run.number * size].view(run.number, size)
    return mask[place[:, :, None], place[:, None, :]][:, None]
