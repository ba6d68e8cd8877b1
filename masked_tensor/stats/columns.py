"""The inputs of running statistics, as the columns of their state."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..extend.data import has_nan_for_missing, read_table, sparse_tensor, wrap
from . import options
from .state import State


def by_name(state: State, x: Any, taker: str) -> tuple[Tensor, Tensor, tuple[str, ...] | None]:
    """``x`` as a tensor, a table's columns in the order of the first one; and the names of the columns."""
    x = sparse_tensor(x)
    if isinstance(x, Tensor):
        return x, state.columns, state.names

    def choose(names: Sequence[str]) -> list[int] | None:
        return None if state.chosen is None else options.choose(state.chosen, names, taker)

    pair, names = read_table(x, torch.float64, choose)
    if has_nan_for_missing(x, pair):
        warnings.warn(
            f"NaN in a {type(x).__name__} of floats is a valid value; frame.convert_dtypes() masks it and keeps the "
            "names, as to_arrow(masked_invalid(frame), names) does",
            stacklevel=5,
        )
    table: Tensor = wrap(pair)
    if not names:
        return table, state.columns, state.names
    table = table.movedim(-1, state.dim)
    check_columns(state, table, taker)
    given = options.columns_of(names, state.columns.device)
    at = options.places_of(state.columns, given, taker, names)
    if at is None:
        return table, given, tuple(names)
    return table.index_select(state.dim, at.to(table.device)), state.columns, state.names


def check_columns(state: State, x: Tensor, taker: str) -> None:
    """Raises unless ``x`` has the columns of the state."""
    if not -x.dim() <= state.dim < x.dim() or x.shape[state.dim] != state.features:
        raise ValueError(f"{taker} expects {state.features} columns along dim {state.dim}, got {tuple(x.shape)}")


def rows_of(state: State, x: Tensor) -> Tensor:
    """Its rows, ``(N, F)``, where the state lies."""
    return x.to(state.missed.device).movedim(state.dim, -1).reshape(-1, state.features)


def keys_of_rows(state: State, group: Any, x: Tensor, taker: str) -> Tensor:
    """The key of each row of ``x``, int64 ``(N,)``."""
    shape = x.movedim(state.dim, -1).shape[:-1]
    return options.keys_of(group, shape, taker).to(state.missed.device).flatten()
