"""Moments that merge: number, mean, squared deviations and extremes of columns, exact for any split of the rows.

All sums are float64 and taken of differences from a value near the mean, so that what rounds is the difference, not the
value.  Two sets are merged by Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
sample variances" (1979): ``M = M_a + M_b + (mean_b - mean_a)^2 n_a n_b / n``.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .. import masks, settings
from ..select import select, zero_masked_inplace


@dataclass(frozen=True, slots=True)
class Moments:
    """Of each column ``(F,)``: the sum of weights, mean, weighted squared deviations, least and greatest."""

    count: Tensor
    center: Tensor  #: as a difference from the origin
    squares: Tensor
    low: Tensor
    high: Tensor


def merge_moments(parts: list[Moments]) -> Moments:
    """The moments of all parts together, taken from one origin."""
    count, center, squares, low, high = (
        torch.stack([getattr(part, name) for part in parts]) for name in Moments.__dataclass_fields__
    )
    whole = count.sum(0)
    share = count / whole.clamp_min(torch.finfo(torch.float64).tiny)
    some = count != 0
    mean = torch.where(some, share * center, 0).sum(0)  # differences from an origin near the data: small
    away = torch.where(some, center - mean, 0)
    return Moments(
        whole,
        torch.where(mean.isfinite(), mean + (share * away).sum(0), mean),
        (squares + count * away * away).sum(0),
        low.amin(0),
        high.amax(0),
    )


def moments_of(x: Tensor, mask: Tensor, weight: Tensor | None, origin: Tensor) -> Moments:
    """The moments of the valid entries of ``x`` (N, F), with weights that broadcast to it."""
    rows = max(1, settings.CHUNK // max(1, x.shape[1]))
    starts = range(0, max(1, x.shape[0]), rows)
    parts = []
    for start in starts:
        size = min(rows, x.shape[0] - start)
        heavy = None if weight is None else weight.narrow(0, start, size)
        parts.append(_moments_of_chunk(x.narrow(0, start, size), mask.narrow(0, start, size), heavy, origin))
    return parts[0] if len(parts) == 1 else merge_moments(parts)


def _moments_of_chunk(x: Tensor, mask: Tensor, weight: Tensor | None, origin: Tensor) -> Moments:
    if not len(x):
        zero = torch.zeros_like(origin)
        return Moments(zero, zero, zero, zero + torch.inf, zero - torch.inf)
    zeroed = select(x, mask, 0)
    low, high = _extremes(zeroed, mask)
    values = zeroed.double()  # sum(dtype=) is slower; memory of its own, which is written below
    heavy = None if weight is None else select(weight.double().expand(x.shape), mask, 0)
    count = masks.count(mask, 0).double() if heavy is None else heavy.sum(0)
    total = values.sum(0) if heavy is None else (values * heavy).sum(0)
    some = torch.where(count > 0, count, 1)
    near = torch.where(count > 0, total / some, origin)  # the mean, rounded: what is left of it is added below
    rest = values.addcmul_(mask.double(), near, value=-1)  # minus the mean where an entry is valid: 0 stays 0
    left = (rest if heavy is None else rest * heavy).sum(0)
    squares = (rest.square_() if heavy is None else rest.square_().mul_(heavy)).sum(0)
    center = near - origin
    center = torch.where(center.isfinite(), center + left / some, center)  # of an infinite entry nothing is left
    return Moments(count, center, squares - left * left / some, low, high)


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


def _differences(x: Tensor, point: Tensor) -> Tensor:
    """``x - point`` in float64, in memory of its own."""
    return x - point if x.dtype is torch.float64 else x.double().sub_(point)


def moments_of_entries(column: Tensor, value: Tensor, origin: Tensor) -> Moments:
    """The moments of single entries: ``value`` (n,) float64 in ``column`` (n,); a sparse tensor's stored ones."""
    zero = torch.zeros_like(origin)
    count = zero.index_add(0, column, torch.ones_like(value))
    away = value - origin[column]
    mean = zero.index_add(0, column, away) / count.clamp_min(1)
    squares = zero.index_add(0, column, (away - mean[column]).square_())
    low = (zero + torch.inf).scatter_reduce(0, column, value, "amin")
    high = (zero - torch.inf).scatter_reduce(0, column, value, "amax")
    return Moments(count, mean, squares, low, high)


def zeros_of(number: Tensor, origin: Tensor) -> Moments:
    """The moments of ``number`` (F,) zeros in each column: what a sparse tensor does not store."""
    where = torch.where(number > 0, 0.0, torch.inf)
    return Moments(number, torch.where(number > 0, -origin, 0), torch.zeros_like(origin), where, -where)


def products_of(x: Tensor, mask: Tensor, weight: Tensor | None, origin: Tensor) -> Tensor:
    """Of columns i and j (4, F, F), where both are valid: number, sum of i, of its squares, of the products."""
    rows = max(1, settings.CHUNK // max(1, x.shape[1]))
    total = torch.zeros(4, x.shape[1], x.shape[1], dtype=torch.float64, device=x.device)
    for start in range(0, x.shape[0], rows):
        size = min(rows, x.shape[0] - start)
        part = mask.narrow(0, start, size)
        away = zero_masked_inplace(_differences(x.narrow(0, start, size), origin), part)
        there = part.double()
        heavy = there if weight is None else there * weight.narrow(0, start, size)
        total += torch.stack([heavy.T @ there, (away * heavy).T @ there, (away * away * heavy).T @ there,
                              (away * heavy).T @ away])  # fmt: skip
    return total


def move_products(products: Tensor, by: Tensor) -> Tensor:
    """The same sums from an origin that is smaller by ``by`` (F,)."""
    number, sums, powers, mixed = products
    d = by.unsqueeze(1)
    return torch.stack([
        number,
        sums + number * d,
        powers + 2 * d * sums + number * d * d,
        mixed + sums * by + sums.T * d + number * d * by,
    ])  # fmt: skip
