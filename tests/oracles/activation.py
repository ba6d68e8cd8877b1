"""Activations, entry by entry."""

from typing import Any

import torch

from ..helpers.harness import Masked
from .pointwise import ENTRYWISE, elementwise, family, masked


def glu(op: Any, x: Any, dim: int = -1) -> Any:
    x = masked(x)
    a, b = x.data.tensor_split(2, dim)
    c, d = x.mask.tensor_split(2, dim)
    return elementwise(lambda left, right: left * torch.sigmoid(right), Masked(a, c), Masked(b, d))


def prelu(op: Any, x: Any, weight: Any) -> Any:
    """One weight for all, or one per entry of dim 1."""
    x, weight = masked(x), masked(weight)
    shape = [-1 if d == min(1, x.data.dim() - 1) else 1 for d in range(x.data.dim())] if weight.data.numel() > 1 else []
    spread = Masked(weight.data.reshape(shape), weight.mask.reshape(shape))
    return elementwise(lambda v, w: torch.where(v > 0, v, v * w), x, spread)


ORACLES: dict[str, Any] = {
    **{name: elementwise for name in ENTRYWISE if family(name) == "activation"},
    "nn.functional.glu": glu,
    "nn.functional.prelu": prelu,
}
