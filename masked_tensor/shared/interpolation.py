"""Interpolation between neighbouring order statistics: what torch.quantile calls its five methods."""

from collections.abc import Callable

import torch
from torch import Tensor


def fractional_rank(share: Tensor, n: Tensor, alphap: float, betap: float) -> Tensor:
    """Where the quantile lies among ``n`` entries, counted from 0: ``alphap = betap = 1`` is ``share * (n - 1)``.

    The plotting positions of scipy.stats.mstats.mquantiles: entry k of n is the ``(k - alphap) / (n + 1 - alphap -
    betap)`` quantile.
    """
    last = (n - 1).clamp(min=0)
    if alphap == betap == 1:
        return share * last
    return (n * share + (alphap - 1) + share * (1 - alphap - betap)).clamp(min=0).minimum(last.to(share.dtype))


def interpolate_rank(at: Callable[[Tensor], Tensor], rank: Tensor, method: str) -> Tensor:
    """The value at a fractional ``rank``; ``at`` gives the values at whole ones (int64)."""
    if method == "lower":
        return at(rank.floor().long())
    if method == "higher":
        return at(rank.ceil().long())
    if method == "nearest":
        return at(rank.round().long())
    below, above = at(rank.floor().long()), at(rank.ceil().long())
    weight = rank - rank.floor() if method == "linear" else torch.full_like(rank, 0.5)
    return below.lerp(above, weight.to(below.dtype))
