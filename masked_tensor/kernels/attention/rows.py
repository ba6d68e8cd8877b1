"""Attention of short sequences together, as rows of a copy: the fused kernel of the CPU in one call for all of them.

What fills a row up is its own last token again.  The second derivative is that of the sequences, run by run.
"""

from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor

from ..table import KERNELS, Kernel
from . import fused


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


def formula(
    q: Tensor, k: Tensor, v: Tensor, rows: Rows, runs: list[fused.Run], hidden: Tensor | None, dropout: float,
    causal: bool, scale: float | None,
) -> Tensor:  # fmt: skip
    """``(N, H, D)`` of queries, keys and values to ``(N, H, D)``; ``hidden``: the bias, or None."""
    a, b, c = (rows.spread(x) for x in (q, k, v))
    return rows.stored(F.scaled_dot_product_attention(a, b, c, hidden, dropout, causal, scale=scale))


def forward(
    q: Tensor, k: Tensor, v: Tensor, rows: Rows, runs: list[fused.Run], hidden: Tensor | None, dropout: float,
    causal: bool, scale: float | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:  # fmt: skip
    """The same by the kernel itself."""
    spread = [rows.spread(x) for x in (q, k, v)]
    out, sums = fused.of_kernel(*spread, 0.0, causal, attn_mask=hidden, scale=scale)
    return rows.stored(out), (q, k, v, *spread, out, sums)


def backward(saved: Any, grad: Tensor, rows: Rows, runs: Any, hidden: Any, _: float, causal: bool, scale: Any) -> Any:
    """The gradients of queries, keys and values."""
    wide = grad.new_zeros(rows.shape[0] * rows.shape[1], *grad.shape[1:]).index_copy_(0, rows.places, grad)
    filled = wide.view(*rows.shape, *grad.shape[1:]).transpose(1, 2)
    parts = fused.gradient_of_kernel(filled, *saved[3:], 0.0, causal, attn_mask=hidden, scale=scale)
    return [rows.stored(part) for part in parts]


def twice(saved: Any, grad: Tensor, rows: Rows, runs: Any, hidden: Any, _: float, causal: bool, scale: Any) -> Any:
    """The same, where a gradient of these gradients may be asked for."""
    q, k, v = saved[:3]
    return fused.differentiate(grad, q, k, v, runs, [None] * len(runs), causal, scale)


def serves(
    q: Tensor, k: Tensor, v: Tensor, rows: Rows, _: Any, __: Any, dropout: float, causal: bool, *___: Any
) -> Any:
    """As for runs."""
    given = q, k, v
    return fused.why_not(given, [x.transpose(0, 1)[None] for x in given], None, dropout, causal)


KERNELS["attention_rows", "cpu"] = Kernel(forward, backward, serves, twice)
