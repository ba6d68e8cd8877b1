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
    """The entry at :func:`median_rank` where all entries count: torch's own selection also takes the lower one."""
    select = torch.nanmedian if skip_nan else torch.median
    return select(data) if dim is None else select(data, dim, keepdim)


def quantile_rank(
    share: Tensor | float, numbers: Tensor, nans: Tensor | None = None, alphap: float = 1.0, betap: float = 1.0
) -> Tensor:
    """The position of a quantile among sorted numbers, counted from 0, or the position of a NaN among them.

    These are the plotting positions of scipy.stats.mstats.mquantiles: the k-th of n entries is the ``(k - alphap) / (n
    + 1 - alphap - betap)`` quantile. With ``alphap = betap = 1``, the position is ``share * (n - 1)``.

    Args:
        share (Tensor or float): The quantile, from 0 to 1; floating point, broadcastable to ``numbers``.
        numbers (Tensor): The count of sorted numbers, of any shape, integer or floating point.
        nans (Tensor, optional): How many of them are NaN, sorted last; in the shape and dtype of ``numbers``.
        alphap (float, optional): The lower plotting position, see above. Default: 1.0.
        betap (float, optional): The upper plotting position, see above. Default: 1.0.

    Returns:
        Tensor: The shape of ``numbers``, in the dtype of ``share * numbers``.

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
