"""Moments of every two columns that merge: each over the rows where both are valid.

They are matrix products of differences from one value of each column.  Where two columns have in common what lies far
from that value, the products would round away what is asked for: those pairs are summed up again, each around its own
means.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...extend import select
from .. import settings
from .columns import add_exactly, merge_means, moments_of

_FAR = 10.0  # times the squares around the mean: those around another value, of which a digit is lost at most


class PairMoments(NamedTuple):
    """Of columns i and j ``(F, F)``, in float64, over the rows where both are valid."""

    number: Tensor  #: the sum of weights
    mean: Tensor  #: of column i
    rest: Tensor  #: of the mean, what rounding left out
    squares: Tensor  #: the weighted sum of squared deviations of column i from the mean, exactly 0 for a constant
    mixed: Tensor  #: the weighted sum of the products of both deviations


def merge_pairs(parts: Sequence[PairMoments]) -> PairMoments:
    """The moments of all parts together."""
    count, mean, rest, squares, mixed = map(torch.stack, zip(*parts, strict=True))
    means = merge_means(count, mean, rest)
    weighted = count * means.away
    around, together = (squares + weighted * means.away).sum(0), (mixed + weighted * means.away.mT).sum(0)
    return PairMoments(means.number, means.mean, means.rest, around, together)


def pair_moments_of(x: Tensor, mask: Tensor, weight: Tensor | None, near: Tensor) -> PairMoments:
    """Those of ``x`` (N, F), with weights (N, 1); ``near`` (F,) is a value of each column, such as its mean."""
    near = torch.where(near.isfinite(), near, 0)
    rows, count, *sums = _products(x, mask, weight, near)
    first, powers, mixed = (torch.where(rows > 0, part, 0) for part in sums)  # an infinite entry of no pair is in them
    off = first / torch.where(count > 0, count, 1)
    mean, rest = add_exactly(near.unsqueeze(1), off)
    squares, mixed = powers - first * off, mixed - off * first.mT
    one = rows == 1
    if bool(one.any()):  # of one row all is known, without rounding; what is not a number stays it
        mean, rest = torch.where(one, _sums(x, mask), mean), torch.where(one, 0, rest)
        squares, mixed = (torch.where(one, left * 0, left) for left in (squares, mixed))
    found = PairMoments(count, mean, rest, squares, mixed)
    again = (rows > 1) & ~(powers <= _FAR * squares) | powers.isnan()
    i, j = (again | again.mT).triu().nonzero().unbind(1)
    for some in _ranges(len(i), len(x)):
        _sum_again(found, x, mask, weight, i[some], j[some])
    return found


def _products(x: Tensor, mask: Tensor, weight: Tensor | None, near: Tensor) -> Tensor:
    """Rows, and sums of weights, differences of i from ``near``, their squares, and products: (5, F, F)."""
    total = torch.zeros(5, x.shape[1], x.shape[1], dtype=torch.float64, device=x.device)
    for rows in _ranges(len(x), x.shape[1]):
        part = mask[rows]
        away = select(_differences(x[rows], near), part, 0)
        there = part.double()
        number = there.T @ there
        heavy, weighted = (there, away) if weight is None else (there * weight[rows], away * weight[rows])
        total += torch.stack([
            number,
            number if weight is None else heavy.T @ there,
            weighted.T @ there,
            (away * weighted).T @ there,
            weighted.T @ away,
        ])  # fmt: skip
    return total


def _sums(x: Tensor, mask: Tensor) -> Tensor:
    """The sum of column i over the rows where j is also valid."""
    total = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64, device=x.device)
    for rows in _ranges(len(x), x.shape[1]):
        total += select(x[rows], mask[rows], 0).double().T @ mask[rows].double()
    return total


def _differences(x: Tensor, point: Tensor) -> Tensor:
    """``x - point`` in float64, in memory of its own."""
    return x - point if x.dtype is torch.float64 else x.double().sub_(point)


def _ranges(length: int, width: int) -> Iterator[slice]:
    """``length`` in steps, each of about as many numbers as are worked on at once, ``width`` for each."""
    step = max(1, settings.CHUNK // max(1, width))
    return (slice(start, start + step) for start in range(0, length, step))


def _sum_again(
    found: PairMoments, x: Tensor, mask: Tensor, weight: Tensor | None, first: Tensor, second: Tensor
) -> None:
    """Writes the moments of these pairs, each summed up around its own two means."""
    both = mask[:, first] & mask[:, second]
    columns = [x[:, at] for at in (first, second)]
    one, other = (moments_of(column, both, weight) for column in columns)
    a, b = (select(_differences(c, part.mean), both, 0) for c, part in zip(columns, (one, other), strict=True))
    mixed = (a * b if weight is None else a * b * weight).sum(0) - one.number * one.rest * other.rest
    for place, part in (((first, second), one), ((second, first), other)):
        values = (part.number, part.mean, part.rest, part.squares, mixed)
        for into, value in zip(found, values, strict=True):
            into[place] = value
