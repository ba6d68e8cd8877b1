"""Attention of short sequences together: one call of the kernel, where a call for each length costs more than padding.

Each sequence is a row of a copy. What fills a row up is its own last token again, so that a value of one sequence never
meets another's, and nothing lies there that was not in the sequence anyway.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import settings
from ..kernels import attention
from ..kernels.attention import Run
from .grid import Grid


class Rows(NamedTuple):
    """The sequences of a grid that have tokens, as rows of one length."""

    shape: tuple[int, int]
    tokens: Tensor  #: the token at each place of the rows
    places: Tensor  #: the place of each token
    hidden: Tensor  #: (rows, 1, 1, time): -inf where a row is filled up

    def spread(self, x: Tensor) -> Tensor:
        """``(N, H, D)`` as ``(rows, H, time, D)``."""
        return x.index_select(0, self.tokens).view(*self.shape, *x.shape[1:]).transpose(1, 2)

    def stored(self, x: Tensor) -> Tensor:
        """``(rows, H, time, D)`` as ``(N, H, D)``."""
        return x.transpose(1, 2).flatten(0, 1).index_select(0, self.places)


def rows_of(grid: Grid, runs: list[Run], size: int) -> Rows | None:
    """The rows, if one call for all of them costs less than one for each run; ``size``: elements of a token."""
    if len(runs) == 1 or not grid.index.is_cpu:
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
    if not attention.serves(q, k, v, [Run(0, 1, len(q), len(k))], [None], dropout, causal):
        found: Tensor = Together.apply(q, k, v, rows, runs, hidden, causal, scale)
        return found
    a, b, c = (rows.spread(x) for x in (q, k, v))
    return rows.stored(F.scaled_dot_product_attention(a, b, c, hidden, dropout, causal, scale=scale))


class Together(torch.autograd.Function):
    """The kernel over rows; ``hidden``: its bias, or None."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, rows: Rows, runs: list[Run], hidden: Tensor | None, causal: bool,
        scale: float | None,
    ) -> Tensor:  # fmt: skip
        spread = [rows.spread(x) for x in (q, k, v)]
        out, sums = attention.of_kernel(*spread, 0.0, causal, attn_mask=hidden, scale=scale)
        ctx.save_for_backward(q, k, v, *spread, out, sums)
        ctx.settings = rows, runs, hidden, causal, scale
        return rows.stored(out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        q, k, v, *kept = ctx.saved_tensors
        rows, runs, hidden, causal, scale = ctx.settings
        if torch.is_grad_enabled():  # a gradient of these gradients may be asked for
            grads = attention.differentiate(grad, q, k, v, runs, [None] * len(runs), causal, scale)
        else:
            wide = grad.new_zeros(rows.shape[0] * rows.shape[1], *grad.shape[1:]).index_copy_(0, rows.places, grad)
            filled = wide.view(*rows.shape, *grad.shape[1:]).transpose(1, 2)
            parts = attention.gradient_of_kernel(filled, *kept, 0.0, causal, attn_mask=hidden, scale=scale)
            grads = [rows.stored(part) for part in parts]
        return *grads, None, None, None, None, None
