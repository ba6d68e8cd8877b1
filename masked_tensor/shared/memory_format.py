"""How the result of torch's kernels lies in memory: channels last where the input does, contiguous otherwise."""

import torch
from torch import Tensor

from ..compat import in_transform
from ..masks.strides import lay_out_as
from ..pair import Pair

_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def suggest_format(data: Tensor) -> torch.memory_format:
    """Channels last where the strides of ``data`` are in that order, as torch's kernels ask; contiguous otherwise."""
    wide = _CHANNELS_LAST.get(data.dim())
    if wide is None or in_transform() or not _has_channels_last(data):
        return torch.contiguous_format
    return wide


def _has_channels_last(data: Tensor) -> bool:
    """Also a size of 1 has its stride in that order: torch's own question, to which Python has no name."""
    least, sizes, strides = 0, data.shape, data.stride()
    if strides[1] == 0 or 0 in sizes:
        return False
    for d in (1, *range(data.dim() - 1, 1, -1), 0):
        if strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * sizes[d]
    return True


def make_dense(x: Pair, *, channels_last: bool = False) -> Pair:
    """The pair with contiguous data; ``channels_last``: data that lies so stays so."""
    if x.data.is_contiguous():
        return x
    data = x.data.contiguous(memory_format=suggest_format(x.data) if channels_last else torch.contiguous_format)
    return x if data is x.data else copied(x, data)


def copied(x: Pair, data: Tensor) -> Pair:
    """The pair of a copy of its data; where that lies in another order in memory, so does the mask."""
    same = type(x.mask) is not Tensor or data.stride() == x.data.stride()
    return Pair(data, x.mask if same else lay_out_as(x.mask, data), x.payload)


def stored_as(data: Tensor, other: Tensor) -> Tensor:
    """``data`` in the format of ``other``, even along sizes of 1, whose strides torch's kernels also read."""
    wanted = suggest_format(other)
    if wanted == suggest_format(data):
        return data
    if wanted is torch.contiguous_format:
        return data.contiguous()
    last = data.movedim(1, -1).contiguous()
    result: Tensor = last.flatten(-2).unflatten(-1, last.shape[-2:]).movedim(-1, 1)
    return result
