"""Mask algebra: both, count, any, all, and the compact form they work on.

A mask keeps stride 0 along the dimensions in which it is constant.  ``compact`` shrinks those to size 1, ``both`` works
there and re-expands: the AND of two ``(B, T, 1)`` padding masks over ``(B, T, C)`` data touches ``B * T`` bytes.
Nothing here reads a value on the host.
"""

import builtins
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def compact(mask: Tensor) -> Tensor:
    """``mask`` with every stride-0 dimension narrowed to size 1: the same information, the least memory."""
    strides = mask.stride()
    if 0 not in strides:
        return mask
    for dim, stride in enumerate(strides):
        if stride == 0 and mask.shape[dim] > 1:
            mask = mask.narrow(dim, 0, 1)
    return mask


def from_bytes(mask: Tensor) -> Tensor:
    """The mask with these bytes (0 or 1): the same memory; traced, a comparison (inductor has no such view)."""
    if type(mask) is Tensor:
        return mask.view(torch.bool)
    return (compact(mask).to(torch.float32) != 0).expand(mask.shape)  # inductor vectorises this, not byte != 0


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two masks are the same memory seen the same way: a static fact, no value is compared."""
    if a is b or torch.compiler.is_dynamo_compiling():  # Dynamo cannot trace the question below
        return a is b
    return (
        torch._C._is_alias_of(a, b)  # type: ignore[attr-defined]
        and a.shape == b.shape
        and a.stride() == b.stride()
        and a.storage_offset() == b.storage_offset()
    )


def both(a: Tensor, b: Tensor) -> Tensor:
    """``a & b``, broadcast; constant dimensions stay compact."""
    if same(a, b):
        return a
    x, y = compact(a), compact(b)
    result = torch.bitwise_and(x, y)
    if x is a and y is b:
        return result
    return fit(result, a.shape if a.shape == b.shape else torch.broadcast_shapes(a.shape, b.shape))


def fit(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """``mask`` broadcast to ``shape`` (an expand: new dimensions have stride 0)."""
    return mask if mask.shape == tuple(shape) else mask.expand(tuple(shape))


def reshape(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """``mask.reshape(shape)``; constant dimensions keep stride 0 unless merged with others."""
    shape = tuple(shape)
    strides = mask.stride()
    if 0 not in strides or mask.numel() == 0:
        return mask.reshape(shape)
    mask = mask.view(_refined(mask.shape, shape))  # (B, E) to (B * H, E / H): what becomes the last dim stays constant
    strides = mask.stride()
    before: list[int] = []
    after: list[int] = []
    for old, new in _segments(mask.shape, shape):
        constant = builtins.all(strides[d] == 0 or mask.shape[d] == 1 for d in old)
        before += [1 if constant else mask.shape[d] for d in old]
        after += [1 if constant else shape[d] for d in new]
    for d, size in enumerate(before):
        if size != mask.shape[d]:
            mask = mask.narrow(d, 0, 1)
    return mask.reshape(after).expand(shape)


def _refined(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """``old`` with its dimensions split where ``new`` splits them, if every boundary divides the next."""
    cuts = sorted([1, *accumulate(old, mul), *accumulate(new, mul)])
    if builtins.any(b % a for a, b in pairwise(cuts)):
        return tuple(old)
    return tuple(b // a for a, b in pairwise(cuts) if a != b)


def _segments(old: Sequence[int], new: Sequence[int]) -> list[tuple[range, range]]:
    """The shortest runs of old and new dimensions with equal products, in order."""
    result = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, second, start = (old[i] if i < len(old) else 1), (new[j] if j < len(new) else 1), (i, j)
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while first != second:
            if first < second:
                first, i = first * old[i], i + 1
            else:
                second, j = second * new[j], j + 1
        result.append((range(start[0], i), range(start[1], j)))
    return result


def laid_out(mask: Tensor, data: Tensor) -> Tensor:
    """One bool per element of the memory that ``data`` spans, True where an element of ``data`` is valid."""
    if data.numel() == 0:
        return torch.zeros(0, dtype=torch.bool, device=data.device)
    span = sum((size - 1) * stride for size, stride in zip(data.shape, data.stride(), strict=True)) + 1
    memory = torch.zeros(span, dtype=torch.bool, device=data.device)
    memory.as_strided(data.shape, data.stride()).copy_(mask)
    return memory


def on(mask: Tensor, device: torch.device) -> Tensor:
    """``mask`` on ``device``; of constant dimensions only one entry is copied."""
    return mask if mask.device == device else compact(mask).to(device).expand(mask.shape)


def full(shape: Sequence[int], device: torch.device, value: bool = True) -> Tensor:
    """A constant mask of ``shape`` held in one byte."""
    return torch.full((), value, dtype=torch.bool, device=device).expand(tuple(shape))


def canonical_dims(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """``dim`` as sorted non-negative dims; None and ``()`` mean all of them.  Raises IndexError as torch does."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    if isinstance(dim, int) and 0 <= dim < ndim:
        return (dim,)
    dims = []
    for d in (dim,) if isinstance(dim, int) else dim:
        bound = max(ndim, 1)
        if not -bound <= d < bound:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {d})"
            )
        dims.append(d % bound)
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return tuple(sorted(d for d in dims if d < ndim))


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """``shape`` after a reduction over canonical ``dims``."""
    if keepdim:
        return tuple(1 if d in dims else size for d, size in enumerate(shape))
    return tuple(size for d, size in enumerate(shape) if d not in dims)


