"""Rows of numbers, lists of numbers and texts: a table as a list of dicts, whichever library made it."""

import itertools
from typing import Any

import torch
from torch import Tensor

from ....select import select
from . import formats
from .buffers import bits, has_nulls
from .library import Node, take_pieces
from .reading import read_numbers

_VIEWS = "vu"  # texts, each as its length and place
_SHORT = 12  # bytes of a text that stands in its view


def read_rows(data: Any) -> list[dict[str, Any]]:
    """The rows of a table of numbers, strings, and lists of them.

    Args:
        data (object): A table that supports Arrow, such as those of pyarrow, polars and pandas.

    Returns:
        list of dict: Each row by column name: a number, a string, a tensor, a list of strings, or None.

    Raises:
        TypeError: A column has another type.
        ValueError: The table is damaged.
        RuntimeError: The table is damaged in a way that torch detects.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.read_rows(mt.to_arrow(mt.masked_tensor([[1.0, None]]), ["a", "b"]))
        [{'a': 1.0, 'b': None}]
    """

    rows = []
    for piece in take_pieces(data)[1]:
        columns = {name: _values(piece.below(i)) for i, name in enumerate(piece.names)}
        rows += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows


def _values(node: Node) -> list[Any]:
    """What a column has."""
    name, length = node.format, node.length
    if name == formats.NULL:
        return [None] * length
    values: list[Any] = _lists(node) if name in formats.OFFSETS else _items(node, 0, length)
    if isinstance(values, Tensor):
        values = values.tolist()
    there = bits(node, 0, node.offset, length).tolist() if has_nulls(node) else [True] * length
    return [value if known else None for value, known in zip(values, there, strict=True)]


def _lists(node: Node) -> list[Any]:
    if not node.length:
        return []
    offsets = node.view(1, formats.OFFSETS[node.format], node.offset, node.length + 1).tolist()
    values = _items(node.below(), offsets[0], offsets[-1] - offsets[0])
    return [values[a - offsets[0] : b - offsets[0]] for a, b in itertools.pairwise(offsets)]


def _items(node: Node, start: int, length: int) -> Any:
    """Texts as a list, numbers as a tensor."""
    if node.format in formats.TEXTS or node.format == _VIEWS:
        return _texts(node, start, length)
    pair = read_numbers(node, start, length)
    fill = torch.nan if pair.data.is_floating_point() else 0  # pandas hands out NaN as null
    return select(pair.data, pair.mask, fill)


def _texts(node: Node, start: int, length: int) -> list[str]:
    first = node.offset + start
    if node.format == _VIEWS:
        words = node.view(1, torch.int32, 4 * first, 4 * length).view(-1, 4)
        return [_of_view(node, size, at, 16 * (first + i)) for i, (size, _, *at) in enumerate(words.tolist())]
    offsets = node.view(1, formats.TEXTS[node.format], first, length + 1).tolist() if length else [0]
    memory = _bytes(node, 2, offsets[0], offsets[-1] - offsets[0])
    return [memory[a - offsets[0] : b - offsets[0]].decode(errors="replace") for a, b in itertools.pairwise(offsets)]


def _of_view(node: Node, size: int, place: list[int], at: int) -> str:
    """A short text stands behind its length, a longer one at a place of another buffer."""
    inside = _bytes(node, 1, at + 4, size) if size <= _SHORT else _bytes(node, 2 + place[0], place[1], size)
    return inside.decode(errors="replace")


def _bytes(node: Node, number: int, start: int, length: int) -> bytes:
    return bytes(node.view(number, torch.uint8, start, length).tolist())
