"""Columns with names become one tensor ``(rows, columns)``, in numpy's common dtype of theirs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import errors
from ...pair import Pair
from . import ragged


class Columns(NamedTuple):
    """A table: the names of its columns, and each column as it is read by itself."""

    names: list[object]
    columns: list[Any]


#: The narrowest float that holds all integers of a dtype; float64 for the others, of which it holds those up to 2**53.
_FLOATS = {
    torch.int8: torch.float16, torch.uint8: torch.float16, torch.int16: torch.float32, torch.uint16: torch.float32,
}  # fmt: skip
_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def of_dict(data: Mapping[Any, Any]) -> Columns:
    """A dict of columns, as ``to_dict("list")`` and ``to_pydict`` make it."""
    for name, column in data.items():
        if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
            raise TypeError(
                f"a dict must hold columns of one length, but {name!r} holds {type(column).__name__}; convert "
                "one entry: masked_tensor(data[name])"
            )
    sizes = {name: len(column) for name, column in data.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"columns of a table must have the same length, got {sizes}")
    return Columns(list(data), list(data.values()))


def read_columns(table: Columns, take: Callable[[Any], Pair], dtype: torch.dtype | None = None) -> Pair:
    """``take`` reads a column, in ``dtype`` if there is one; an error says which."""
    return stack_columns(table.names, each_column(table.names, lambda i: take(table.columns[i])), dtype)


def each_column(names: Sequence[object], read: Callable[[int], Pair]) -> list[Pair]:
    """What ``read`` makes of each column; all that are refused are named, with the reason of the first."""
    pairs, refused, first = [], [], None
    for i, name in enumerate(names):
        try:
            with of_column(name):
                pairs.append(read(i))
        except TypeError as reason:
            refused.append(name)
            first = first or reason
    if first is None:
        return pairs
    if len(refused) == 1:
        raise first
    raise TypeError(f"{len(refused)} columns of the table hold no numbers: {refused}; {first}") from first


@contextmanager
def of_column(name: object) -> Iterator[None]:
    """A TypeError inside says which column it is about."""
    try:
        yield
    except TypeError as reason:
        raise TypeError(f"column {name!r} of the table: {reason}") from reason


def stack_columns(names: Sequence[object], columns: Sequence[Pair], dtype: torch.dtype | None = None) -> Pair:
    """Columns ``(N, ...)`` as ``(N, columns, ...)``, in ``dtype``, or the common one."""
    if not columns:
        raise ValueError("a table without columns holds no numbers")
    if dtype is None:
        dtype = common_dtype([c.data.dtype for c in columns])
        for name, column in zip(names, columns, strict=True):
            expect_exact(name, column.data, column.mask, dtype)
    pair = ragged.pad_and_stack([Pair(c.data.to(dtype), c.mask) for c in columns])
    return Pair(pair.data.movedim(0, 1).contiguous(), pair.mask.movedim(0, 1).contiguous())


def common_dtype(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    """``numpy.result_type``, which promotes integers to a float that holds them; torch keeps float32 beside int64."""
    kinds = set(dtypes)
    if len(kinds) > 1:
        kinds.discard(torch.bool)
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= {*_SIGNED, *_UNSIGNED}:
        return _common_integer(kinds)
    return reduce(torch.promote_types, (_float_for(kind) for kind in kinds))


def _common_integer(kinds: set[torch.dtype]) -> torch.dtype:
    """The narrowest integers that hold all of these, float64 of uint64 beside signed ones."""
    signed = max((_SIGNED.index(kind) for kind in kinds if kind in _SIGNED), default=-1)
    unsigned = max((_UNSIGNED.index(kind) for kind in kinds if kind in _UNSIGNED), default=-1)
    if signed < 0:
        return _UNSIGNED[unsigned]
    width = max(signed, unsigned + 1)
    return _SIGNED[width] if width < len(_SIGNED) else torch.float64


def _float_for(kind: torch.dtype) -> torch.dtype:
    return kind if kind.is_floating_point or kind.is_complex else _FLOATS.get(kind, torch.float64)


def expect_exact(name: object, values: Tensor, valid: Tensor | None, dtype: torch.dtype) -> None:
    """Raises if a valid integer of a column is none of ``dtype``, the common one; up to 2**53 all of them are."""
    if values.dtype not in (torch.int64, torch.uint64) or dtype not in (torch.float64, torch.complex128):
        return
    bits = values.view(torch.int64) if values.dtype is torch.uint64 else values
    near = bits.double().clamp(max=float(2**63 - 1024)).long()  # the greatest float64 that is an int64
    wrong = near != bits
    if values.dtype is torch.uint64:  # from 2**63 on, read as negative: multiples of 2048 are exact
        wrong = torch.where(bits < 0, bits % 2048 != 0, wrong)
    if valid is not None:
        wrong = wrong & valid
    if wrong.any():
        found = values.flatten()[wrong.flatten().nonzero()[0, 0]].item()
        raise ValueError(
            f"column {name!r} of the table holds {found}, which is not a number of {errors.dtype_name(dtype)}, the "
            f"common dtype of its columns; take that column by itself, or give dtype={dtype}, which rounds it"
        )
