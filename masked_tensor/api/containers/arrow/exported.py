"""Exported columns: a type, its memory, and the columns that it consists of."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .... import errors, masks
from ....masks.bits import pack_bits
from . import formats
from .library import Column


def numbers(data: Tensor, mask: Tensor) -> Column:
    """A column of numbers; contiguous data are not copied, except bools, which become bits.

    Args:
        data (Tensor): Plain ``(N,)`` on the CPU, any dtype that Arrow supports.
        mask (Tensor): True = valid; bool ``(N,)``. The other entries are null.

    Returns:
        Column: A column for :class:`ArrowTable` and :func:`lists`.

    Raises:
        TypeError: Arrow does not support the dtype, such as bfloat16 or complex.

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
    """A column of strings without missing values.

    Args:
        values (list of str): The strings.

    Returns:
        Column: A column for :class:`ArrowTable` and :func:`lists`.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.read_rows(data.ArrowTable([("name", data.texts(["a", "b"]))]))
        [{'name': 'a'}, {'name': 'b'}]
    """
    parts = [value.encode(errors="replace") for value in values]
    memory = torch.tensor([*b"".join(parts), 0], dtype=torch.uint8)  # there is a byte where there is no text
    return Column(formats.TEXT, len(parts), (None, _offsets([len(part) for part in parts]), memory))


def lists(lengths: Sequence[int | None], values: Column) -> Column:
    """A column of lists, which divide ``values`` in order.

    Args:
        lengths (list of int or None): The length of each list; None for a missing list.
        values (Column): The entries of all lists.

    Returns:
        Column: A column for :class:`ArrowTable`.

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
