"""Variance and standard deviation over the n valid entries: a result is valid iff ``n > correction``.

A slice without entries has nothing that is masked: it gives NaN, as the plain op does.

The standard deviation has gradient 0 at zero variance, as the plain op has.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .. import kernels, masks, shapes
from ..kernels.precision import wide_dtype
from ..kernels.squares import safe_sqrt
from ..kernels.variance import formula
from ..masks.strides import lay_out_as
from ..op import Op
from ..packing import reduction as packed
from ..pair import Pair
from ..sparse import operators
from ..sparse.rules import sparse_rule
from .reduction import Dim, mean


def var(x: Pair, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False) -> Pair:
    """``sum(abs(x - mean) ** 2) / (n - correction)``; 0 where it is masked."""
    result, valid = _variance(x, dim, correction, keepdim)
    return Pair(result.to(_real(x.data.dtype)), valid)


def std(x: Pair, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False) -> Pair:
    """The square root of the variance, rounded once: a variance that half precision cannot hold has a root it can."""
    result, valid = _variance(x, dim, correction, keepdim)
    return Pair(safe_sqrt(result).to(_real(x.data.dtype)), valid)


def _variance(x: Pair, dim: Dim, correction: float | None, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The variance in the dtype that it is computed in, and where it is valid."""
    data = x.data
    if not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError("std and var only support floating point and complex dtypes")
    dims = shapes.canonical_dims(dim, data.dim())
    if data.numel() == 0:
        nothing = (data.real if data.is_complex() else data).sum(dims, keepdim)  # torch.var warns, and gives NaN
        return nothing + nothing.new_full((), torch.nan), masks.reduce_validity(x.mask, dims, keepdim)
    data = data.to(torch.complex64) if data.dtype is torch.complex32 else data
    x = Pair(data, lay_out_as(x.mask, data), x.payload)
    keep = keepdim or len(dims) < data.dim()  # what is reduced as a whole broadcasts as it is
    dtype = wide_dtype(data)
    number, divisor, valid = _divisors(x.mask, dims, keep, 1 if correction is None else correction, dtype)
    squares = kernels.run("squares", formula, (data, x.mask, number), x.payload, dims, keep, dtype)
    result = squares / divisor
    if keep and not keepdim:
        result, valid = result.squeeze(dims), valid.squeeze(dims)
    return result, valid


def _divisors(
    mask: Tensor, dims: tuple[int, ...], keepdim: bool, correction: float, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """What the mean and the sum of squares are divided by, and where the variance is valid."""
    dtype = _real(dtype)

    def make() -> tuple[Tensor, ...]:
        count = masks.count(mask, dims, keepdim)
        enough = masks.any_along(mask, dims, keepdim, max(correction, 0))
        valid = count > max(correction, 0) if enough is None else enough
        if correction == int(correction):
            divisor = (count - correction).clamp_min(1).to(dtype)
        else:  # an int64 tensor less a Python float is float32
            divisor = torch.where(valid, (count.double() - correction).to(dtype), 1)
        return count.clamp_min(1).to(dtype), divisor, valid

    found: tuple[Tensor, ...] = masks.derive(mask, ("variance", dims, keepdim, correction, dtype), make)
    return found


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else dtype


def with_mean(
    x: Pair, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False, rule: Callable[..., Pair]
) -> tuple[Pair, Pair]:
    """var_mean and std_mean: the mean is valid wherever one entry is."""
    return rule(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


OPS = [
    Op("var.correction", var, sparse=sparse_rule(operators.var), packed=packed.reduce_packed(counted=True)),
    Op("std.correction", std, sparse=sparse_rule(operators.std), packed=packed.reduce_packed(counted=True)),
    Op(
        "var_mean.correction",
        with_mean,
        {"rule": var},
        sparse=sparse_rule(operators.var_mean),
        packed=packed.reduce_packed(counted=True),
    ),
    Op(
        "std_mean.correction",
        with_mean,
        {"rule": std},
        sparse=sparse_rule(operators.std_mean),
        packed=packed.reduce_packed(counted=True),
    ),
]
