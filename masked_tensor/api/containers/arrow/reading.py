"""Arrow columns become pairs: values in their own dtype, nulls as masked entries.

The values are copied once; a column that counts no nulls gets a mask of one byte.  Numbers and tables of numbers are
read in ``columns``; here is what consists of other columns: lists, records of lists, dictionaries.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .... import masks
from ....pair import Pair
from .. import ragged, tables
from . import formats
from .buffers import bits, has_nulls
from .columns import holds_numbers, read_columns
from .library import Node, take_pieces

#: Of a table's names, which columns are read, by number; None for all as they are.
Choose = Callable[[list[str]], "list[int] | None"]


def speaks_arrow(data: object) -> bool:
    """Whether ``data`` hands itself out through the interface."""
    return hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_c_stream__")


def read(data: Any, dtype: torch.dtype | None = None) -> Pair:
    """A column as a pair ``(N,)``, lists as ``(N, T)``, padded, a table as ``(N, columns)``."""
    return read_named(data, dtype)[0]


def read_named(data: Any, dtype: torch.dtype | None = None, choose: Choose | None = None) -> tuple[Pair, list[str]]:
    """The same, and the names of a table's columns; the others are not looked at."""
    empty, pieces = take_pieces(data)
    names = list(empty.names)
    at = choose(names) if choose is not None and names else None
    chosen = range(len(names)) if at is None else at
    if holds_numbers(empty if at is None else _picked(empty, at)):
        pair = read_columns(empty, chosen, pieces, dtype)
    else:
        found = [_column(piece if at is None else _picked(piece, at), dtype) for piece in pieces or [empty]]
        pair = ragged.pad_and_cat(found) if len(found) > 1 else found[0]
    return pair, [names[i] for i in chosen]


def _picked(node: Node, at: Sequence[int]) -> Node:
    """A record of these columns alone."""
    return replace(node, names=tuple(node.names[i] for i in at), child=lambda i: node.below(at[i]))


def _column(node: Node, dtype: torch.dtype | None, start: int = 0, length: int | None = None) -> Pair:
    """Entries ``start`` to ``start + length`` of a column."""
    length = node.length if length is None else length
    name = node.format
    if node.dictionary is not None:
        return _decode_dictionary(read_numbers(node, start, length), _column(node.dictionary(), dtype))
    if name == formats.NULL:
        return Pair(torch.zeros(length, dtype=dtype), masks.full((length,), torch.device("cpu"), False))
    mask = _validity(node, start, length)
    if name == formats.RECORD:
        names = list(node.names)
        columns = tables.each_column(names, lambda i: _column(node.below(i), dtype, start, length))
        return _mask_children(mask, tables.stack_columns(names, columns, dtype))
    if name.startswith(formats.FIXED):
        size = int(name.removeprefix(formats.FIXED))
        rows = _column(node.below(), dtype, (node.offset + start) * size, length * size)
        shape = (length, size, *rows.data.shape[1:])
        return _mask_children(mask, Pair(rows.data.reshape(shape), masks.reshape(rows.mask, shape)))
    if name in formats.OFFSETS:
        return _mask_children(mask, _lists(node, dtype, start, length))
    values = read_numbers(node, start, length)
    return Pair(values.data if dtype is None else values.data.to(dtype), mask)


def read_numbers(node: Node, start: int, length: int) -> Pair:
    """Numbers of a column as they are."""
    first, name = node.offset + start, node.format
    if name == formats.BITS:
        return Pair(bits(node, 1, first, length), _validity(node, start, length))
    if name not in formats.DTYPES:
        raise formats.unsupported_type(name)
    return Pair(node.view(1, formats.DTYPES[name], first, length).clone(), _validity(node, start, length))


def _lists(node: Node, dtype: torch.dtype | None, start: int, length: int) -> Pair:
    offsets = node.view(1, formats.OFFSETS[node.format], node.offset + start, length + 1 if length else 0).long()
    first, last = (int(offsets[0]), int(offsets[-1])) if length else (0, 0)
    return ragged.to_padded(_column(node.below(), dtype, first, last - first), offsets.diff())


def _mask_children(mask: Tensor, rows: Pair) -> Pair:
    """``rows`` where the lists or records that hold them are there at all."""
    small = masks.compact(mask)
    wide = small.reshape(len(small), *(1,) * (rows.data.dim() - 1))
    return Pair(rows.data, masks.logical_and(rows.mask, masks.expand_to(wide, rows.data.shape)))


def _decode_dictionary(codes: Pair, words: Pair) -> Pair:
    count, index = len(words.data), torch.where(codes.mask, codes.data.long(), 0)
    if not bool(((index >= 0) & (index < count) | ~codes.mask).all()):
        raise ValueError(f"the arrow column cannot be read: a code names no word of its dictionary, which has {count}")
    if not count:
        return Pair(words.data.new_zeros(len(codes.data)), masks.full((len(codes.data),), codes.data.device, False))
    return Pair(words.data[index], codes.mask & words.mask[index])


def _validity(node: Node, start: int, length: int) -> Tensor:
    if not has_nulls(node):
        return masks.full((length,), torch.device("cpu"))
    return bits(node, 0, node.offset + start, length)
