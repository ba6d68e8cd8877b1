"""Columns that are handed out: a type, the memory it is in, and the columns that it consists of."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .... import errors, masks
from ....masks.bits import pack_bits
from . import formats
from .abi import NULLABLE, Array, Schema, keep_alive


class Column(NamedTuple):
    """One column, and all below it."""

    format: str
    length: int
    buffers: tuple[Tensor | None, ...]  #: the bits of what is there, None where all is; then what the format asks for
    nulls: int = 0
    children: tuple[tuple[str, "Column"], ...] = ()


def numbers(data: Tensor, mask: Tensor) -> Column:
    """A column of numbers; they stay where they are if they lie together, and bools become bits.

    Args:
        data (Tensor): Plain ``(N,)`` on the CPU, any dtype that Arrow has.
        mask (Tensor): True = valid, bool ``(N,)``; the others are null.

    Returns:
        Column: For :class:`ArrowTable` and :func:`lists`.

    Raises:
        TypeError: Arrow has no type for the dtype, such as bfloat16 and complex ones.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.numbers(torch.ones(3), torch.tensor([True, False, True])).length
        3
    """
    if data.dtype not in formats.FORMATS:
        way_out = "torch.view_as_real(x)" if data.dtype.is_complex else "x.float()"
        raise TypeError(f"arrow has no type for {errors.dtype_name(data.dtype)}; use {way_out}")
    nulls = mask.numel() - int(masks.count(mask))
    values = pack_bits(data) if data.dtype is torch.bool else data.contiguous()
    return Column(formats.FORMATS[data.dtype], len(data), (pack_bits(mask) if nulls else None, values), nulls)


def texts(values: Sequence[str]) -> Column:
    """A column of texts, none of which is missing.

    Args:
        values (list of str): The texts.

    Returns:
        Column: For :class:`ArrowTable` and :func:`lists`.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.read_rows(data.ArrowTable([("name", data.texts(["a", "b"]))]))
        [{'name': 'a'}, {'name': 'b'}]
    """
    parts = [value.encode(errors="replace") for value in values]
    memory = torch.tensor([*b"".join(parts), 0], dtype=torch.uint8)  # there is a byte where there is no text
    return Column(formats.TEXT, len(parts), (None, _offsets([len(part) for part in parts]), memory))


def lists(lengths: Sequence[int | None], values: Column) -> Column:
    """A column of lists, each of so many of the values, one after the other.

    Args:
        lengths (list of int or None): The length of each list; None is no list.
        values (Column): What is in the lists.

    Returns:
        Column: For :class:`ArrowTable`.

    Example:
        >>> from masked_tensor.extend import data
        >>> column = data.lists([2, None], data.texts(["a", "b"]))
        >>> data.read_rows(data.ArrowTable([("names", column)]))
        [{'names': ['a', 'b']}, {'names': None}]
    """
    there = torch.tensor([length is not None for length in lengths], dtype=torch.bool)
    nulls = sum(length is None for length in lengths)
    bits = pack_bits(there) if nulls else None
    return Column("+l", len(lengths), (bits, _offsets([n or 0 for n in lengths])), nulls, (("item", values),))


def fixed_lists(size: int, length: int, values: Column) -> Column:
    """``length`` lists of ``size`` values each."""
    return Column(f"{formats.FIXED}{size}", length, (None,), 0, (("item", values),))


def record(columns: Sequence[tuple[str, Column]]) -> Column:
    """Columns of one length, with names."""
    return Column(formats.RECORD, columns[0][1].length if columns else 0, (None,), 0, tuple(columns))


def _offsets(lengths: Sequence[int]) -> Tensor:
    return torch.tensor([0, *lengths], dtype=torch.int64).cumsum(0).int()


def make_schema(column: Column, name: str = "") -> Any:
    """The type of a column as the interface lays it down."""
    texts = column.format.encode(), name.encode(errors="replace")
    schema = Schema(format=texts[0], name=texts[1], flags=NULLABLE)
    below = [make_schema(child, name) for name, child in column.children]
    keep_alive(schema, (texts, _adopt(schema, below, Schema)))
    return schema


def make_array(column: Column) -> Any:
    """The values of a column as the interface lays them down; their memory lives until they are released."""
    array = Array(length=column.length, null_count=column.nulls)
    addresses = (None if buffer is None else buffer.data_ptr() for buffer in column.buffers)
    buffers = (c_void_p * len(column.buffers))(*addresses)
    array.n_buffers, array.buffers = len(column.buffers), buffers
    below = [make_array(child) for _, child in column.children]
    keep_alive(array, (column.buffers, buffers, _adopt(array, below, Array)))
    return array


def _adopt(parent: Any, below: list[Any], kind: Any) -> object:
    """Puts structures below another; what must be kept for them."""
    children = (POINTER(kind) * len(below))(*map(ctypes.pointer, below))
    if below:
        parent.n_children, parent.children = len(below), children
    return below, children
