"""How a kernel walks over its tensors, and how large its blocks are: a table of kept by reduced entries.

Each side has at most two dimensions.
All tensors are expanded to the shape of the data: what is constant along a dimension has stride 0 there, so a padding
mask costs one byte a row, and a result is a tensor that is constant along the reduced dimensions.  Neighbouring
dimensions become one where they lie in memory as one in every tensor.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ... import settings

HALF = (torch.float16, torch.bfloat16)
FLOATS = (*HALF, torch.float32, torch.float64)


class Walk(NamedTuple):
    """The table, and how each tensor lies in it."""

    kept: int  #: entries
    reduced: int
    near: tuple[int, int]  #: of them in the inner dimension
    two: tuple[bool, bool]  #: whether there is an outer dimension
    strides: tuple[tuple[int, int, int, int], ...]  #: of each tensor: kept outer and inner, reduced outer and inner


class Blocks(NamedTuple):
    """What one program takes: so many kept entries, and of reduced entries so many at once, so often."""

    kept: int
    reduced: int
    steps: int
    splits: int  #: so many programs share the reduced entries
    programs: int  #: for the kept entries
    wide: bool  #: whether an index needs 64 bits


@lru_cache(maxsize=1024)
def walk(shape: tuple[int, ...], dims: tuple[int, ...], *strides: tuple[int, ...]) -> Walk | None:
    """The table for tensors of these strides, all expanded to ``shape``; None if a side of it has three dimensions."""
    order = sorted(range(len(shape)), key=lambda d: -max(s[d] for s in strides))  # as they lie in memory
    sides = [_merge([d for d in order if (d in dims) is reduced], shape, strides) for reduced in (False, True)]
    if max(map(len, sides)) > 2:
        return None
    filled = [[(1, (0,) * len(strides))] * (2 - len(side)) + side for side in sides]
    (far, near), (outer, inner) = ([size for size, _ in side] for side in filled)
    (a, b), (c, d) = ([steps for _, steps in side] for side in filled)
    return Walk(far * near, outer * inner, (near, inner), (far > 1, outer > 1), tuple(zip(a, b, c, d, strict=True)))


def _merge(
    dims: list[int], shape: tuple[int, ...], strides: tuple[tuple[int, ...], ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """The dimensions with more than one entry, as few as possible: of each its size and the strides."""
    found: list[tuple[int, tuple[int, ...]]] = []
    for d in dims:
        if shape[d] == 1:
            continue
        size, steps = shape[d], tuple(s[d] for s in strides)
        if found and all(before == step * size for before, step in zip(found[-1][1], steps, strict=True)):
            found[-1] = found[-1][0] * size, steps
        else:
            found.append((size, steps))
    return found


def blocks(table: Walk, whole: bool = False, share: bool = True) -> Blocks:
    """The sizes, by a small table: rows are read along, of columns many at once.

    ``whole``: all reduced entries at once.  ``share``: whether programs may share the reduced entries.
    """
    kept, reduced = power_of_two(table.kept), power_of_two(table.reduced)
    if whole:
        wide, high = reduced, max(1, (settings.GPU_TILE if _in_rows(table) else settings.GPU_WHOLE) // reduced)
    elif _in_rows(table):
        wide = min(reduced, settings.GPU_TILE)
        high = settings.GPU_TILE // wide
    else:
        high = min(kept, settings.GPU_COLUMNS)
        wide = min(reduced, max(1, settings.GPU_TILE // high))
    high = min(kept, high)
    programs, steps, splits = -(-table.kept // high), -(-table.reduced // wide), 1
    if share and programs < settings.GPU_PROGRAMS:
        splits = max(1, min(settings.GPU_PROGRAMS // programs, steps // settings.GPU_STEPS, settings.GPU_SPLITS))
        steps = -(-steps // splits)
        splits = -(-table.reduced // (wide * steps))
    return Blocks(high, wide, steps, splits, programs, max(kept, splits * steps * wide) >= settings.GPU_NARROW)


def _in_rows(table: Walk) -> bool:
    """Whether the reduced entries are those that lie side by side."""
    kept, reduced = (max(s[side] for s in table.strides) for side in (1, 3))
    return table.kept == 1 or reduced <= kept


def fits(table: Walk) -> bool:
    """Whether all reduced entries are taken at once: of columns with some beside them."""
    return table.reduced <= settings.GPU_WHOLE // (1 if _in_rows(table) else settings.GPU_BESIDE)


def power_of_two(number: int) -> int:
    """The least power of two from ``number`` on."""
    return 1 << max(0, number - 1).bit_length()


def warps(tile: int) -> int:
    """How many warps work on so many entries."""
    return 4 if tile <= settings.GPU_TILE else 8


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to add up in."""
    return torch.float64 if dtype is torch.float64 else torch.float32


def as_bytes(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """The mask as bytes, the same memory, in the shape of the data."""
    return mask.expand(shape).view(torch.uint8)


@lru_cache(maxsize=1024)
def result_strides(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """Those of a contiguous result with size 1 along ``dims``, expanded to ``shape``."""
    strides, step = [], 1
    for d in reversed(range(len(shape))):
        strides.append(0 if d in dims else step)
        step *= 1 if d in dims else shape[d]
    return tuple(reversed(strides))


def kept_shape(shape: Sequence[int], dims: tuple[int, ...]) -> list[int]:
    """``shape`` with size 1 along ``dims``."""
    return [1 if d in dims else size for d, size in enumerate(shape)]


def restore(reduced: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """A result, or its gradient, with size 1 in the dimensions that it lost."""
    if not keepdim:
        for d in sorted(dims):
            reduced = reduced.unsqueeze(d)
    return reduced


def refuses(data: Tensor, *others: Tensor | None) -> str | None:
    """Why no kernel takes these tensors: nothing that depends on values."""
    if data.dtype not in FLOATS:
        return f"{str(data.dtype).removeprefix('torch.')} data"
    if data.numel() == 0:
        return "no entries"
    if any(t is not None and (t.is_neg() or t.is_conj()) for t in (data, *others)):
        return "a lazy negation"
    if any(t is not None and t.device != data.device for t in others):
        return "tensors on several devices"
    return None


def join_rows(sizes: Blocks, table: Walk) -> int:
    """How many results one program joins, of ``sizes.splits`` parts each."""
    return min(power_of_two(table.kept), max(1, settings.GPU_TILE // power_of_two(sizes.splits)))
