"""The buffers of an arrow column: numbers, and bits of which eight lie in a byte.

A view of a buffer lives as long as the structure that it is of; what is kept is a copy.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from ....masks.bits import WORDS, unpack_bits
from .abi import readable
from .checks import expect


def has_nulls(array: Any) -> bool:
    """Whether a column may have nulls: it has a bitmap, and does not say that it counts none."""
    return bool(array.n_buffers and array.null_count != 0 and array.buffers and array.buffers[0])


def bits(array: Any, number: int, start: int, length: int) -> Tensor:
    """Bits ``start`` to ``start + length`` of a buffer as bools, in fresh memory."""
    packed, skipped = view_bits(array, number, start, length)
    return unpack_bits(packed, skipped, length)


def view_bits(array: Any, number: int, start: int, length: int) -> tuple[Tensor, int]:
    """The bytes that hold bits ``start`` to ``start + length`` of a buffer, and how many bits come before them."""
    first, last = start // 8, (start + length + 7) // 8
    return view(array, number, torch.uint8, first, last - first), start - 8 * first


def write_bits(into: Tensor, packed: Tensor, start: int) -> None:
    """Writes the bits of bytes from ``start`` on into bools; eight at once where both lie at the bounds of words."""
    length = len(into)
    if (start | length | int(into.storage_offset())) % 8:
        into.copy_(unpack_bits(packed, start, length))
    else:
        torch.index_select(WORDS, 0, packed[start // 8 : (start + length) // 8].int(), out=into.view(torch.int64))


def view(array: Any, number: int, dtype: torch.dtype, start: int, length: int) -> Tensor:
    """Elements ``start`` to ``start + length`` of a buffer, where they are."""
    if not length:
        return torch.empty(0, dtype=dtype)
    expect(number < array.n_buffers and array.buffers, f"it has {array.n_buffers} buffers")
    address, size = (array.buffers[number] or 0) + start * dtype.itemsize, length * dtype.itemsize
    expect(
        array.buffers[number] and readable((address, size)), f"no memory lies at entries {start} to {start + length}"
    )
    memory = (ctypes.c_char * size).from_address(address)
    return torch.frombuffer(memory, dtype=dtype)
