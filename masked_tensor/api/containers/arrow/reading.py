"""Arrow columns become pairs: values in their own dtype, nulls as masked entries.

The values are copied once; a column that counts no nulls gets a mask of one byte.  Numbers and tables of numbers are
read in ``columns``; here is what consists of other columns: lists, records of lists, dictionaries.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .... import masks
from ....pair import Pair
from .. import ragged, tables
from . import formats
from .abi import Array, Schema, Stream, probing, take_capsule
from .buffers import bits, has_nulls, view
from .checks import check_array, check_schema, expect, pick_children
from .columns import number_columns, read_columns


def speaks_arrow(data: object) -> bool:
    """Whether ``data`` hands itself out through the interface."""
    return hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_c_stream__")


def read(data: Any, dtype: torch.dtype | None = None) -> Pair:
    """A column as a pair ``(N,)``, lists as ``(N, T)``, padded, a table as ``(N, columns)``."""
    return read_named(data, dtype)[0]


#: Reads the pieces of a column: their schema, and the arrays.
Read = Callable[[Any, list[Any]], Any]

#: Of a table's names, which columns are read, by number; None for all as they are.
Choose = Callable[[list[str]], "list[int] | None"]


def read_named(data: Any, dtype: torch.dtype | None = None, choose: Choose | None = None) -> tuple[Pair, list[str]]:
    """The same, and the names of a table's columns; the others are not looked at."""

    def read(schema: Any, arrays: list[Any]) -> tuple[Pair, list[str]]:
        at = choose(_names(schema)) if choose is not None and _names(schema) else None
        if at is not None:
            arrays = [pick_children(array, at, schema.n_children) for array in arrays]
            schema = pick_children(schema, at, schema.n_children)
        for array in arrays:
            check_array(schema, array)
        return _read_pieces(schema, arrays, dtype), _names(schema)

    found: tuple[Pair, list[str]] = take_pieces(data, read)
    return found


def take_pieces(data: Any, read: Read) -> Any:
    """What ``read`` makes of the pieces of a column, which are held until then; their schema is checked."""
    if hasattr(data, "__arrow_c_array__"):
        capsules = data.__arrow_c_array__()
        with take_capsule(capsules[0], Schema) as schema, take_capsule(capsules[1], Array) as array, probing():
            check_schema(schema)
            return read(schema, [array])
    with take_capsule(data.__arrow_c_stream__(), Stream) as stream, probing():
        return _take_stream(stream, read)


def _take_stream(stream: Any, read: Read) -> Any:
    expect(stream.release, "its stream was consumed (released) before; ask for a new one")
    expect(stream.get_schema and stream.get_next, "its stream has no functions")
    schema = Schema()
    _check(stream, stream.get_schema(stream, schema))
    check_schema(schema)
    arrays: list[Any] = []  # held until all are there: only then is it known how much memory they need
    try:
        while (array := _next_piece(stream)) is not None:
            arrays.append(array)
        return read(schema, arrays)
    finally:
        for array in arrays:
            array.release(array)
        schema.release(schema)


def _next_piece(stream: Any) -> Any:
    array = Array()
    _check(stream, stream.get_next(stream, array))
    return array if array.release else None


def _read_pieces(schema: Any, arrays: list[Any], dtype: torch.dtype | None) -> Pair:
    parts = number_columns(schema)
    if parts is not None:
        return read_columns(schema, parts, arrays, dtype)
    pieces = [_column(schema, array, dtype) for array in arrays]
    return ragged.pad_and_cat(pieces) if pieces else _column(schema, Array(), dtype)


def _check(stream: Any, failed: int) -> None:
    if failed:
        said = stream.get_last_error(stream) if stream.get_last_error else None
        reason = (said or b"").decode(errors="replace").partition("\n")[0]
        raise RuntimeError(f"the arrow stream failed: {reason}")


