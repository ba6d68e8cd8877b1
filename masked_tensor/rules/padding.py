"""Padding: added at each row's own ends, which are its first and last valid entries.

A row of 5 valid entries padded by 2 on each side has 9, whatever the length of the batch; gaps inside the row
stay masked.  Reflected, replicated and circular padding takes its values from the row itself; a row too short for it is
masked there.  Negative padding crops a row at its own ends.  A mask that is constant along the padded dimension stays
so.

With ``meaning(padding="tensor")`` it is added at the tensor's ends instead, and every row keeps its mask.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import masks
from ..compat import OpOverload
from ..layouts import meshes
from ..masks.sides import is_left, note_left
from ..op import Op
from ..pair import Pair, Payload
from ..select import fill_masked
from ..settings import current
from ..shared import windows
from ..shared.memory_format import suggest_format
from ..shared.rows import ends

Sides = list[tuple[int, int, int]]  # (dim, left, right)


def _sides(pad: Sequence[int], ndim: int) -> Sides:
    sides = zip(pad[::2], pad[1::2], strict=True)
    return [(ndim - 1 - i, left, right) for i, (left, right) in enumerate(sides) if left or right]


def constant_pad(op: OpOverload, x: Pair, pad: Sequence[int], value: float = 0) -> Pair:
    """constant_pad_nd: ``value``, valid, at each row's ends."""
    sides = _sides(pad, x.data.dim())
    whole = all(masks.is_constant(x.mask, dim) for dim, _, _ in sides)
    data = op(x.data if whole else fill_masked(x, value), pad, value)
    mask = masks.compact(x.mask)
    for dim, left, right in sides:
        if mask.shape[dim] == 0:  # nothing but padding
            mask = masks.full((*mask.shape[:dim], 1, *mask.shape[dim + 1 :]), mask.device)
        elif not masks.is_constant(x.mask, dim):
            longer = _lengthen(mask, dim, left, right)
            if is_left(mask, dim):
                note_left(longer, dim)
            mask = longer
    return Pair(data, masks.expand_to(mask, data.shape), x.payload if value == 0 and whole else Payload.ANY)


def _ends(mask: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Where each row begins and ends, ``dim`` kept at size 1; a row of which nothing is valid ends before it begins."""
    first, last = ends.first_and_last(mask, dim)
    if current().padding == "row":
        return first, last
    some = first <= last
    return torch.where(some, 0, first), torch.where(some, mask.shape[dim] - 1, last)


def _lengthen(mask: Tensor, dim: int, left: int, right: int) -> Tensor:
    """``left`` valid entries more before the first valid one, ``right`` more after the last (or fewer, if negative)."""
    first, last = _ends(mask, dim)
    place = meshes.replicate_like(torch.arange(-left, mask.shape[dim] + right, device=mask.device), mask)
    moved = mask.index_select(dim, place.clamp(0, mask.shape[dim] - 1))
    place = ends.reshape_along(place, dim, mask.dim())
    belongs = (place >= first - left) & (place <= last + right) & (first <= last)
    return belongs & (moved | (place < first) | (place > last))


def border_pad(op: OpOverload, x: Pair, pad: Sequence[int], *, mode: str) -> Pair:
    """reflection_pad, replication_pad and circular padding."""
    sides = _sides(pad, x.data.dim())
    if all(masks.is_constant(x.mask, dim) for dim, _, _ in sides):
        data = op(x.data, pad)
        small = masks.compact(x.mask)
        return Pair(data, masks.expand_to(small, data.shape), x.payload)
    op(torch.empty_like(x.data[:1], device="meta"), pad)  # torch's own checks and messages
    data, mask = x.data, windows.narrow_leading(x.mask, max(x.data.dim() - dim for dim, _, _ in sides))
    for dim, left, right in sides:
        index, inside = _source_positions(mask, dim, left, right, mode)
        data = ends.gather_along(data, dim, index)
        longer = ends.gather_along(mask, dim, index) & inside
        if is_left(mask, dim):
            note_left(longer, dim)
        mask = longer
    if mode != "circular":  # as torch's kernels
        data = data.contiguous(memory_format=suggest_format(x.data))
    return Pair(data, masks.expand_to(mask, data.shape))


def _source_positions(mask: Tensor, dim: int, left: int, right: int, mode: str) -> tuple[Tensor, Tensor]:
    """For each padded position, where its value lies, and whether it belongs to the row at all."""
    first, last = _ends(mask, dim)
    size = mask.shape[dim]
    place = ends.reshape_along(torch.arange(-left, size + right, device=mask.device), dim, mask.dim())
    belongs = (place >= first - left) & (place <= last + right)
    if mode == "reflect":
        source = torch.where(place < first, 2 * first - place, torch.where(place > last, 2 * last - place, place))
    elif mode == "replicate":
        source = torch.minimum(torch.maximum(place, first), last)
    else:
        start = first + max(-left, 0)  # what is cropped is not in the circle
        source = start + (place - start) % (last - max(-right, 0) - start + 1).clamp(min=1)
    belongs = belongs & (source >= first) & (source <= last)
    return source.clamp(0, size - 1), belongs


OPS = [
    Op("constant_pad_nd", constant_pad, generic=True),
    *(Op(f"reflection_pad{dims}d", border_pad, {"mode": "reflect"}, generic=True) for dims in (1, 2, 3)),
    *(Op(f"replication_pad{dims}d", border_pad, {"mode": "replicate"}, generic=True) for dims in (1, 2, 3)),
    Op("_pad_circular", border_pad, {"mode": "circular"}, generic=True),
]