def transforming() -> bool:
    """Whether a torch.func transform or forward-mode AD is active: then only plain differentiable ops may be used."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def real(x: Tensor) -> bool:
    """Whether ``x`` is memory on the CPU that may be read as another dtype: no tracing, torch.func or other device."""
    plain = type(x) is Tensor or type(x) is torch.nn.Parameter
    return plain and x.device.type == "cpu" and not transforming()


def count(mask: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The number of True entries along ``dim`` (int64)."""
    if few(mask):
        return torch.sum(mask) if dim is None and not keepdim else torch.sum(mask, _dims(dim, mask), keepdim)
    dims = canonical_dims(dim, mask.dim())
    small = compact(mask)
    repeats = 1 if small is mask else prod(mask.shape[d] for d in dims if small.shape[d] != mask.shape[d])
    if not dims:
        total = small.view(torch.uint8).to(torch.int64)
    elif small.numel() >= PACKED and real(small):
        total = _packed_count(small.view(torch.uint8), dims, keepdim)
    elif type(small) is Tensor:
        total = small.view(torch.uint8).sum(dims, keepdim=keepdim, dtype=torch.int64)
    else:  # inductor vectorises 32 bits
        wide = torch.int32 if small.numel() < 2**31 else torch.int64
        total = small.to(wide).sum(dims, keepdim=keepdim, dtype=wide).to(torch.int64)
    total = total if repeats == 1 else total * repeats
    return total if small is mask else fit(total, reduced_shape(mask.shape, dims, keepdim))


# From this many bytes on, eight of them are counted at a time, as one int64: summing bool is 100 times slower.
PACKED = 1 << 12
_LOW_BYTES = 0x00FF00FF00FF00FF
_FOUR_ONES = 0x0001000100010001


