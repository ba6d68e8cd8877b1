"""Reductions, moments, norms and scans: plain torch on the valid elements of one slice at a time."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .slices import Dim, located, masked, reduced, scanned


def reduction(plain: Callable[..., Tensor]) -> Callable[..., Masked]:
    def oracle(op: Any, x: Masked, dim: Dim = None, keepdim: bool = False, **keywords: Any) -> Masked:
        return reduced(x, dim, keepdim, lambda v: plain(v, **keywords))

    return oracle


def lse(v: Tensor) -> Tensor:
    return torch.logsumexp(v, 0)


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


def moments(*kinds: str) -> Callable[..., Any]:
    def oracle(
        op: Any, x: Masked, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, **kw: Any
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = kw.get("correction")
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)

        def variance(v: Tensor) -> Tensor:
            if v.numel() <= correction:
                return v.abs().sum()
            return (v - v.mean()).abs().square().sum() / (v.numel() - correction)

        results = {"var": lambda v: variance(v), "std": lambda v: variance(v).sqrt(), "mean": torch.mean}
        out = [reduced(x, dim, keepdim, results[k], 0 if k == "mean" else correction) for k in kinds]
        return out[0] if len(out) == 1 else tuple(out)

    return oracle


def norm(op: Any, x: Masked, p: Any = 2, dim: Dim = None, keepdim: bool = False, **keywords: Any) -> Masked:
    p = keywords.get("ord", p)
    p = 2 if p == "fro" or p is None else p
    return reduced(x, keywords.get("dim", dim), keepdim, lambda v: torch.linalg.vector_norm(v, p))


def dist(op: Any, x: Any, y: Any, p: float = 2) -> Masked:
    x, y = masked(x), masked(y)
    return norm(op, Masked(x.data - y.data, x.mask & y.mask), p)


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
    **{name: reduction(getattr(torch, name)) for name in ("sum", "mean", "prod", "amax", "amin", "nansum", "nanmean")},
    **{name: reduction(getattr(torch, name)) for name in ("any", "all", "count_nonzero")},
    "logsumexp": reduction(lse),
    **{name: position(getattr(torch, name)) for name in ("argmax", "argmin")},
    **{f"{name}.reduction_with_dim": extreme_with_index(getattr(torch, name)) for name in ("max", "min")},
    **{f"{name}.reduction_no_dim": reduction(getattr(torch, name)) for name in ("max", "min")},
    "aminmax": aminmax,
    **{f"{name}{variant}": moments(name) for name in ("var", "std") for variant in ("", ".unbiased")},
    **{f"{name}_mean{variant}": moments(name, "mean") for name in ("var", "std") for variant in ("", ".unbiased")},
    **dict.fromkeys(("norm", "norm.inf", "norm.fro", "linalg.vector_norm"), norm),
    "dist": dist,
    "trace": trace,
    "sum_to_size": sum_to_size,
    **dict.fromkeys(("trapz", "trapezoid"), trapezoid),
    "cumulative_trapezoid": cumulative_trapezoid,
    **{name: scan(getattr(torch, name)) for name in ("cumsum", "cumprod", "logcumsumexp")},
    **{name: extreme_so_far(getattr(torch, name)) for name in ("cummax", "cummin")},
}

EMPTY = "a slice without any valid entry is masked, where the plain op gives its identity or NaN (the exception in L6)"
XFAIL = {
    (name, "identity"): EMPTY
    for name in ("prod", "var.unbiased", "std.unbiased", "var_mean.unbiased", "std_mean.unbiased")
}
