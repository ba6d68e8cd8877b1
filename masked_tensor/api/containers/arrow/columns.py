"""A column of numbers, or a table of them: each value is copied once, from its source to its final place.

A table becomes ``(rows, columns)``, and lies in memory as it did: column after column.  Nulls become 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .... import masks
from ....fill import fill_into
from ....pair import Pair, Payload
from .. import tables
from . import formats
from .buffers import bits, has_nulls, view_bits, write_bits
from .library import Node


class Part(NamedTuple):
    """Entries of one column in one piece: their memory, where it is."""

    values: Tensor
    packed: Tensor | None  #: the bytes of the bitmap, of which ``skipped`` bits come before; None without nulls
    skipped: int


def holds_numbers(node: Node) -> bool:
    """Whether it is a column of numbers, or a record of such; anything else is read piece by piece."""
    columns = [node.below(i) for i in range(len(node.names))] if _is_table(node) else [node]
    numbers = formats.DTYPES.keys() | {formats.BITS}
    return bool(columns) and all(column.format in numbers and column.dictionary is None for column in columns)


def read_columns(empty: Node, at: Sequence[int], pieces: Sequence[Node], dtype: torch.dtype | None) -> Pair:
    """All pieces, one after the other: ``(N,)`` of a column, of a table ``(N, len(at))``."""
    table = _is_table(empty)
    columns = [empty.below(i) for i in at] if table else [empty]
    kinds = [formats.DTYPES.get(column.format, torch.bool) for column in columns]
    kind = tables.common_dtype(kinds) if dtype is None else dtype
    found = [_parts(piece, at, kinds, table) for piece in pieces]
    some = any(r is not None or any(part.packed is not None for part in parts) for r, parts in found)
    if dtype is None and len(set(kinds)) > 1:
        _expect_exact([empty.names[i] for i in at], found, kind)
    data = torch.empty(len(columns), sum(piece.length for piece in pieces), dtype=kind)
    mask = torch.empty(data.shape, dtype=torch.bool) if some else None
    start = 0
    for records, parts in found:
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


def _parts(
    piece: Node, at: Sequence[int], kinds: Sequence[torch.dtype], table: bool
) -> tuple[Tensor | None, list[Part]]:
    """What one piece has of each column; and of a table with records that are null, which are not."""
    if not table:
        return None, [_part(piece, kinds[0])]
    records = bits(piece, 0, piece.offset, piece.length) if has_nulls(piece) else None
    return records, [_part(piece.below(i), kind) for i, kind in zip(at, kinds, strict=True)]


def _part(column: Node, kind: torch.dtype) -> Part:
    first, length = column.offset, column.length
    values = bits(column, 1, first, length) if kind is torch.bool else column.view(1, kind, first, length)
    return Part(values, *view_bits(column, 0, first, length)) if has_nulls(column) else Part(values, None, 0)


def _copy(into: Tensor, valid: Tensor, part: Part, records: Tensor | None) -> None:
    """Writes values and which of them are valid: those whose record is also there."""
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


def _is_table(node: Node) -> bool:
    return node.format == formats.RECORD
