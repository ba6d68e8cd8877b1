"""Extremes and where they are, slice by slice."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .reduction import reduction
from .slices import located, reduced


def position(plain: Callable[..., Tensor]) -> Callable[..., Masked]:
    def oracle(op: Any, x: Masked, dim: int | None = None, keepdim: bool = False) -> Masked:
        return located(x, dim, keepdim, plain)

    return oracle


def extreme_with_index(plain: Any) -> Callable[..., Any]:
    def oracle(op: Any, x: Masked, dim: int, keepdim: bool = False) -> tuple[Masked, Masked]:
        values = reduced(x, dim, keepdim, lambda v: plain(v, 0).values)
        return values, located(x, dim, keepdim, lambda v: plain(v, 0).indices)

    return oracle


def aminmax(op: Any, x: Masked, *, dim: int | None = None, keepdim: bool = False) -> tuple[Masked, Masked]:
    return reduced(x, dim, keepdim, torch.amin), reduced(x, dim, keepdim, torch.amax)


ORACLES = {
    **{name: reduction(getattr(torch, name)) for name in ("amax", "amin")},
    **{name: position(getattr(torch, name)) for name in ("argmax", "argmin")},
    **{f"{name}.reduction_with_dim": extreme_with_index(getattr(torch, name)) for name in ("max", "min")},
    **{f"{name}.reduction_no_dim": reduction(getattr(torch, name)) for name in ("max", "min")},
    "aminmax": aminmax,
}
