"""The buffers of an arrow column: numbers, and bits of which eight lie in a byte.

A view of a buffer lives as long as the structure that it is of; what is kept is a copy.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from .abi import readable
from .checks import expect

_BITS = torch.arange(256).unsqueeze(1).bitwise_right_shift(torch.arange(8)).bitwise_and(1)
#: Of each byte its eight bits as bools, the lowest first; eight bools are one word.
_WORDS = _BITS.to(torch.uint8).view(torch.int64).flatten()


def has_nulls(array: Any) -> bool:
    """Whether a column may have nulls: it has a bitmap, and does not say that it counts none."""
    return bool(array.n_buffers and array.null_count != 0 and array.buffers and array.buffers[0])


def bits(array: Any, number: int, start: int, length: int) -> Tensor:
    """Bits ``start`` to ``start + length`` of a buffer as bools, in fresh memory."""
    packed, skipped = view_bits(array, number, start, length)
    return _WORDS.index_select(0, packed.int()).view(torch.bool)[skipped:][:length]


def view_bits(array: Any, number: int, start: int, length: int) -> tuple[Tensor, int]:
    """The bytes that hold bits ``start`` to ``start + length`` of a buffer, and how many bits come before them."""
    first, last = start // 8, (start + length + 7) // 8
    return view(array, number, torch.uint8, first, last - first), start - 8 * first


def unpack_bits(into: Tensor, packed: Tensor, start: int) -> None:
    """Writes the bits of bytes from ``start`` on into bools; eight at once where both lie at the bounds of words."""
    length = len(into)
    some = packed[start // 8 : (start + length + 7) // 8].int()
    if (start | length | int(into.storage_offset())) % 8:
        into.copy_(_WORDS.index_select(0, some).view(torch.bool)[start % 8 :][:length])
    else:
        torch.index_select(_WORDS, 0, some, out=into.view(torch.int64))


def view(array: Any, number: int, dtype: torch.dtype, start: int, length: int) -> Tensor:
    """Elements ``start`` to ``start + length`` of a buffer, where they are."""
    if not length:
        return torch.empty(0, dtype=dtype)
    expect(number < array.n_buffers and array.buffers, f"it has {array.n_buffers} buffers")
    address, size = (array.buffers[number] or 0) + start * dtype.itemsize, length * dtype.itemsize
    expect(array.buffers[number] and readable(address, size), f"no memory lies at entries {start} to {start + length}")
    memory = (ctypes.c_char * size).from_address(address)
    return torch.frombuffer(memory, dtype=dtype)
