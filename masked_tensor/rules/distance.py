"""Distances between rows: over the coordinates at which both points are valid; no such coordinate: masked."""

import torch
from torch import Tensor

from .. import masks, pair
from ..op import Op
from ..pair import Pair
from ..select import select, zero_masked
from ..shared.product_validity import any_valid_pair

Operand = Pair | Tensor


def cdist(x: Operand, y: Operand, p: float = 2.0, compute_mode: int | None = None) -> Pair:
    """The p-norm of every difference of a row of ``x`` ``(..., P, M)`` and a row of ``y`` ``(..., R, M)``."""
    a, b = pair.as_pair(x), pair.as_pair(y)
    if min(a.data.dim(), b.data.dim()) < 2 or a.data.shape[-1] != b.data.shape[-1]:
        torch.cdist(a.data, b.data, p)  # raises
    if masks.is_constant(a.mask, -1) and masks.is_constant(b.mask, -1):
        # Whole rows are masked: their distances are masked, whatever they hold; zeros keep the gradients exact.
        data = torch.ops.aten.cdist.default(zero_masked(a), zero_masked(b), p, compute_mode)
        return Pair(data, any_valid_pair(a.mask, b.mask.mT))
    both = masks.logical_and(a.mask.unsqueeze(-2), b.mask.unsqueeze(-3))
    difference = select(a.data.unsqueeze(-2) - b.data.unsqueeze(-3), both, 0)
    return Pair(_length(difference, p), masks.reduce_validity(both, -1))


def euclidean(x: Operand, y: Operand) -> Pair:
    """_euclidean_dist: the form that uses a matrix product."""
    return cdist(x, y, 2.0, 1)


def pdist(x: Pair, p: float = 2.0) -> Pair:
    """The distances of all pairs of rows: the upper triangle of ``cdist(x, x)``, row by row."""
    if x.data.dim() != 2:
        torch.pdist(x.data, p)  # raises
    size = x.data.shape[0]
    first, second = torch.triu_indices(size, size, 1, device=x.data.device)
    both = masks.logical_and(x.mask[first], x.mask[second])
    difference = select(zero_masked(x)[first] - zero_masked(x)[second], both, 0)
    return Pair(_length(difference, p), masks.reduce_validity(both, -1))


def _length(difference: Tensor, p: float) -> Tensor:
    """The p-norm over coordinates; of none it is 0, of the largest one, too."""
    size: Tensor = torch.linalg.vector_norm(difference, p if difference.shape[-1] else 1.0, -1)
    return size


OPS = [
    Op("cdist", cdist),
    Op("_cdist_forward", cdist),
    Op("_euclidean_dist", euclidean),
    Op("pdist", pdist),
    Op("_pdist_forward", pdist),
]
