"""Reductions over the valid entries: a result is valid iff at least one entry of its slice is.

What is masked out is replaced by the reduction's identity, so that it takes no part, forward and backward.
"""

from collections.abc import Sequence

import torch

from .. import masks
from ..op import Op
from ..pair import Pair, Payload
from ..select import zeroed

Dim = int | Sequence[int] | None


def sum(x: Pair, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
    """Sum of the valid entries; 0 where nothing is valid."""
    dims = masks.canonical_dims(dim, x.data.dim())
    return Pair(torch.sum(zeroed(x), dims, keepdim, dtype=dtype), masks.any(x.mask, dims, keepdim), Payload.ZERO)


ROWS = [Op("sum", sum)]
