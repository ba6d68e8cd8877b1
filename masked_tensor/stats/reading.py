"""The statistics computed from the state of running statistics, masked where they are unknown."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..extend import Pair, Payload
from ..extend.data import wrap
from . import histogram, sketch
from .columns import keys_of_rows
from .moments import by_group
from .moments.pairs import PairMoments
from .state import State

Ranked = tuple[tuple[Tensor, Tensor], Tensor]  # the entries of a sketch with their weights, and how far they are off


def known(state: State, value: Tensor) -> Tensor:
    return masked(value, (state.moments.number > 0).expand_as(value))


def over_count(state: State, squares: Tensor, count: Tensor) -> Tensor:
    some = (count > 0) & (count > state.correction)
    return masked(squares / torch.where(some, count - state.correction, 1), some)


def pairs_of(state: State) -> PairMoments:
    if state.pairs is None:
        raise RuntimeError("these statistics keep no covariances: make them with cov=True")
    return state.pairs


def histogram_of(state: State) -> tuple[Tensor, Tensor]:
    if state.edges is None or state.bins is None:
        raise RuntimeError(
            "these statistics keep no histograms: make them with edges=torch.linspace(low, high, n), or with "
            "sketch=True for quantiles alone"
        )
    return state.edges, state.bins


def quantiles(state: State, q: float | Sequence[float] | Tensor) -> tuple[Tensor, Tensor]:
    """The quantiles, and by how much they may be off."""
    ranked = _ranked(state)
    if isinstance(q, Tensor) and q.dim() > 1:
        raise ValueError(f"q must be a number or a list of them, got a tensor of shape {tuple(q.shape)}")
    levels = q.tolist() if isinstance(q, Tensor) else q
    if not isinstance(levels, Iterable):
        return _quantile(state, levels, ranked)
    found = [_quantile(state, level, ranked) for level in levels]
    none = state.moments.low.new_empty(0, len(state.moments.low))
    value, error = (torch.stack(part) for part in zip(*found, strict=True)) if found else (none, none)
    return value, error


def _ranked(state: State) -> Ranked | None:
    """What is sorted once for all quantiles; None without a sketch."""
    kept = state.sketch
    return None if kept is None else (sketch.ranked(kept), sketch.rank_errors(kept))


def _quantile(state: State, q: float, ranked: Ranked | None) -> tuple[Tensor, Tensor]:
    if ranked is not None:
        value, low, high = sketch.quantile(*ranked, state.moments.low, state.moments.high, q)
        return value, torch.maximum(high - value, value - low).nan_to_num(torch.inf)
    low, high, inside = bracket_of(state, q)
    between = low * (1 - inside) + high * inside
    return torch.where(low == high, low, between), torch.where(low == high, 0, high - low)


def over_number(state: State, total: Tensor) -> Tensor:
    number = state.moments.number
    return masked(total / torch.where(number > 0, number, 1), number > 0)


def bracket_of(state: State, q: float) -> tuple[Tensor, Tensor, Tensor]:
    return histogram.bracket(*histogram_of(state), state.moments.low, state.moments.high, q)


def place_of(state: State, x: Tensor, group: Any) -> Callable[[Tensor], Tensor]:
    """Puts what columns have, or groups and columns, beside the entries of ``x``."""
    if (group is None) != (state.keys is None):
        raise ValueError(
            "these statistics have no groups"
            if state.keys is None
            else "stats(x) takes group=keys where groups are kept"
        )
    if state.keys is None:
        shape = [1] * x.dim()
        shape[state.dim] = state.features
        return lambda part: part.view(shape)
    keys = keys_of_rows(state, group, x, "stats(x)")
    at, there = by_group.rows_of_groups(state.keys, keys)
    if not bool(there.all()):
        raise ValueError(f"group holds keys that update() has not seen: {keys[~there].unique().tolist()}")
    rows = at.view(x.movedim(state.dim, -1).shape[:-1]).to(x.device)
    return lambda part: part[rows].movedim(-1, state.dim)


def masked(value: Tensor, mask: Tensor) -> Tensor:
    """A masked tensor, 0 where it is masked."""
    result: Tensor = wrap(Pair(torch.where(mask, value, 0), mask, Payload.ZERO))
    return result
