"""What each reduction does to slices of stored values: one function of (values, slices) each.

The formulas are those of the strided families, with the valid-but-unspecified zeros counted instead of stored.
"""

import torch
from torch import Tensor

from .. import errors
from ..shared.squares import root, squared
from . import slices
from .slices import Slices, total


def sum(v: Tensor, s: Slices, dtype: torch.dtype | None = None) -> Tensor:
    return total(v if dtype is None else v.to(dtype), s)


prod = slices.product
amax = slices.maximum
amin = slices.minimum


def mean(v: Tensor, s: Slices) -> Tensor:
    check_inexact("mean", v)
    return total(v, s) / (s.valid if isinstance(s.valid, int) else s.count)


def any(v: Tensor, s: Slices) -> Tensor:
    return _logical(slices.stored_maximum(v != 0, s), v)


def all(v: Tensor, s: Slices) -> Tensor:
    some_zero = slices.stored_maximum(v == 0, s)
    return _logical(~(some_zero if s.zeros is None else some_zero | (s.zeros > 0)), v)


def _logical(result: Tensor, v: Tensor) -> Tensor:
    return result.to(torch.uint8) if v.dtype is torch.uint8 else result  # as the plain op


def count_nonzero(v: Tensor, s: Slices) -> Tensor:
    return total(v != 0, s)


def logsumexp(v: Tensor, s: Slices) -> Tensor:
    top = slices.maximum(v.detach().real if v.is_complex() else v.detach(), s)
    top = torch.where(top.abs() == torch.inf, 0, top)
    scale = total((v - s.to_values(top)).exp(), s)
    if s.zeros is not None:
        scale = scale + torch.where(s.zeros > 0, s.zeros * (-top).exp(), 0)
    return scale.log() + top


def var(v: Tensor, s: Slices, correction: float = 1) -> Tensor:
    """Two-pass, less what a rounded mean adds; NaN where at most ``correction`` elements are valid."""
    average = mean(v, s)
    rest = v - s.to_values(average)
    squares, left = total(squared(rest), s), total(rest.detach(), s)
    if s.zeros is not None:
        squares, left = squares + s.zeros * squared(average), left - s.zeros * average.detach()
    squares = (squares - squared(left) / s.count.clamp_min(1)).clamp_min(0)
    degrees = s.count - correction
    return torch.where(degrees > 0, squares / torch.where(degrees > 0, degrees, 1), torch.nan)


def std(v: Tensor, s: Slices, correction: float = 1) -> Tensor:
    return root(var(v, s, correction))


def norm(v: Tensor, s: Slices, ord: float = 2.0) -> Tensor:
    """``sum(abs(x) ** ord) ** (1 / ord)``; ord 0 counts, inf and -inf are the extremes of ``abs(x)``."""
    check_inexact("norm", v)
    if ord == 0:
        return total((v != 0).to(v.abs().dtype), s)
    size = v.abs()
    if ord == float("inf"):
        return slices.maximum(size, s)
    if ord == float("-inf"):
        return slices.minimum(size, s)
    if ord == 1:
        return total(size, s)
    if ord == 2:
        return root(total(squared(v), s))
    power = total(torch.where(size == 0, 0.0 if ord > 0 else torch.inf, torch.where(size == 0, 1, size) ** ord), s)
    if ord < 0 and s.zeros is not None:
        power = torch.where(s.zeros > 0, torch.inf, power)
    return torch.where(power == 0, 0, torch.where(power == 0, 1, power) ** (1 / ord))


def nansum(v: Tensor, s: Slices, dtype: torch.dtype | None = None) -> Tensor:
    if v.is_complex():
        raise RuntimeError(f"nansum(): complex input is not supported, got {v.dtype}")
    return sum(v.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf) if v.is_floating_point() else v, s, dtype)


def nanmean(v: Tensor, s: Slices) -> Tensor:
    return mean(*slices.without_nan(v, s))


def check_inexact(name: str, v: Tensor) -> None:
    if not (v.is_floating_point() or v.is_complex()):
        raise errors.not_inexact(name, v.dtype)