def _packed_count(small: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    last = small.dim() - 1
    if len(dims) > 1 and len(dims) == small.dim() and small.is_contiguous():
        total = _packed_count(small.view(-1), (0,), False)
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


def _words(small: Tensor) -> Tensor:
    """The bytes as int64 along the last dimension, padded with zeros to a length that divides well."""
    size = small.shape[-1]
    aligned = small.is_contiguous() and small.storage_offset() % 8 == 0 and size % 8 == 0
    if aligned and (size <= 2040 or builtins.any(size % (8 * n) == 0 for n in range(32, 256))):
        return small.view(torch.int64)
    unit = 8 if size <= 2040 else 1024
    padded = small.new_zeros((*small.shape[:-1], size + -size % unit))
    padded.narrow(-1, 0, size).copy_(small)
    return padded.view(torch.int64)


def any(mask: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether any entry along ``dim`` is True.  Empty slices: False."""
    if few(mask):
        return torch.any(mask) if dim is None and not keepdim else torch.any(mask, _dims(dim, mask), keepdim)
    return _extreme(mask, dim, keepdim, False)


def all(mask: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether every entry along ``dim`` is True.  Empty slices: True."""
    if few(mask):
        return torch.all(mask) if dim is None and not keepdim else torch.all(mask, _dims(dim, mask), keepdim)
    return _extreme(mask, dim, keepdim, True)


def few(mask: Tensor) -> bool:
    """Whether ``mask`` is so small that only the number of calls matters; never 0-d, constant or traced."""
    return type(mask) is Tensor and mask.numel() < PACKED and mask.dim() > 0 and 0 not in mask.stride()


def _dims(dim: int | Sequence[int] | None, mask: Tensor) -> tuple[int, ...]:
    return dim if type(dim) is tuple and dim else canonical_dims(dim, mask.dim())


def _extreme(mask: Tensor, dim: int | Sequence[int] | None, keepdim: bool, every: bool) -> Tensor:
    dims = canonical_dims(dim, mask.dim())
    if not dims:
        return mask
    small = compact(mask)
    shape = reduced_shape(mask.shape, dims, keepdim)
    if prod(mask.shape[d] for d in dims) == 0:
        return full(shape, mask.device, every)
    if small.numel() == 0:
        return fit(small.new_empty(reduced_shape(small.shape, dims, keepdim)), shape)
    if prod(small.shape[d] for d in dims) == 1:  # constant along dims: the same memory
        return fit(small if keepdim else small.squeeze(dims), shape)
    # amax and amin over bytes (inductor: over floats) are vectorised; any() and all() over bool are 45 times slower.
    reduce = torch.amin if every else torch.amax
    if type(small) is Tensor:
        return fit(reduce(small.view(torch.uint8), dims, keepdim).view(torch.bool), shape)
    return fit(reduce(small.to(torch.float32), dims, keepdim) != 0, shape)


def constant(mask: Tensor, dim: int | Sequence[int]) -> bool:
    """Whether ``mask`` cannot vary along ``dim`` (each of them), and has an entry: static, from size and stride."""
    if isinstance(dim, int):
        return mask.shape[dim] == 1 or (mask.stride(dim) == 0 and mask.shape[dim] > 0)
    return builtins.all(constant(mask, d) for d in dim)


def first(mask: Tensor, dims: Sequence[int]) -> Tensor:
    """The first slice along each of ``dims``, kept at size 1: all there is to know of a mask constant along them."""
    for d in dims:
        mask = mask.narrow(d, 0, 1)
    return mask


def exactly(device: torch.device) -> AbstractContextManager[Any]:
    """For mask arithmetic: no autocast, or a count of 1001 would be rounded to 1000."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def paired(a: Tensor, b: Tensor) -> Tensor:
    """Where a matrix product of masks ``(..., n, k) @ (..., k, m)`` adds up at least one valid pair."""
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    if a.shape[-1] == 0:
        return full(shape, a.device, False)
    if constant(a, -1):
        return fit(both(a.narrow(-1, 0, 1), any(b, -2, True)), shape)
    if constant(b, -2):
        return fit(both(any(a, -1, True), b.narrow(-2, 0, 1)), shape)
    with exactly(a.device):
        return fit(compact(a).float() @ compact(b).float() > 0, shape)


def lengths_to_mask(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """The mask ``(..., max_length)`` that is True at positions below each length."""
    size = int(lengths.max()) if max_length is None else max_length  # creation may look at values
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)
