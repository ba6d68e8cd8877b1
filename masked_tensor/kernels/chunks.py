"""Reductions that fill and reduce a large tensor piece by piece, so that the filled copy never leaves the cache.

A reduction of ``filled(x, identity)`` needs a temporary as large as the data, and fresh memory costs more than the
fill.  Here a buffer of a few hundred kilobytes is filled, reduced and used again.  Everything else (small tensors,
gradients, torch.func, compilation, other devices) takes the two plain steps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import settings, shapes
from ..compat import is_tracked
from ..fill import BITS, can_fill_bits, fill_into
from ..masks.strides import lay_out_as
from ..pair import Pair, Payload
from ..select import fill_masked
from .precision import rounds_noticeably

Kernel = Callable[..., Tensor]  #: (data, dims, keepdim)
InPlace = Callable[[Tensor, Tensor, tuple[int, ...]], Tensor]  #: (filled piece to write on, mask, dims), keeping dims


def serves(data: Tensor, *_: Any) -> str | None:
    """Why a kernel that works in chunks does not serve; None: it does."""
    return None if can_fill_bits(data) else "it fills the bits of memory, which hold other values here"


def reduce(
    kernel: Kernel,
    x: Pair,
    dims: tuple[int, ...],
    keepdim: bool,
    identity: float,
    inplace: InPlace | None = None,
    associative: bool = True,
    join: Kernel | None = None,
) -> Tensor:
    """``kernel(filled(x, identity), dims, keepdim)``; ``inplace`` is the same on a piece that may be overwritten.

    A kernel that is not ``associative`` is never given a part of a slice.  ``join`` reduces what it gave of parts, if
    another than itself does.
    """
    size = x.data.numel()
    one_step = type(size) is not int or size < settings.LARGE or (inplace is None and size <= settings.per_step(0))
    if one_step or (identity == 0 and x.payload is Payload.ZERO):
        return kernel(fill_masked(x, identity), dims, keepdim)
    walk = walk_dim(x.data, dims)
    if walk is None or (walk in dims and not associative):
        return kernel(fill_masked(x, identity), dims, keepdim)
    x = Pair(x.data, lay_out_as(x.mask, x.data), x.payload)
    other = as_it_lies(x, dims)
    if other is not None:
        result = reduce(kernel, other[0], other[1], True, identity, inplace, associative, join).permute(other[2])
        return (result if keepdim else result.squeeze(dims)).contiguous()
    parts = pieces(x, walk, identity)
    if inplace is None:
        result = torch.cat([kernel(part, dims, True) for part, _, _ in parts], walk)
    else:
        result = torch.cat([inplace(part, mask, dims) for part, mask, _ in parts], walk)
    if walk in dims:
        result = (join or kernel)(result, [walk], True)
    return result if keepdim else result.squeeze(dims)


def as_it_lies(x: Pair, dims: tuple[int, ...]) -> tuple[Pair, tuple[int, ...], list[int]] | None:
    """The pair with its dimensions in the order of memory, ``dims`` there, and the order back; None: it has it.

    A table may lie column by column: results are then joined in that order as well.
    """
    order = shapes.memory_order(x.data.stride())
    if order == tuple(range(len(order))):
        return None
    moved = Pair(x.data.permute(order), x.mask.permute(order), x.payload)
    return moved, tuple(sorted(order.index(d) for d in dims)), [order.index(d) for d in range(len(order))]


def walk_dim(data: Tensor, dims: tuple[int, ...]) -> int | None:
    """The dimension to walk along.  None: do not walk."""
    if data.numel() < settings.LARGE or is_tracked(data) or not can_fill_bits(data):
        return None
    walk = outermost_dim(data)
    return None if walk in dims and rounds_noticeably(data.dtype) else walk


def outermost_dim(data: Tensor) -> int:
    """The outermost dimension in memory that is long enough to cut pieces from."""
    outermost_first = sorted(range(data.dim()), key=data.stride, reverse=True)
    fit = settings.per_step(settings.CHUNK)
    enough = [d for d in outermost_first if data.shape[d] * fit >= data.numel()]
    return enough[0] if enough else max(outermost_first, key=lambda d: data.shape[d])


def pieces(x: Pair, walk: int, fill: float, dtype: torch.dtype | None = None) -> Iterator[tuple[Tensor, Tensor, int]]:
    """``filled(x, fill)`` in pieces along one dimension, in ``dtype``, with their masks and where they start.

    All pieces share one buffer: a piece is valid, and may be written to, until the next is asked for.
    """
    size = x.data.shape[walk]
    step = max(1, size * settings.per_step(settings.CHUNK) // x.data.numel())
    first = x.data.narrow(walk, 0, min(step, size))
    clean = fill == 0 and x.payload is Payload.ZERO
    buffer = None if clean else torch.empty_like(first)
    spare = torch.empty(first.numel(), dtype=BITS[first.dtype.itemsize]) if fill else None
    wide = torch.empty_like(first, dtype=dtype) if clean or dtype not in (None, first.dtype) else None
    for start in range(0, size, step):
        length = min(step, size - start)
        data, mask = x.data.narrow(walk, start, length), x.mask.narrow(walk, start, length)
        if buffer is not None:
            out = buffer.narrow(walk, 0, length)
            fill_into(out, data, mask, fill, spare)
            data = out
        yield (data if wide is None else wide.narrow(walk, 0, length).copy_(data)), mask, start


@dataclass(frozen=True, slots=True)
class Split:
    """How a tensor is cut along one dimension, into pieces that fit the cache with a few buffers like them."""

    dim: int
    lengths: list[int]  #: of the pieces; only the last may be shorter

    def __call__(self, t: Tensor | None) -> Any:
        """The pieces of a tensor that broadcasts to the one that is cut, and has as many dimensions."""
        if t is None or len(self.lengths) == 1 or t.shape[self.dim] == 1:
            return [t] * len(self.lengths)
        return t.split(self.lengths, self.dim)

    def buffers(self, t: Tensor, dtype: torch.dtype) -> list[Tensor]:
        """For each piece of ``t`` the same memory, in its shape and layout."""
        memory = torch.empty_like(self(t)[0], dtype=dtype)
        whole = len(self.lengths) == 1 or t.shape[self.dim] == 1
        last = memory if whole else memory.narrow(self.dim, 0, self.lengths[-1])
        return [memory] * (len(self.lengths) - 1) + [last]


def split(data: Tensor, dims: tuple[int, ...]) -> Split:
    """Cuts ``data`` outside ``dims``; it stays whole where the pieces would be made of short stretches of memory."""
    size, fit = max(1, data.numel()), settings.per_step(settings.PIECE)
    steps = {d: min(n, max(1, n * fit // size)) for d, n in enumerate(data.shape) if d not in dims}
    good = [d for d, n in steps.items() if n * data.stride(d) >= settings.STRETCH]
    good.sort(key=data.stride, reverse=True)
    if size <= fit or not good:
        return Split(0, [data.shape[0]])
    long = [d for d in good if data.shape[d] * fit >= size]
    dim = long[0] if long else max(good, key=lambda d: data.shape[d])
    whole, rest = divmod(data.shape[dim], steps[dim])
    return Split(dim, [steps[dim]] * whole + [rest] * (rest > 0))
