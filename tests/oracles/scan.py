"""Scans: the plain op on the valid entries of each slice, put back."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .slices import scanned


def scan(plain: Callable[..., Any]) -> Callable[..., Any]:
    def oracle(op: Any, x: Masked, dim: int, **keywords: Any) -> Masked:
        return scanned(x, dim, lambda v: plain(v, 0, **keywords))

    return oracle


def extreme_so_far(plain: Callable[..., Any]) -> Callable[..., Any]:
    def oracle(op: Any, x: Masked, dim: int) -> tuple[Masked, Masked]:
        if x.data.dim() == 0:
            return x, Masked(torch.zeros((), dtype=torch.int64), x.mask)
        numbers = torch.arange(x.data.shape[dim]).view(-1, *[1] * (x.data.dim() - 1 - dim % x.data.dim()))
        joined = Masked(torch.complex(x.data, numbers.expand(x.data.shape).to(x.data)), x.mask)

        def last(v: Tensor) -> Tensor:
            return v.imag[plain(v.real, 0).indices].long()

        return scanned(x, dim, lambda v: plain(v, 0).values), scanned(joined, dim, last)

    return oracle


ORACLES = {
    **{name: scan(getattr(torch, name)) for name in ("cumsum", "cumprod", "logcumsumexp")},
    **{name: extreme_so_far(getattr(torch, name)) for name in ("cummax", "cummin")},
}
