"""Columns with names become one tensor ``(rows, columns)``, if they hold numbers of one kind."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import torch

from ... import errors
from ...pair import Pair
from . import ragged


class Columns(NamedTuple):
    """A table: the names of its columns, and each column as it is read by itself."""

    names: list[object]
    columns: list[Any]


_KINDS = ("bool", "integer", "floating point", "complex")


def read_columns(table: Columns, take: Callable[[Any], Pair]) -> Pair:
    """``take`` reads a column; an error says which."""
    pairs = []
    for name, column in zip(*table, strict=True):
        with of_column(name):
            pairs.append(take(column))
    return stack_columns(table.names, pairs)


@contextmanager
def of_column(name: object) -> Iterator[None]:
    """A TypeError inside says which column it is about."""
    try:
        yield
    except TypeError as reason:
        raise TypeError(f"column {name!r} of the table: {reason}") from reason


def stack_columns(names: Sequence[object], columns: Sequence[Pair]) -> Pair:
    """Columns ``(N, ...)`` as ``(N, columns, ...)``.  Widths of one kind are promoted; kinds are not mixed."""
    if not columns:
        raise ValueError("a table without columns holds no numbers")
    common_dtype(names, [c.data.dtype for c in columns])
    pair = ragged.pad_and_stack(columns)
    return Pair(pair.data.movedim(0, 1).contiguous(), pair.mask.movedim(0, 1).contiguous())


def common_dtype(names: Sequence[object], dtypes: Sequence[torch.dtype]) -> torch.dtype:
    """What columns of these names and dtypes are promoted to; raises if they are of several kinds."""
    try:
        if len({_kind(dtype) for dtype in dtypes}) > 1:
            raise RuntimeError
        return reduce(torch.promote_types, dtypes)
    except RuntimeError as reason:  # torch's own, too: it promotes no uint64
        first: dict[torch.dtype, object] = {}
        for name, dtype in zip(names, dtypes, strict=True):
            first.setdefault(dtype, name)
        found = ", ".join(f"{errors.dtype_name(dtype)} ({name})" for dtype, name in first.items())
        raise TypeError(
            f"a table becomes a tensor if its columns are of one kind, got {found}; write "
            "masked_tensor(table, dtype=torch.float64), which masked_invalid takes as well, or take the columns of "
            "each kind"
        ) from reason


def _kind(dtype: torch.dtype) -> str:
    if dtype is torch.bool:
        return _KINDS[0]
    return _KINDS[3 if dtype.is_complex else 2 if dtype.is_floating_point else 1]
