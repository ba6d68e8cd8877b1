"""Distances between rows: over the coordinates at which both points are valid; masked if there are none.

Between many rows, Euclidean distances are computed by matrix products, as in torch's own ``cdist``.  These round, which
loses precision for rows that are far from the origin and close to each other.  ``compute_mode`` chooses.
"""

from math import prod

import torch
from torch import Tensor

from .. import masks, pair, settings
from ..compat import is_readable_memory, is_tracked
from ..kernels.precision import rounds_noticeably
from ..kernels.squares import safe_sqrt
from ..op import Op
from ..pair import Pair
from ..select import select, zero_masked
from ..shared.product_validity import any_valid_pair

Operand = Pair | Tensor
_FEW = 25  #: up to so many rows torch takes differences, unless it is told otherwise
#: What a coordinate counts that is NaN, or whose square is infinite: more than all that are neither, or not NaN.
_NAN, _INFINITE = 2.0**58, 2.0**29


def cdist(x: Operand, y: Operand, p: float = 2.0, compute_mode: int | None = None) -> Pair:
    """The p-norm of every difference between a row of ``x`` ``(..., P, M)`` and a row of ``y`` ``(..., R, M)``."""
    a, b = pair.as_pair(x), pair.as_pair(y)
    if min(a.data.dim(), b.data.dim()) < 2 or a.data.shape[-1] != b.data.shape[-1] or p < 0:
        torch.cdist(a.data, b.data, p)  # raises
    if masks.is_constant(a.mask, -1) and masks.is_constant(b.mask, -1):
        # Whole rows are masked: their distances are masked, whatever they hold; zeros keep the gradients exact.
        data = torch.ops.aten.cdist.default(zero_masked(a), zero_masked(b), p, compute_mode)
        return Pair(data, any_valid_pair(a.mask, b.mask.mT))
    many = max(a.data.shape[-2], b.data.shape[-2]) > _FEW
    if p == 2 and a.data.shape[-1] and (compute_mode == 1 or (compute_mode != 2 and many)):
        return _by_products(a, b)
    step = _rows_of_a_step(a, b, b.data.shape[-2] * b.data.shape[-1])
    found = [
        _by_differences(Pair(*part), b, p) for part in zip(a.data.split(step, -2), a.mask.split(step, -2), strict=True)
    ]
    return _rows_together(found)


def _rows_together(parts: list[Pair]) -> Pair:
    if len(parts) == 1:
        return parts[0]
    return Pair(torch.cat([part.data for part in parts], -2), torch.cat([part.mask for part in parts], -2))


def _by_differences(a: Pair, b: Pair, p: float) -> Pair:
    both = masks.logical_and(a.mask.unsqueeze(-2), b.mask.unsqueeze(-3))
    difference = select(a.data.unsqueeze(-2) - b.data.unsqueeze(-3), both, 0)
    return Pair(_length(difference, p), masks.reduce_validity(both, -1))


def _by_products(a: Pair, b: Pair) -> Pair:
    """``sum(a * a) + sum(b * b) - 2 * sum(a * b)`` over the coordinates that both have, by one matrix product.

    A coordinate that is not finite must not reach the rows that lack it: it is counted by itself, in the product that
    counts the common coordinates.
    """
    dtype = torch.float32 if rounds_noticeably(a.data.dtype) else torch.promote_types(a.data.dtype, b.data.dtype)
    (u, seen_u, count_u), (v, seen_v, count_v) = (_finite(t, dtype) for t in (a, b))
    left, right, count_v = torch.cat([u * u, seen_u, u * -2], -1), torch.cat([seen_v, v * v, v], -1).mT, count_v.mT

    def join(left: Tensor, count: Tensor) -> Pair:
        with masks.no_autocast(left.device):
            squares, number = left @ right, count @ count_v
        data = safe_sqrt(squares.clamp_min(0)).masked_fill(number >= _INFINITE, torch.inf)
        factor = torch.where(number < _NAN, 1.0, torch.nan)  # in the gradient as well
        return Pair((data * factor.to(dtype)).to(a.data.dtype), number > 0)

    step = _rows_of_a_step(a, b, b.data.shape[-2])
    return _rows_together([join(*part) for part in zip(left.split(step, -2), count_u.split(step, -2), strict=True)])


def _finite(x: Pair, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Data with 0 where they or their squares are not finite, validity, and what each coordinate counts."""
    data, seen = zero_masked(x).to(dtype), x.mask.to(dtype)
    squares = data.detach().square()
    finite = squares < torch.inf
    return select(data, finite, 0), seen, torch.where(finite, seen, squares.nan_to_num(_NAN, _INFINITE))


def _rows_of_a_step(a: Pair, b: Pair, each: int) -> int:
    """How many rows of ``a`` are worked on at once, each of which makes so many numbers: all, if that is recorded."""
    rows = a.data.shape[-2]
    if not all(is_readable_memory(t.data) and not is_tracked(t.data) for t in (a, b)):
        return max(1, rows)
    each *= prod(torch.broadcast_shapes(a.data.shape[:-2], b.data.shape[:-2]))
    return max(1, min(rows, settings.per_step(settings.CHUNK) // max(1, each)))


def pdist(x: Pair, p: float = 2.0) -> Pair:
    """The distances of all pairs of rows: the upper triangle of ``cdist(x, x)``, row by row."""
    if x.data.dim() != 2:
        torch.pdist(x.data, p)  # raises
    size = x.data.shape[0]
    first, second = _pairs(size, x.data.device)
    both = masks.logical_and(x.mask[first], x.mask[second])
    difference = select(zero_masked(x)[first] - zero_masked(x)[second], both, 0)
    return Pair(_length(difference, p), masks.reduce_validity(both, -1))


def _pairs(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The rows of each pair, in order.  Of a traced size by a sort, since torch makes triangles of fixed ones."""
    if type(size) is int:
        first, second = torch.triu_indices(size, size, 1, device=device)
        return first, second
    number = torch.arange(size, device=device)
    below = (number[:, None] >= number).flatten()
    place = below.byte().argsort(stable=True)[: size * (size - 1) // 2]
    return place // size, place % size


def _length(difference: Tensor, p: float) -> Tensor:
    """The p-norm over coordinates; 0 if there are none, even for the largest."""
    size: Tensor = torch.linalg.vector_norm(difference, p if difference.shape[-1] else 1.0, -1)
    return size


OPS = [
    Op("cdist", cdist),
    Op("_cdist_forward", cdist),
    Op("_euclidean_dist", cdist, {"compute_mode": 1}),
    Op("pdist", pdist),
    Op("_pdist_forward", pdist),
]
