"""Order statistics: which of the sorted entries is the median or a quantile, and what lies between two of them.

They have this one meaning for strided, sparse, packed and moving data: who has the entries in order asks here for a
rank, counted from 0.  NaN is the greatest; a valid one is the result, unless it is skipped.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def median_rank(numbers: Tensor, nans: Tensor | None = None) -> Tensor:
    """The lower one of the two in the middle of so many ``numbers``, or the first of the ``nans`` behind them."""
    lower = (numbers - 1).clamp_min(0) // 2
    return lower if nans is None else torch.where(nans > 0, numbers, lower)


def select_median(data: Tensor, dim: int | None, keepdim: bool, skip_nan: bool) -> Any:
    """The entry at :func:`median_rank` where all entries count: torch's own selection takes the lower one, too."""
    select = torch.nanmedian if skip_nan else torch.median
    return select(data) if dim is None else select(data, dim, keepdim)


def quantile_rank(
    share: Tensor | float, numbers: Tensor, nans: Tensor | None = None, alphap: float = 1.0, betap: float = 1.0
) -> Tensor:
    """Where the quantile of so many sorted numbers lies, between two of them, or the last of the NaN behind them.

    The plotting positions of scipy.stats.mstats.mquantiles: entry k of n is the ``(k - alphap) / (n + 1 - alphap -
    betap)`` quantile; ``alphap = betap = 1`` is ``share * (n - 1)``.

    Args:
        share (Tensor or float): From 0 to 1, floating-point, broadcastable to ``numbers``.
        numbers (Tensor): How many numbers there are, of any shape, integer or floating-point.
        nans (Tensor, optional): How many NaN lie behind them, which count, too; in the shape and dtype of ``numbers``.
        alphap (float, optional): See above.
        betap (float, optional): See above.

    Returns:
        Tensor: In the shape of ``numbers`` and the dtype of ``share * numbers``; counted from 0.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.quantile_rank(0.5, torch.tensor([4, 5]))
        tensor([1.5000, 2.0000])
    """
    last = (numbers - 1).clamp_min(0)
    if alphap == betap == 1:
        rank = share * last
    else:
        rank = numbers * share + (alphap - 1) + share * (1 - alphap - betap)
        rank = rank.clamp_min(0).minimum(last.to(rank.dtype))
    return rank if nans is None else torch.where(nans > 0, numbers + nans - 1, rank)


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
