"""What each reduction does to slices of stored values: one function of (values, slices) each.

The formulas are those of the strided families, with the valid-but-unspecified zeros counted instead of stored.
"""

import torch
from torch import Tensor

from .. import errors
from ..kernels.precision import wide_dtype
from ..kernels.squares import abs_squared, safe_sqrt
from . import slices
from .slices import Slices, sum_slices


def sum(v: Tensor, s: Slices, dtype: torch.dtype | None = None) -> Tensor:
    return sum_slices(v if dtype is None else v.to(dtype), s)


prod = slices.prod_slices
amax = slices.max_slices
amin = slices.min_slices


def mean(v: Tensor, s: Slices) -> Tensor:
    check_inexact("mean", v)
    return sum_slices(v, s) / (s.valid if isinstance(s.valid, int) else s.count)


def any(v: Tensor, s: Slices) -> Tensor:
    return _logical(slices.stored_maximum(v != 0, s), v)


def all(v: Tensor, s: Slices) -> Tensor:
    some_zero = slices.stored_maximum(v == 0, s)
    return _logical(~(some_zero if s.zeros is None else some_zero | (s.zeros > 0)), v)


def _logical(result: Tensor, v: Tensor) -> Tensor:
    return result.to(torch.uint8) if v.dtype is torch.uint8 else result  # as the plain op


def count_nonzero(v: Tensor, s: Slices) -> Tensor:
    return sum_slices(v != 0, s)


def logsumexp(v: Tensor, s: Slices) -> Tensor:
    top = slices.max_slices(v.detach().real if v.is_complex() else v.detach(), s)
    top = torch.where(top.abs() == torch.inf, 0, top)
    scale = sum_slices((v - s.to_values(top)).exp(), s)
    if s.zeros is not None:
        scale = scale + torch.where(s.zeros > 0, s.zeros * (-top).exp(), 0)
    return scale.log() + top


def var(v: Tensor, s: Slices, correction: float = 1) -> Tensor:
    """The variance; NaN where at most ``correction`` elements are valid."""
    return _variance(v, s, correction).to(v.dtype.to_real())


def _variance(v: Tensor, s: Slices, correction: float) -> Tensor:
    """Two-pass, less what a rounded mean adds, in the dtype that squares are added up in."""
    v = v.to(wide_dtype(v))
    average = mean(v, s)
    rest = v - s.to_values(average)
    squares, left = sum_slices(abs_squared(rest), s), sum_slices(rest.detach(), s)
    if s.zeros is not None:
        squares, left = squares + s.zeros * abs_squared(average), left - s.zeros * average.detach()
    squares = (squares - abs_squared(left) / s.count.clamp_min(1)).clamp_min(0)
    degrees = s.count - correction
    return torch.where(degrees > 0, squares / torch.where(degrees > 0, degrees, 1), torch.nan)


def std(v: Tensor, s: Slices, correction: float = 1) -> Tensor:
    return safe_sqrt(_variance(v, s, correction)).to(v.dtype.to_real())


def norm(v: Tensor, s: Slices, ord: float = 2.0) -> Tensor:
    """``sum(abs(x) ** ord) ** (1 / ord)``; ord 0 counts, inf and -inf are the extremes of ``abs(x)``."""
    check_inexact("norm", v)
    if ord == 0:
        return sum_slices((v != 0).to(v.abs().dtype), s)
    size = v.abs()
    if ord == float("inf"):
        return slices.max_slices(size, s)
    if ord == float("-inf"):
        return slices.min_slices(size, s)
    if ord == 1:
        return sum_slices(size, s)
    if ord == 2:
        return safe_sqrt(sum_slices(abs_squared(v), s))
    power = sum_slices(torch.where(size == 0, 0.0 if ord > 0 else torch.inf, torch.where(size == 0, 1, size) ** ord), s)
    if ord < 0 and s.zeros is not None:
        power = torch.where(s.zeros > 0, torch.inf, power)
    return torch.where(power == 0, 0, torch.where(power == 0, 1, power) ** (1 / ord))


def nansum(v: Tensor, s: Slices, dtype: torch.dtype | None = None) -> Tensor:
    if v.is_complex():
        raise RuntimeError(f"nansum(): complex input is not supported, got {v.dtype}")
    return sum(torch.where(v.isnan(), 0, v) if v.is_floating_point() else v, s, dtype)


def nanmean(v: Tensor, s: Slices) -> Tensor:
    return mean(*slices.drop_nan(v, s))


def check_inexact(name: str, v: Tensor) -> None:
    if not (v.is_floating_point() or v.is_complex()):
        raise errors.not_inexact(name, v.dtype)
