"""What is read of running statistics, masked where nothing is known."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..extend import Pair, Payload
from ..extend.data import wrap
from . import group_moments, histogram, sketch
from .adding import StatisticsAdding
from .pair_moments import PairMoments

Ranked = tuple[tuple[Tensor, Tensor], Tensor]  # the entries of a sketch with their weights, and how far they are off


class StatisticsReading(StatisticsAdding):
    """Numbers of the state, and what they are off by."""

    def _known(self, value: Tensor) -> Tensor:
        return masked(value, (self._moments.number > 0).expand_as(value))

    def _over_count(self, squares: Tensor, count: Tensor) -> Tensor:
        some = (count > 0) & (count > self.correction)
        return masked(squares / torch.where(some, count - self.correction, 1), some)

    def _pairs(self) -> PairMoments:
        if self.pairs is None:
            raise RuntimeError("these statistics keep no covariances: make them with cov=True")
        return PairMoments(*self.pairs)

    def _histogram(self) -> tuple[Tensor, Tensor]:
        if self.edges is None:
            raise RuntimeError(
                "these statistics keep no histograms: make them with edges=torch.linspace(low, high, n), or with "
                "sketch=True for quantiles alone"
            )
        return self.edges, self.bins

    def _quantiles(self, q: float | Sequence[float] | Tensor) -> tuple[Tensor, Tensor]:
        """The quantiles, and by how much they may be off."""
        ranked = self._ranked()
        if isinstance(q, Tensor) and q.dim() > 1:
            raise ValueError(f"q must be a number or a list of them, got a tensor of shape {tuple(q.shape)}")
        levels = q.tolist() if isinstance(q, Tensor) else q
        if not isinstance(levels, Iterable):
            return self._quantile(levels, ranked)
        found = [self._quantile(level, ranked) for level in levels]
        none = self._moments.low.new_empty(0, len(self._moments.low))
        value, error = (torch.stack(part) for part in zip(*found, strict=True)) if found else (none, none)
        return value, error

    def _ranked(self) -> Ranked | None:
        """What is sorted once for all quantiles; None without a sketch."""
        kept = self._sketch()
        return None if kept is None else (sketch.ranked(kept), sketch.rank_errors(kept))

    def _quantile(self, q: float, ranked: Ranked | None) -> tuple[Tensor, Tensor]:
        if ranked is not None:
            value, low, high = sketch.quantile(*ranked, self._moments.low, self._moments.high, q)
            return value, torch.maximum(high - value, value - low).nan_to_num(torch.inf)
        low, high, inside = self._bracket(q)
        between = low * (1 - inside) + high * inside
        return torch.where(low == high, low, between), torch.where(low == high, 0, high - low)

    def _over_number(self, total: Tensor) -> Tensor:
        number = self._moments.number
        return masked(total / torch.where(number > 0, number, 1), number > 0)

    def _bracket(self, q: float) -> tuple[Tensor, Tensor, Tensor]:
        return histogram.bracket(*self._histogram(), self._moments.low, self._moments.high, q)

    def _check_begun(self, taker: str) -> None:
        self._begun = self._begun or bool((self._moments.number > 0).any())
        if not self._begun:
            raise RuntimeError(f"{taker} was called before a valid entry was seen: call update(x) or merge() first")

    def _place(self, x: Tensor, group: Any) -> Callable[[Tensor], Tensor]:
        """Puts what columns have, or groups and columns, beside the entries of ``x``."""
        if (group is None) != (self.keys is None):
            raise ValueError(
                "these statistics have no groups"
                if self.keys is None
                else "stats(x) takes group=keys where groups are kept"
            )
        if group is None:
            shape = [1] * x.dim()
            shape[self.dim] = self.features
            return lambda part: part.view(shape)
        keys = self._keys_of(group, x, "stats(x)")
        at, there = group_moments.rows_of_groups(self.keys, keys)
        if not bool(there.all()):
            raise ValueError(f"stats(x) takes groups that were seen, got {keys[~there].unique().tolist()}, too")
        rows = at.view(x.movedim(self.dim, -1).shape[:-1]).to(x.device)
        return lambda part: part[rows].movedim(-1, self.dim)


def masked(value: Tensor, mask: Tensor) -> Tensor:
    """A masked tensor, 0 where it is masked."""
    result: Tensor = wrap(Pair(torch.where(mask, value, 0), mask, Payload.ZERO))
    return result
