"""Terms of a product: which entries of a row count as present, and which pairs a matrix product needs.

By ``meaning(product=)``: with ``"any"`` an output needs one valid pair, with ``"all"`` every one of its terms.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import masks, settings
from . import pairing


def every() -> bool:
    """Whether a product needs all of its terms."""
    return settings.current().product == "all"


def present(mask: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """Whether what lies along ``dim`` is there: any of it, or all of it; of nothing, nothing is missing."""
    return masks.all(mask, dim, keepdim) if every() else masks.reduced(mask, dim, keepdim)


def paired(a: Tensor, b: Tensor) -> Tensor:
    """Where a matrix product of masks ``(..., n, k) @ (..., k, m)`` has the valid pairs that it needs."""
    if not every() or a.shape[-1] == 0:
        return pairing.paired(a, b)
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    return masks.fit(masks.both(masks.all(a, -1, True), masks.all(b, -2, True)), shape)
