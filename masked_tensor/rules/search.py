"""Searching a sorted sequence: the position of a masked value is masked, and masked entries of the sequence come last.

Positions are counted among the valid entries; a value greater than all of them goes before the masked tail.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..errors import expect_positions, expect_shape
from ..op import Op
from ..pair import Pair
from ..select import select
from .choose import without_masked
from .order import has_integers, integers


def searchsorted(
    sorted_sequence: Pair | Tensor,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Pair | Tensor | None = None,
) -> Pair:
    """``torch.searchsorted``; an entry named by a masked ``sorter`` is unknown, so it is masked."""
    sequence = pair.as_pair(sorted_sequence)
    number = not isinstance(values, Pair | Tensor)
    wanted = pair.plain_pair(sequence.data.new_full((), values)) if number else pair.as_pair(values)
    order: Any = None if sorter is None else without_masked(sorter)
    if order is not None:
        expect_positions("sorter", order)
    options: dict[str, Any] = {"out_int32": out_int32, "right": right, "side": side}
    data = select(wanted.data.detach(), wanted.mask, 0)
    if type(sorted_sequence) is not Pair and type(sorter) is not Pair:
        return Pair(torch.searchsorted(sequence.data, data, sorter=order, **options), wanted.mask)
    if order is not None:
        expect_shape("sorter", order, sequence.data.shape)
        present = sequence.mask.gather(-1, order)
        present = masks.logical_and(present, sorter.mask) if type(sorter) is Pair else present
        sequence = Pair(sequence.data.gather(-1, order), present)
    if data.dtype != sequence.data.dtype:
        torch.searchsorted(sequence.data, data, **options)  # raises where torch takes one dtype only
        common = torch.result_type(sequence.data, data)
        sequence, data = Pair(sequence.data.to(common), sequence.mask), data.to(common)
    if has_integers(data.dtype):
        ladder, data = integers(sequence, True), integers(pair.plain_pair(data), True)
    else:
        ladder = select(sequence.data, sequence.mask, torch.iinfo(data.dtype).max)
    # A masked entry takes the next valid value, so that the sequence stays sorted.
    ladder = ladder.flip(-1).cummin(-1).values.flip(-1) if ladder.numel() else ladder
    return Pair(torch.searchsorted(ladder.contiguous(), data.contiguous(), **options), wanted.mask)


def bucketize(values: Any, boundaries: Pair | Tensor, *, out_int32: bool = False, right: bool = False) -> Pair:
    """``torch.bucketize``."""
    return searchsorted(boundaries, values, out_int32=out_int32, right=right)


OPS = [Op("searchsorted", searchsorted), Op("bucketize", bucketize)]
