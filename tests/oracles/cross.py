"""Cross products, component by component."""

from typing import Any

import torch

from ..helpers.harness import Masked
from .pointwise import elementwise, masked


def cross(op: Any, x: Any, other: Any, dim: int = -1) -> Any:
    """Component by component."""
    shape = torch.broadcast_shapes(masked(x).data.shape, masked(other).data.shape)
    a, b = (
        [Masked(v.data.expand(shape).select(dim, i), v.mask.expand(shape).select(dim, i)) for i in range(3)]
        for v in (masked(x), masked(other))
    )
    parts = [elementwise(lambda p, q, r, s: p * q - r * s, a[i], b[j], a[j], b[i]) for i, j in ((1, 2), (2, 0), (0, 1))]
    return Masked(torch.stack([p.data for p in parts], dim), torch.stack([p.mask for p in parts], dim))


ORACLES = {"cross": cross, "linalg.cross": cross}
