"""A column of numbers, or a table of them: each value is copied once, from where it is to where it stays.

A table becomes ``(rows, columns)``, and lies in memory as it did: column after column.  Nulls become 0.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .... import masks
from ....fill import fill_into
from ....pair import Pair, Payload
from .. import tables
from . import formats
from .abi import Schema
from .buffers import bits, has_nulls, view, view_bits, write_bits
from .checks import children, expect


class Part(NamedTuple):
    """Entries of one column in one piece: their memory, where it is."""

    values: Tensor
    packed: Tensor | None  #: the bytes of the bitmap, of which ``skipped`` bits come before; None without nulls
    skipped: int


def number_columns(schema: Any) -> list[Any] | None:
    """The schemas of the columns, if all are of numbers; None for anything else, which is read piece by piece."""
    columns = list(children(schema, Schema)) if _is_table(schema) else [schema]
    numbers = formats.DTYPES.keys() | {formats.BITS}
    plain = all(_name(column) in numbers and not column.dictionary for column in columns)
    return columns if plain and columns else None


def read_columns(schema: Any, columns: Sequence[Any], arrays: Sequence[Any], dtype: torch.dtype | None) -> Pair:
    """All pieces, one after the other: ``(N, columns)`` of a table, ``(N,)`` of a column."""
    kinds = [formats.DTYPES.get(_name(column), torch.bool) for column in columns]
    names = [(column.name or b"").decode(errors="replace") for column in columns]
    kind = tables.common_dtype(kinds) if dtype is None else dtype
    table = _is_table(schema)
    pieces = [_parts(array, kinds, table) for array in arrays]  # before memory is taken: they may not be there
    some = any(part.packed is not None for _, parts in pieces for part in parts) or any(
        r is not None for r, _ in pieces
    )
    if dtype is None and len(set(kinds)) > 1:
        _expect_exact(names, pieces, kind)
    data = torch.empty(len(columns), sum(array.length for array in arrays), dtype=kind)
    mask = torch.empty(data.shape, dtype=torch.bool) if some else None
    start = 0
    for records, parts in pieces:
        into = slice(start, start + parts[0].values.shape[0])
        for i, part in enumerate(parts):
            if mask is None:
                data[i, into].copy_(part.values)
            else:
                _copy(data[i, into], mask[i, into], part, records)
        start = into.stop
    whole = masks.full(data.shape, data.device) if mask is None else mask
    return Pair(data.t(), whole.t(), Payload.ZERO) if table else Pair(data[0], whole[0], Payload.ZERO)


def _expect_exact(names: Sequence[str], pieces: Sequence[tuple[Tensor | None, list[Part]]], kind: torch.dtype) -> None:
    for records, parts in pieces:
        for name, part in zip(names, parts, strict=True):
            valid = records
            if part.packed is not None:
                valid = torch.empty(part.values.shape, dtype=torch.bool)
                write_bits(valid, part.packed, part.skipped)
                valid = valid if records is None else valid & records
            tables.expect_exact(name, part.values, valid, kind)


def _parts(array: Any, kinds: Sequence[torch.dtype], table: bool) -> tuple[Tensor | None, list[Part]]:
    """What one piece has of each column; and of a table with records that are null, which are not."""
    if not table:
        return None, [_part(array, kinds[0], 0, array.length)]
    records = bits(array, 0, array.offset, array.length) if has_nulls(array) else None
    columns = [array.children[i].contents for i in range(array.n_children)]
    return records, [_part(c, kind, array.offset, array.length) for c, kind in zip(columns, kinds, strict=True)]


def _part(column: Any, kind: torch.dtype, first: int, length: int) -> Part:
    expect(first + length <= column.length, f"{first + length} entries of a child that has {column.length}")
    first += column.offset
    values = bits(column, 1, first, length) if kind is torch.bool else view(column, 1, kind, first, length)
    return Part(values, *view_bits(column, 0, first, length)) if has_nulls(column) else Part(values, None, 0)


def _copy(into: Tensor, valid: Tensor, part: Part, records: Tensor | None) -> None:
    """Writes values and which of them are valid: those whose record is there, too."""
    if part.packed is None and records is None:
        into.copy_(part.values)
        valid.fill_(True)
        return
    if part.packed is not None:
        write_bits(valid, part.packed, part.skipped)
    if records is not None:
        valid.copy_(records if part.packed is None else records & valid)
    if len(into):
        fill_into(into, part.values.to(into.dtype), valid, 0)


def _is_table(schema: Any) -> bool:
    return _name(schema) == formats.RECORD


def _name(schema: Any) -> str:
    name: str = schema.format.decode(errors="replace")
    return name
