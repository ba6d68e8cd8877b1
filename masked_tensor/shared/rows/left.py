"""Windows over rows that are padded on the left: they are counted from the first step of each row.

An op on a batch counts its windows from where the batch begins.  Rows that are known to end where the batch ends
(:mod:`..masks.sides`) are turned to begin there, and what comes out is turned back, to end where the result ends.
A row begins at its first step with a valid entry.  Nothing is read on the host.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ... import masks
from ...masks import sides
from ...pair import Pair
from . import ends

#: How many results a row has by itself, given the dimension (negative) and how many steps it has.
Count = Callable[[int, Tensor], Tensor]


def first_steps(mask: Tensor, dim: int, dims: int) -> Tensor:
    """The first step of each row along ``dim``, kept at size 1 as all others but that of the batch.

    ``mask`` ends in one dimension for channels and ``dims`` others; before them may stand that of the batch.
    """
    small = masks.compact(mask)
    others = [d for d in range(-dims - 1, 0) if d != dim]
    first, _ = ends.first_and_last(masks.any(small, others, keepdim=True), dim)
    return first


def turn(x: Tensor, dim: int, start: Tensor) -> Tensor:
    """``x`` rotated along ``dim``, so that what was at ``start`` comes first."""
    place = ends.reshape_along(torch.arange(x.shape[dim], device=start.device), dim, x.dim())
    return ends.gather_along(x, x.dim() + dim, (place + start) % max(x.shape[dim], 1))


def turn_pair(x: Pair, dim: int, start: Tensor) -> Pair:
    """Data and mask rotated alike."""
    mask = turn(masks.compact(x.mask), dim, start) if x.mask.stride(dim) else x.mask
    data = turn(x.data, dim, start)
    return Pair(data, masks.expand_to(mask, data.shape), x.payload)


def by_rows(x: Pair, dims: int, along: Sequence[int], run: Callable[[Pair], Pair], count: Count) -> Pair:
    """``run`` of rows that are padded on the left ``along`` some of the last ``dims`` dimensions."""
    starts = [first_steps(x.mask, dim, dims) for dim in along]
    own = [count(dim, x.data.shape[dim] - start) for dim, start in zip(along, starts, strict=True)]
    for dim, start in zip(along, starts, strict=True):
        x = turn_pair(x, dim, start)
    return turn_back(run(x), along, own)


def turn_back(y: Pair, along: Sequence[int], own: Sequence[Tensor]) -> Pair:
    """The first ``own`` results of each row moved to the end."""
    for dim, number in zip(along, own, strict=True):
        if y.data.shape[dim]:
            y = turn_pair(y, dim, number.clamp(0, y.data.shape[dim]))
            sides.note_left(y.mask, dim)
    return y
