"""Attention of short sequences together: one call of the kernel, where a call for each length costs more than padding.

Each sequence is a row of a copy. What fills a row up is its own last token again, so that a value of one sequence never
meets another's, and nothing lies there that was not in the sequence anyway.
"""

import torch
from torch import Tensor

from .. import kernels, settings
from ..compat import is_readable_memory
from ..kernels.attention.fused import Run
from ..kernels.attention.rows import Rows, formula
from .grid import Grid


def rows_of(grid: Grid, runs: list[Run], size: int) -> Rows | None:
    """The rows, if one call for all of them costs less than one for each run; ``size``: elements of a token."""
    if len(runs) == 1 or not is_readable_memory(grid.index):
        return None
    longest, number = max(run.queries for run in runs), sum(run.number for run in runs)
    filled = number * longest**2 - sum(run.number * run.queries**2 for run in runs)
    if filled * size > settings.TOGETHER * (len(runs) - 1):
        return None
    if Rows not in grid.known:
        grid.known[Rows] = _rows([n for n in grid.sizes if n])
    found: Rows = grid.known[Rows]
    return found


def _rows(sizes: list[int]) -> Rows:
    lengths, rank = torch.tensor(sizes)[:, None], torch.arange(max(sizes))
    last = lengths.cumsum(0) - 1
    tokens = torch.minimum(last - lengths + 1 + rank, last)
    exists = rank < lengths
    hidden = torch.where(exists, 0.0, -torch.inf)[:, None, None]
    return Rows((len(sizes), max(sizes)), tokens.flatten(), exists.flatten().nonzero().squeeze(1), hidden)


def attend(
    rows: Rows, runs: list[Run], given: tuple[Tensor, ...], dropout: float, causal: bool, scale: float | None,
    grouped: bool,
) -> Tensor:  # fmt: skip
    """``(N, H, D)`` of queries, keys and values to ``(N, H, D)``."""
    q, k, v = given
    if grouped and k.shape[1] and q.shape[1] != k.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    hidden = None if causal else rows.hidden.to(q.dtype)  # no query sees what comes after it
    out: Tensor = kernels.run("attention_rows", formula, (q, k, v), rows, runs, hidden, dropout, causal, scale)
    return out
