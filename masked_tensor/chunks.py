"""Reductions that fill and reduce a large tensor piece by piece, so that the filled copy never leaves the cache.

A reduction of ``filled(x, identity)`` needs a temporary as large as the data, and fresh memory costs more than the
fill. Here a buffer of a few hundred kilobytes is filled, reduced and used again.  Everything else (small tensors, gradients,
torch.func, compilation, other devices) takes the two plain steps.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from .pair import Pair, Payload
from .select import CHUNK, bitwise, fill_into, filled, tracked, transforming

LARGE = 1 << 19  # elements: below this the filled copy stays in cache by itself

Kernel = Callable[..., Tensor]  #: (data, dims, keepdim)


def rounds(dtype: torch.dtype) -> bool:
    """Whether the result of a reduction in ``dtype`` is rounded noticeably, so that it must not be reduced again."""
    return dtype in (torch.float16, torch.bfloat16)


def reduce(kernel: Kernel, x: Pair, dims: Sequence[int], keepdim: bool, identity: float) -> Tensor:
    """``kernel(filled(x, identity), dims, keepdim)`` for an associative kernel."""
    along = walk_dim(x.data, dims)
    if along is None:
        return kernel(filled(x, identity), dims, keepdim)
    result = torch.cat([kernel(part, dims, True) for part, _, _ in pieces(x, along, identity)], along)
    if along in dims:
        result = kernel(result, [along], True)
    return result if keepdim else result.squeeze(tuple(dims))


def walk_dim(data: Tensor, dims: Sequence[int]) -> int | None:
    """The dimension to walk along: the outermost that is long enough.  None: do not walk."""
    if data.numel() < LARGE or tracked(data) or transforming() or not bitwise(data):
        return None
    outermost_first = sorted(range(data.dim()), key=data.stride, reverse=True)
    enough = [d for d in outermost_first if data.shape[d] * CHUNK >= data.numel()]
    along = enough[0] if enough else max(outermost_first, key=lambda d: data.shape[d])
    return None if along in dims and rounds(data.dtype) else along


def pieces(x: Pair, along: int, fill: float, fresh: bool = False) -> Iterator[tuple[Tensor, Tensor, int]]:
    """``filled(x, fill)`` in pieces along one dimension, with their masks and where they start.

    A piece is valid until the next is asked for; only a ``fresh`` one may be written to.
    """
    size = x.data.shape[along]
    step = max(1, size * CHUNK // x.data.numel())
    as_it_is = fill == 0 and x.payload is Payload.ZERO and not fresh
    buffer: Tensor | None = None
    for start in range(0, size, step):
        length = min(step, size - start)
        data, mask = x.data.narrow(along, start, length), x.mask.narrow(along, start, length)
        if as_it_is:
            yield data, mask, start
            continue
        if buffer is None:
            buffer = torch.empty_like(data)
        out = buffer.narrow(along, 0, length)
        fill_into(out, data, mask, fill)
        yield out, mask, start
