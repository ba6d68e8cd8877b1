"""Where a product of matrices pairs two valid entries: what is valid in it."""

import torch
from torch import Tensor

from .. import masks


def any_valid_pair(a: Tensor, b: Tensor) -> Tensor:
    """Where a matrix product of masks ``(..., n, k) @ (..., k, m)`` adds up at least one valid pair, or has none."""
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    if a.shape[-1] == 0:
        return masks.full(shape, a.device)
    if masks.is_constant(a, -1):
        return masks.expand_to(masks.logical_and(a.narrow(-1, 0, 1), masks.any(b, -2, True)), shape)
    if masks.is_constant(b, -2):
        return masks.expand_to(masks.logical_and(masks.any(a, -1, True), b.narrow(-2, 0, 1)), shape)
    with masks.no_autocast(a.device):
        return masks.expand_to(masks.compact(a).float() @ masks.compact(b).float() > 0, shape)
