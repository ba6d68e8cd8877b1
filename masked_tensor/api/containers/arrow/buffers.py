"""The bits of an arrow column, of which eight lie in a byte."""

import torch
from torch import Tensor

from ....masks.bits import WORDS, unpack_bits
from .library import Node


def has_nulls(node: Node) -> bool:
    """Whether a column may have nulls: it has a bitmap, and does not say that it counts none."""
    return node.nulls != 0 and node.format != "n" and node.buffer(0) is not None


def bits(node: Node, number: int, start: int, length: int) -> Tensor:
    """Bits ``start`` to ``start + length`` of a buffer as bools, in fresh memory."""
    packed, skipped = view_bits(node, number, start, length)
    return unpack_bits(packed, skipped, length)


def view_bits(node: Node, number: int, start: int, length: int) -> tuple[Tensor, int]:
    """The bytes that hold bits ``start`` to ``start + length`` of a buffer, and how many bits come before them."""
    first, last = start // 8, (start + length + 7) // 8
    return node.view(number, torch.uint8, first, last - first), start - 8 * first


def write_bits(into: Tensor, packed: Tensor, start: int) -> None:
    """Writes the bits of bytes from ``start`` on into bools; eight at once where both lie at the bounds of words."""
    length = len(into)
    if (start | length | int(into.storage_offset())) % 8:
        into.copy_(unpack_bits(packed, start, length))
    else:
        torch.index_select(WORDS, 0, packed[start // 8 : (start + length) // 8].int(), out=into.view(torch.int64))
