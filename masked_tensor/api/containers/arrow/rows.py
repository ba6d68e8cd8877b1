"""Rows of numbers, lists of numbers and texts: a table as a list of dicts, whichever library made it."""

import itertools
from typing import Any

import torch
from torch import Tensor

from ....select import select
from . import formats
from .abi import Array, Schema
from .buffers import bits, has_nulls, view
from .checks import check_array, children, expect
from .reading import read_numbers, take_pieces

_VIEWS = "vu"  # texts, each as its length and place
_SHORT = 12  # bytes of a text that stands in its view


def read_rows(data: Any) -> list[dict[str, Any]]:
    """The rows of a table of numbers, texts, and lists of them.

    Args:
        data (object): A table that speaks Arrow, such as pyarrow's, polars' and pandas'.

    Returns:
        list of dict: Each row by the names of the columns: a number, a text, a tensor, a list of texts, or None.

    Raises:
        TypeError: A column has another type.
        ValueError: The table is damaged.
        RuntimeError: The same, as torch says it.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.read_rows(mt.to_arrow(mt.masked_tensor([[1.0, None]]), ["a", "b"]))
        [{'a': 1.0, 'b': None}]
    """

    def read(schema: Any, arrays: list[Any]) -> list[dict[str, Any]]:
        expect(schema.format == formats.RECORD.encode(), "a table has columns with names")
        rows = []
        for array in arrays:
            check_array(schema, array)
            pairs = zip(children(schema, Schema), children(array, Array), strict=True)
            columns = {
                (kind.name or b"").decode(errors="replace"): _values(kind, child, array.offset, array.length)
                for kind, child in pairs
            }
            rows += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return rows

    found: list[dict[str, Any]] = take_pieces(data, read)
    return found


def _values(schema: Any, array: Any, start: int, length: int) -> list[Any]:
    """What a column has in some rows."""
    expect(start + length <= array.length, f"{start + length} entries of a child that has {array.length}")
    name = schema.format.decode(errors="replace")
    if name in formats.OFFSETS:
        values = _lists(schema, array, start, length)
    elif name == formats.NULL:
        return [None] * length
    else:
        values = _texts(name, array, start, length) if _is_text(name) else _numbers(name, array, start, length).tolist()
    there = bits(array, 0, array.offset + start, length).tolist() if has_nulls(array) else [True] * length
    return [value if known else None for value, known in zip(values, there, strict=True)]


def _lists(schema: Any, array: Any, start: int, length: int) -> list[Any]:
    offsets = view(array, 1, formats.OFFSETS[schema.format.decode()], array.offset + start, length + 1).tolist()
    expect(offsets[0] >= 0 and sorted(offsets) == offsets, "a list ends before it begins")
    kind, child = children(schema, Schema)[0], children(array, Array)[0]
    name, total = kind.format.decode(errors="replace"), offsets[-1] - offsets[0]
    expect(offsets[-1] <= child.length, f"{offsets[-1]} entries of a child that has {child.length}")
    read = _texts if _is_text(name) else _numbers
    values = read(name, child, offsets[0], total)
    return [values[a - offsets[0] : b - offsets[0]] for a, b in itertools.pairwise(offsets)]


def _numbers(name: str, array: Any, start: int, length: int) -> Tensor:
    pair = read_numbers(name, array, start, length)
    fill = torch.nan if pair.data.is_floating_point() else 0  # pandas hands out NaN as null
    return select(pair.data, pair.mask, fill)


def _is_text(name: str) -> bool:
    return name in formats.TEXTS or name == _VIEWS


def _texts(name: str, array: Any, start: int, length: int) -> list[str]:
    first = array.offset + start
    if name == _VIEWS:
        words = view(array, 1, torch.int32, 4 * first, 4 * length).view(-1, 4)
        return [_of_view(array, size, at, 16 * (first + i)) for i, (size, _, *at) in enumerate(words.tolist())]
    offsets = view(array, 1, formats.TEXTS[name], first, length + 1).tolist() if length else [0]
    expect(offsets[0] >= 0 and sorted(offsets) == offsets, "a text ends before it begins")
    memory = _bytes(array, 2, offsets[0], offsets[-1] - offsets[0])
    return [memory[a - offsets[0] : b - offsets[0]].decode(errors="replace") for a, b in itertools.pairwise(offsets)]


def _of_view(array: Any, size: int, place: list[int], at: int) -> str:
    """A short text stands behind its length, a longer one at a place of another buffer."""
    expect(size >= 0, "a text has a length below 0")
    inside = _bytes(array, 1, at + 4, size) if size <= _SHORT else _bytes(array, 2 + place[0], place[1], size)
    return inside.decode(errors="replace")


def _bytes(array: Any, number: int, start: int, length: int) -> bytes:
    expect(number >= 0 and start >= 0, "a text lies nowhere")
    return bytes(view(array, number, torch.uint8, start, length).tolist())