def _column(schema: Any, array: Any, dtype: torch.dtype | None, start: int = 0, length: int | None = None) -> Pair:
    """Entries ``start`` to ``start + length`` of a column."""
    length = array.length if length is None else length
    expect(start + length <= array.length, f"{start + length} entries of a child that has {array.length}")
    name = schema.format.decode(errors="replace")
    if schema.dictionary:
        codes = read_numbers(name, array, start, length)
        words = _read_chunk(schema.dictionary.contents, array.dictionary, dtype)
        return _decode_dictionary(codes, words)
    mask = _validity(array, start, length)
    if name == formats.NULL:
        return Pair(torch.zeros(length, dtype=dtype), masks.full((length,), torch.device("cpu"), False))
    if name == formats.RECORD:
        return _record(schema, array, mask, dtype, start, length)
    if name.startswith(formats.FIXED):
        size = int(name.removeprefix(formats.FIXED))
        rows = _child(schema, array, 0, dtype, (array.offset + start) * size, length * size)
        shape = (length, size, *rows.data.shape[1:])
        return _mask_children(mask, Pair(rows.data.reshape(shape), masks.reshape(rows.mask, shape)))
    if name in formats.OFFSETS:
        return _mask_children(mask, _lists(schema, array, dtype, start, length))
    values = read_numbers(name, array, start, length)
    return Pair(values.data if dtype is None else values.data.to(dtype), mask)


def read_numbers(name: str, array: Any, start: int, length: int) -> Pair:
    """Numbers of a column as they are."""
    mask = _validity(array, start, length)
    first = array.offset + start
    if name == formats.BITS:
        return Pair(bits(array, 1, first, length), mask)
    if name not in formats.DTYPES:
        raise formats.unsupported_type(name)
    return Pair(view(array, 1, formats.DTYPES[name], first, length).clone(), mask)


def _record(schema: Any, array: Any, mask: Tensor, dtype: torch.dtype | None, start: int, length: int) -> Pair:
    names = _names(schema)
    columns = tables.each_column(names, lambda i: _child(schema, array, i, dtype, array.offset + start, length))
    return _mask_children(mask, tables.stack_columns(names, columns, dtype))


def _names(schema: Any) -> list[str]:
    """The names of a record's columns; none of another type."""
    children = range(schema.n_children) if schema.format.decode(errors="replace") == formats.RECORD else ()
    return [(schema.children[i].contents.name or b"").decode(errors="replace") for i in children]


def _lists(schema: Any, array: Any, dtype: torch.dtype | None, start: int, length: int) -> Pair:
    kind = formats.OFFSETS[schema.format.decode()]
    offsets = view(array, 1, kind, array.offset + start, length + 1 if length else 0).long()
    first, last = (int(offsets[0]), int(offsets[-1])) if length else (0, 0)
    lengths = offsets.diff()
    expect(first >= 0 and bool(lengths.ge(0).all()), "a list ends before it begins")
    rows = _child(schema, array, 0, dtype, first, last - first)
    return ragged.to_padded(rows, lengths)


def _child(schema: Any, array: Any, i: int, dtype: torch.dtype | None, start: int, length: int) -> Pair:
    kind = schema.children[i].contents
    if not array.children:  # of no piece at all
        return _column(kind, Array(), dtype)
    return _column(kind, array.children[i].contents, dtype, start, length)


def _read_chunk(schema: Any, pointer: Any, dtype: torch.dtype | None) -> Pair:
    return _column(schema, pointer.contents if pointer else Array(), dtype)


def _mask_children(mask: Tensor, rows: Pair) -> Pair:
    """``rows`` where the lists or records that hold them are there at all."""
    small = masks.compact(mask)
    wide = small.reshape(len(small), *(1,) * (rows.data.dim() - 1))
    return Pair(rows.data, masks.logical_and(rows.mask, masks.expand_to(wide, rows.data.shape)))


def _decode_dictionary(codes: Pair, words: Pair) -> Pair:
    count, index = len(words.data), torch.where(codes.mask, codes.data.long(), 0)
    known = index.ge(0) & index.lt(count)
    expect(bool((known | ~codes.mask).all()), f"a code names no word of its dictionary, which has {count}")
    if not count:
        return Pair(words.data.new_zeros(len(codes.data)), masks.full((len(codes.data),), codes.data.device, False))
    return Pair(words.data[index], codes.mask & words.mask[index])


def _validity(array: Any, start: int, length: int) -> Tensor:
    if not has_nulls(array):
        return masks.full((length,), torch.device("cpu"))
    return bits(array, 0, array.offset + start, length)
