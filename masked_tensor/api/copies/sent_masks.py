"""Masks on their way to another process: as bits, in the message itself.

A tensor in a message is memory that both processes share, and a file descriptor for each.  A mask is sent as a copy
anyway: one eighth of its bytes, and no descriptor.  Of a mask that is True everywhere nothing is sent.
"""

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from ... import layouts, masks, shapes
from ...compat import is_readable_memory
from ...masks.bits import pack_bits, unpack_bits


class SentMask(NamedTuple):
    """The entries of a compact mask, and how they lie in memory."""

    bits: bytes
    shape: tuple[int, ...]
    order: tuple[int, ...]  #: the dimensions of the mask, those that are farthest apart in memory first


def send_mask(mask: Tensor) -> Tensor | SentMask | None:
    """What is sent of a mask: its bits, nothing if it is True everywhere; the mask itself if it is not on the CPU."""
    small = layouts.values(mask) if layouts.is_sparse(mask) else masks.compact(mask)
    if not is_readable_memory(small):
        return mask if layouts.is_sparse(mask) else small
    if masks.is_all_valid(small) or int(masks.count(small)) == small.numel():
        return None
    order = shapes.memory_order(small.stride())
    packed = pack_bits(small.permute(order))
    return SentMask(ctypes.string_at(packed.data_ptr(), len(packed)), tuple(small.shape), order)


def receive_mask(sent: Tensor | SentMask | None, data: Tensor) -> Tensor:
    """The mask of ``data`` of which ``send_mask`` made this."""
    if isinstance(sent, Tensor):
        return sent if layouts.is_sparse(sent) else masks.expand_to(sent, data.shape)
    sparse = layouts.is_sparse(data)
    if sent is None:
        return layouts.specified_mask(data) if sparse else masks.full(data.shape, data.device)
    size = [sent.shape[d] for d in sent.order]
    packed = torch.frombuffer(bytearray(sent.bits), dtype=torch.uint8)
    small = unpack_bits(packed, 0, torch.Size(size).numel()).view(size)
    small = small.permute([sent.order.index(d) for d in range(len(size))])
    return layouts.with_values(data.detach(), small) if sparse else masks.expand_to(small, data.shape)
