"""Counting bytes that are 0 or 1, eight at a time as one int64: summing bool is 100 times slower, any() 45 times.

Up to 255 words are added before any byte of them can overflow.
"""

import torch
from torch import Tensor

_LOW_BYTES = 0x00FF00FF00FF00FF
_FOUR_ONES = 0x0001000100010001
_EIGHT_ONES = 0x0101010101010101


def count(small: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """``small.sum(dims, keepdim)`` of uint8 zeros and ones on the CPU, as int64."""
    last = small.dim() - 1
    if len(dims) > 1 and len(dims) == small.dim() and small.is_contiguous():
        total = count(small.view(-1), (0,), False)
        return total.view([1] * small.dim()) if keepdim else total
    words = _words(small)
    if last in dims:
        # At most 255 words are added, so no byte overflows; then bytes are added in pairs, and the pairs by a product.
        width = words.shape[-1]
        group = next(n for n in range(255, 0, -1) if width % n == 0)
        part = words.unflatten(-1, (width // group, group)).sum(-1)
        pairs = (part & _LOW_BYTES) + ((part >> 8) & _LOW_BYTES)
        total = torch.bitwise_and(pairs * _FOUR_ONES >> 48, 0xFFFF)
        return total.sum(dims, keepdim)
    # Rows are added 255 at a time, so no byte overflows.
    longest = max(dims, key=lambda d: small.shape[d])
    whole, rest = divmod(small.shape[longest], 255)
    parts = []
    if whole:
        parts.append(words.narrow(longest, 0, whole * 255).unflatten(longest, (whole, 255)).sum(longest + 1))
    if rest:
        parts.append(words.narrow(longest, whole * 255, rest).sum(longest, True))
    sums = torch.cat(parts, longest).view(torch.uint8).narrow(-1, 0, small.shape[-1])
    return sums.sum(dims, keepdim, dtype=torch.int64)


def any_or_all(small: Tensor, dims: tuple[int, ...], keepdim: bool, every: bool) -> Tensor:
    """Whether all, or any, of the uint8 zeros and ones along ``dims`` are 1; aligned bytes are read by eight."""
    if small.dim() - 1 in dims and _pad_to_words(small):
        words = (torch.amin if every else torch.amax)(_by_eight(small), dims, keepdim)
        return words == _EIGHT_ONES if every else words != 0
    return (torch.amin if every else torch.amax)(small, dims, keepdim).view(torch.bool)


def _pad_to_words(small: Tensor) -> bool:
    return small.is_contiguous() and small.storage_offset() % 8 == 0 and small.shape[-1] % 8 == 0


def _by_eight(small: Tensor) -> Tensor:
    """Aligned bytes as int64; by way of one dimension, because one of size 1 may have any stride."""
    return small.view(-1).view(torch.int64).view(*small.shape[:-1], small.shape[-1] // 8)


def _words(small: Tensor) -> Tensor:
    """The bytes as int64 along the last dimension, padded with zeros to a length that divides well."""
    size = small.shape[-1]
    if _pad_to_words(small) and (size <= 2040 or any(size % (8 * n) == 0 for n in range(32, 256))):
        return _by_eight(small)
    unit = 8 if size <= 2040 else 1024
    padded = small.new_zeros((*small.shape[:-1], size + -size % unit))
    padded.narrow(-1, 0, size).copy_(small)
    return padded.view(torch.int64)
