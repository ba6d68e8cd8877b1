"""Squares and roots whose gradients are finite."""

import torch
from torch import Tensor

from ..compat import in_transform, is_tracked


def abs_squared(x: Tensor) -> Tensor:
    """``abs(x) ** 2``; ``conj`` would be a view, which the values of a CSR tensor do not have."""
    return (x * x.conj_physical()).real if x.is_complex() else x * x


def zero_rounding(rest: Tensor, squares: Tensor, number: Tensor) -> Tensor:
    """What is left of ``squares``: 0 where it is no more than what adding up a ``number`` of equal squares rounds."""
    return torch.where(rest > squares * (number * torch.finfo(rest.dtype).eps / 2), rest, 0)


def safe_sqrt(x: Tensor) -> Tensor:
    """The square root, with gradient 0 at 0."""
    if not (is_tracked(x) or in_transform()):
        return x.sqrt()
    zero = x == 0
    return torch.where(zero, 0, torch.where(zero, 1, x).sqrt())
