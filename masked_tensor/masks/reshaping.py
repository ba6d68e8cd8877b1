"""A mask of another shape, or the smallest: constant dimensions stay so, in no memory of their own."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from .. import settings, shapes
from ..compat import shares_memory


def compact(mask: Tensor) -> Tensor:
    """``mask`` with every stride-0 dimension narrowed to size 1: the same information, the least memory."""
    strides = mask.stride()
    if 0 not in strides:
        return mask
    for dim, stride in enumerate(strides):
        if stride == 0 and mask.shape[dim] > 1:
            mask = mask.narrow(dim, 0, 1)
    return mask


def compact_others(mask: Tensor, dim: int) -> Tensor:
    """As ``compact``, save along ``dim``, which keeps its size."""
    small, kept = compact(mask), dim % max(mask.dim(), 1)
    return small.expand([mask.shape[d] if d == kept else n for d, n in enumerate(small.shape)])


@lru_cache(maxsize=settings.SHAPES)
def reshaped_strides(old: Sequence[int], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of a reshaped mask, of which only the geometry is asked; None: it has to be copied."""
    mask = torch.empty_strided(old, strides, dtype=torch.bool, device="meta")
    result = reshape_constant(mask, new)
    return result.stride() if shares_memory(mask, result) else None


def reshape_constant(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A mask reshaped without a copy of the dimensions along which it is constant."""
    runs = shapes.matching_runs(mask.shape, shape)
    constants = _constant_dims(mask)
    if any(len({constants[d] for d in old}) > 1 for old, _ in runs):
        # (B, E) to (B * H, E / H): what becomes the last dimension stays constant.
        mask = mask.view(shapes.split_dims(mask.shape, shape))
        runs, constants = shapes.matching_runs(mask.shape, shape), _constant_dims(mask)
    before: list[int] = []
    after: list[int] = []
    for old, new in runs:
        constant = all(constants[d] for d in old)
        before += [1 if constant else mask.shape[d] for d in old]
        after += [1 if constant else shape[d] for d in new]
    for d, size in enumerate(before):
        if size != mask.shape[d]:
            mask = mask.narrow(d, 0, 1)
    return mask.reshape(after).expand(shape)


def _constant_dims(mask: Tensor) -> list[bool]:
    return [bool(stride == 0 or size == 1) for size, stride in zip(mask.shape, mask.stride(), strict=True)]
