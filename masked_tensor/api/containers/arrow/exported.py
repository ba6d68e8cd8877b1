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
    """Numbers ``(N,)``; they stay where they are if they lie together, and bools become bits."""
    if data.dtype not in formats.FORMATS:
        way_out = "torch.view_as_real(x)" if data.dtype.is_complex else "x.float()"
        raise TypeError(f"arrow has no type for {errors.dtype_name(data.dtype)}; use {way_out}")
    nulls = mask.numel() - int(masks.count(mask))
    values = pack_bits(data) if data.dtype is torch.bool else data.contiguous()
    return Column(formats.FORMATS[data.dtype], len(data), (pack_bits(mask) if nulls else None, values), nulls)


def texts(values: Sequence[str]) -> Column:
    """Texts, none of which is missing."""
    parts = [value.encode(errors="replace") for value in values]
    memory = torch.tensor([*b"".join(parts), 0], dtype=torch.uint8)  # there is a byte where there is no text
    return Column(formats.TEXT, len(parts), (None, _offsets([len(part) for part in parts]), memory))


def lists(lengths: Sequence[int | None], values: Column) -> Column:
    """Lists of so many of the values each, one after the other; None is no list."""
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
