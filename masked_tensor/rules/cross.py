"""The cross product: a component is valid where the four entries it is computed from are."""

import torch

from .. import pair
from ..op import Op
from ..pair import Pair
from .pointwise import guard_operands, join_operands


def cross(x: Pair | torch.Tensor, other: Pair | torch.Tensor, *, dim: int = -1) -> Pair:
    """``torch.linalg.cross``: ``x[1] * other[2] - x[2] * other[1]`` and so on cyclically."""
    pairs = pair.as_pair(x), pair.as_pair(other)
    if any(p.data.dim() != pairs[0].data.dim() or p.data.shape[dim] != 3 for p in pairs):
        torch.linalg.cross(pairs[0].data, pairs[1].data, dim=dim)  # raises
    factors = [_roll_components(p, by, dim) for by in (-1, -2) for p in pairs]
    data, mask, _ = join_operands(tuple(factors))
    a, b, c, d = guard_operands(data, mask)
    return Pair(a * d - c * b, mask)


def _roll_components(x: Pair, by: int, dim: int) -> Pair:
    """The vectors' components moved on; a mask that is constant along them stays as it is."""
    still = x.mask.stride(dim) == 0
    return Pair(x.data.roll(by, dim), x.mask if still else x.mask.roll(by, dim), x.payload)


OPS = [Op("linalg_cross", cross)]
