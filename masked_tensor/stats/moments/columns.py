"""Moments that merge: number, mean, squared deviations and extremes of columns, exact for any split of the rows.

All sums are float64 and taken of differences from a value near the mean, so that what rounds is the difference, not the
value.  A mean is kept in two parts, with what rounding leaves out of the first, so that no order of merging is better
than another.  Sets are merged by Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
sample variances" (1979): ``M = M_a + M_b + (mean_b - mean_a)^2 n_a n_b / n``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...extend import masks, select
from .. import settings


class Moments(NamedTuple):
    """The moments of each column ``(F,)``, in float64; without entries the mean is 0 and the extremes are infinite."""

    number: Tensor  #: the sum of weights
    mean: Tensor
    rest: Tensor  #: of the mean, what rounding left out
    squares: Tensor  #: the weighted sum of squared deviations from the mean, exactly 0 for a constant
    low: Tensor
    high: Tensor


class Means(NamedTuple):
    """What :func:`merge_means` gives: the mean of all parts, and of each part the difference from it."""

    number: Tensor
    mean: Tensor
    rest: Tensor
    away: Tensor


def merge_means(count: Tensor, mean: Tensor, rest: Tensor) -> Means:
    """The mean of the parts along the first dimension, of any further shape.

    The differences are taken from the mean of the part with most in it: no less is known of the sum for it.
    """
    whole, some = count.sum(0), count != 0
    share = count / whole.clamp_min(torch.finfo(torch.float64).tiny)
    most = count.max(0, keepdim=True).indices  # a fiftieth of the time of argmax
    near, left = mean.gather(0, most), rest.gather(0, most)
    away = torch.where(some, (mean - near) + (rest - left), 0)
    off = (share * away).sum(0)
    high, low = add_exactly(near.squeeze(0), left.squeeze(0) + off)
    finite = high.isfinite()  # else an entry is not, or the differences overflow, which the means do not
    plain = torch.where(some, share * mean, 0).sum(0)
    return Means(whole, torch.where(finite, high, plain), torch.where(finite, low, 0), away - off)


def add_exactly(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """``a + b``, rounded, and what rounding left out: Knuth's two-sum."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def merge_moments(parts: Sequence[Moments]) -> Moments:
    """The moments of all parts together."""
    count, mean, rest, squares, low, high = map(torch.stack, zip(*parts, strict=True))
    means = merge_means(count, mean, rest)
    around = (squares + count * means.away * means.away).sum(0)
    return Moments(means.number, means.mean, means.rest, around, low.amin(0), high.amax(0))


def no_moments(columns: int, device: torch.device) -> Moments:
    """The moments of nothing."""
    zero = torch.zeros(columns, dtype=torch.float64, device=device)
    return Moments(zero, zero, zero, zero, zero + torch.inf, zero - torch.inf)


def moments_of(x: Tensor, mask: Tensor, weight: Tensor | None) -> Moments:
    """The moments of the valid entries of ``x`` (N, F), with weights that broadcast to it."""
    rows = max(1, settings.CHUNK // max(1, x.shape[1]))
    starts = range(0, max(1, x.shape[0]), rows)
    parts = []
    for start in starts:
        size = min(rows, x.shape[0] - start)
        heavy = None if weight is None else weight.narrow(0, start, size)
        parts.append(_moments_of_chunk(x.narrow(0, start, size), mask.narrow(0, start, size), heavy))
    return parts[0] if len(parts) == 1 else merge_moments(parts)


def _moments_of_chunk(x: Tensor, mask: Tensor, weight: Tensor | None) -> Moments:
    if not len(x):
        return no_moments(x.shape[1], x.device)
    zeroed = select(x, mask, 0)
    extremes = _extremes(zeroed, mask)
    values = zeroed.double()  # sum(dtype=) is slower; memory of its own, which is written below
    heavy = None if weight is None else select(weight.double().expand(x.shape), mask, 0)
    count = masks.count(mask, 0).double() if heavy is None else heavy.sum(0)
    total = values.sum(0) if heavy is None else (values * heavy).sum(0)
    near = torch.where(count > 0, total / torch.where(count > 0, count, 1), 0)  # the mean, rounded
    rest = values.addcmul_(mask.double(), near, value=-1)  # minus the mean where an entry is valid: 0 stays 0
    left = (rest if heavy is None else rest * heavy).sum(0)
    squares = (rest.square_() if heavy is None else rest.square_().mul_(heavy)).sum(0)
    return moments_around(count, near, left, squares, *extremes)


def moments_around(count: Tensor, near: Tensor, left: Tensor, squares: Tensor, low: Tensor, high: Tensor) -> Moments:
    """The moments of entries whose differences from ``near`` sum to ``left``, and their squares to ``squares``."""
    off = left / torch.where(count > 0, count, 1)
    mean, rest = add_exactly(near, torch.where(near.isfinite(), off, 0))  # of an infinite entry nothing is left
    flat = (low == high) & low.isfinite()
    squares = torch.where(flat, 0, (squares - left * off).clamp_min(0))
    return Moments(count, torch.where(flat, low, mean), torch.where(flat, 0, rest.nan_to_num(0)), squares, low, high)


def _extremes(zeroed: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The least and the greatest valid entry of each column, of data that is 0 under the mask.

    A least entry below 0 is a valid one, and a greatest above it: infinity is filled in only where there is none.
    """
    low, high = zeroed.amin(0), zeroed.amax(0)
    unknown = low >= 0, high <= 0  # and known where it is NaN, which only a valid entry is
    wanted = [not zeroed.is_cpu or bool(torch.any(where)) for where in unknown]  # no device is waited for
    if wanted[0]:
        low = torch.where(unknown[0], select(zeroed, mask, torch.inf).amin(0), low)
    if wanted[1]:
        high = torch.where(unknown[1], select(zeroed, mask, -torch.inf).amax(0), high)
    return low.double(), high.double()


def moments_of_entries(column: Tensor, value: Tensor, columns: int) -> Moments:
    """The moments of single entries: ``value`` (n,) float64 in ``column`` (n,); a sparse tensor's stored ones."""
    zero = torch.zeros(columns, dtype=torch.float64, device=value.device)
    count = zero.index_add(0, column, torch.ones_like(value))
    near = zero.index_add(0, column, value) / count.clamp_min(1)
    rest = value - near[column]
    low = (zero + torch.inf).scatter_reduce(0, column, value, "amin")
    high = (zero - torch.inf).scatter_reduce(0, column, value, "amax")
    left, squares = zero.index_add(0, column, rest), zero.index_add(0, column, rest.square())
    return moments_around(count, near, left, squares, low, high)


def zeros_of(number: Tensor) -> Moments:
    """The moments of ``number`` (F,) zeros in each column: what a sparse tensor does not store."""
    where, zero = torch.where(number > 0, 0.0, torch.inf), torch.zeros_like(number)
    return Moments(number, zero, zero, zero, where, -where)
