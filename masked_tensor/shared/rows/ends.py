"""Where the rows of a padded batch begin and end: at their first and last valid entry."""

import torch
from torch import Tensor


def fill_gaps(mask: Tensor, dim: int) -> Tensor:
    """``mask`` with its inner gaps made valid: what lies between the first and the last valid entry along ``dim``."""
    return (mask.cumsum(dim) > 0) & (mask.flip(dim).cumsum(dim).flip(dim) > 0)


def first_and_last(mask: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The positions of the first and last valid entry along ``dim`` (kept, size 1); without any: the size and -1."""
    first = (mask.cumsum(dim) == 0).sum(dim, keepdim=True)
    last = mask.shape[dim] - 1 - (mask.flip(dim).cumsum(dim) == 0).sum(dim, keepdim=True)
    return first, last


def reshape_along(values: Tensor, dim: int, ndim: int) -> Tensor:
    """A vector shaped to broadcast along ``dim`` of ``ndim`` dims."""
    shape = [1] * ndim
    shape[dim] = -1
    return values.view(shape)


def gather_along(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """``gather`` along ``dim``; the other dims broadcast."""
    shape = list(
        torch.broadcast_shapes((*x.shape[:dim], 1, *x.shape[dim + 1 :]), index.select(dim, 0).unsqueeze(dim).shape)
    )
    return x.expand(*shape[:dim], x.shape[dim], *shape[dim + 1 :]).gather(
        dim, index.expand(*shape[:dim], index.shape[dim], *shape[dim + 1 :])
    )
