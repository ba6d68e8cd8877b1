"""Distances between all pairs of rows, pair by pair."""

import itertools
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .matmul import masked


def _cdist(op: Any, a: Any, b: Any, p: float = 2.0, compute_mode: Any = None) -> Masked:
    """The p-norm of the differences at the coordinates where both points are valid."""
    a, b = masked(a), masked(b)
    batch = torch.broadcast_shapes(a.data.shape[:-2], b.data.shape[:-2])
    a, b = (
        Masked(x.data.expand(*batch, *x.data.shape[-2:]), x.mask.expand(*batch, *x.mask.shape[-2:])) for x in (a, b)
    )
    shape = (*batch, a.data.shape[-2], b.data.shape[-2])
    data, valid = torch.zeros(shape, dtype=a.data.dtype), torch.zeros(shape, dtype=torch.bool)
    for place in itertools.product(*(range(size) for size in shape)):
        left, right = (*place[:-2], place[-2]), (*place[:-2], place[-1])
        both = a.mask[left] & b.mask[right]
        difference: Tensor = (a.data[left] - b.data[right])[both]
        valid[place] = both.any()
        if both.any():
            data[place] = torch.linalg.vector_norm(difference, p)
    return Masked(data, valid)


ORACLES = {"cdist": _cdist}
