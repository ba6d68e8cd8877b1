"""Reductions, moments, norms and scans: plain torch on the valid elements of one slice at a time."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .slices import Dim, masked, reduced, scanned


def reduction(plain: Callable[..., Tensor]) -> Callable[..., Masked]:
    def oracle(op: Any, x: Masked, dim: Dim = None, keepdim: bool = False, **keywords: Any) -> Masked:
        return reduced(x, dim, keepdim, lambda v: plain(v, **keywords))

    return oracle


def count_nonzero(op: Any, x: Masked, dim: Dim = None) -> Masked:
    """Of nothing valid it is 0, which is valid as every number of entries is."""
    result = reduced(x, dim, False, torch.count_nonzero)
    return Masked(result.data, torch.ones_like(result.mask))


def lse(v: Tensor) -> Tensor:
    return torch.logsumexp(v, 0)


def trace(op: Any, x: Masked) -> Masked:
    return reduced(Masked(x.data.diagonal(), x.mask.diagonal()), None, False, torch.sum)


def sum_to_size(op: Any, x: Masked, *size: Any) -> Masked:
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    missing = x.data.dim() - len(shape)
    small = [d + missing for d, n in enumerate(shape) if n != x.data.shape[d + missing]]
    dims = [*range(missing), *small]
    result = reduced(x, dims, False, torch.sum) if dims else x
    return Masked(result.data.reshape(shape), result.mask.reshape(shape))


def panels(y: Masked, x: Any, dx: float, dim: int) -> Masked:
    """The trapezoids between neighbours: valid where both ends are."""
    y = Masked(y.data.movedim(dim, -1), y.mask.movedim(dim, -1))
    data, valid = (y.data[..., 1:] + y.data[..., :-1]) / 2, y.mask[..., 1:] & y.mask[..., :-1]
    if x is None:
        return Masked(data * dx, valid)
    x = masked(x)
    if x.data.dim() > 1:
        x = Masked(x.data.movedim(dim, -1), x.mask.movedim(dim, -1))
    step, both = x.data[..., 1:] - x.data[..., :-1], x.mask[..., 1:] & x.mask[..., :-1]
    return Masked(data * step, valid & both)


def trapezoid(op: Any, y: Masked, x: Any = None, *, dx: float = 1, dim: int = -1) -> Masked:
    return reduced(panels(masked(y), x, dx, dim), -1, False, torch.sum)


def cumulative_trapezoid(op: Any, y: Masked, x: Any = None, *, dx: float = 1, dim: int = -1) -> Masked:
    result = scanned(panels(masked(y), x, dx, dim), -1, lambda v: v.cumsum(0))
    return Masked(result.data.movedim(-1, dim), result.mask.movedim(-1, dim))


ORACLES = {
    **{name: reduction(getattr(torch, name)) for name in ("sum", "mean", "prod", "nansum", "nanmean")},
    **{name: reduction(getattr(torch, name)) for name in ("any", "all")},
    "count_nonzero": count_nonzero,
    "logsumexp": reduction(lse),
    "trace": trace,
    "sum_to_size": sum_to_size,
    **dict.fromkeys(("trapz", "trapezoid"), trapezoid),
    "cumulative_trapezoid": cumulative_trapezoid,
}
