"""Variance and standard deviation over the n valid entries: a result is valid iff ``n > correction``.

A slice without entries has nothing that is masked: it gives NaN, as the plain op does.

Two passes: the mean of the valid entries, then the squares of what is left, d.  The mean is rounded, so that float32 d
do not quite add up to 0: ``sum(d ** 2) - sum(d) ** 2 / n`` makes up for it; small tensors are computed in float64, in
fewer calls.  The standard deviation has gradient 0 at zero variance, as the plain op has.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .. import masks, settings, shapes
from ..compat import is_readable_memory, is_tracked
from ..masks.strides import lay_out_as
from ..op import Op
from ..packing import reduction as packed
from ..pair import Pair
from ..select import guard, select, zero_masked, zero_masked_inplace
from ..shared import chunks
from ..shared.squares import abs_squared, safe_sqrt
from ..sparse import operators
from ..sparse.rules import sparse_rule
from .reduction import Dim, mean, total


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
    precise = Pair(_precise(data), lay_out_as(x.mask, data), x.payload)
    walk = chunks.walk_dim(precise.data, dims)
    other = None if walk is None else chunks.as_it_lies(precise, dims)
    if other is not None:
        found = (part.permute(other[2]) for part in _variance(other[0], other[1], correction, True))
        result, valid = ((part if keepdim else part.squeeze(dims)).contiguous() for part in found)
        return result, valid
    keep = keepdim or walk is not None or len(dims) < data.dim()  # what is reduced as a whole broadcasts as it is
    number, divisor, valid = _divisors(x.mask, dims, keep, 1 if correction is None else correction, precise.data.dtype)
    result = _squares(precise, dims, number, walk, keep) / divisor
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

    return masks.keep(mask, ("variance", dims, keepdim, correction, dtype), make)


def _squares(x: Pair, dims: tuple[int, ...], number: Tensor, walk: int | None, keep: bool) -> Tensor:
    """The sum of the squared distances of the valid entries from their mean; with ``walk`` in pieces along it."""
    if walk is None:
        whole = masks.is_constant(x.mask, dims)  # a slice is valid or masked as a whole: nothing mixes
        data = guard(x.data, x.mask) if whole else zero_masked(x)
        distance = data - data.sum(dims, keep) / number
        distance = select(distance, x.mask, 0) if is_tracked(distance) else zero_masked_inplace(distance, x.mask)
        return _about_zero(abs_squared(distance).sum(dims, keep), distance, dims, number)
    average = total(x, dims, True) / number if walk in dims else None
    sums, rests = [], []
    for part, mask, start in chunks.pieces(x, walk, 0):
        own = part.sum(dims, True) / number.narrow(walk, start, part.shape[walk]) if average is None else average
        zero_masked_inplace(part.sub_(own), mask)
        rests.append(part.sum(dims, True))
        sums.append((abs_squared(part) if part.is_complex() else part.square_()).sum(dims, True))
    result, rest = torch.cat(sums, walk), torch.cat(rests, walk)
    if walk in dims:
        result, rest = result.sum(walk, True), rest.sum(walk, True)
    return _about_zero(result, rest, (), number)


def _about_zero(squares: Tensor, distance: Tensor, dims: tuple[int, ...], number: Tensor) -> Tensor:
    """``squares`` less what a rounded mean adds: the sum of the distances, 0 but for that, which has no gradient."""
    if distance.dtype not in chunks.WIDER:
        return squares
    rest = distance.detach()
    return (squares - abs_squared(rest.sum(dims, squares.dim() > 0) if dims else rest) / number).clamp_min(0)


def _precise(data: Tensor) -> Tensor:
    """The data in the dtype to compute in."""
    if chunks.rounds_noticeably(data.dtype):
        return data.float()
    if data.dtype is torch.complex32:
        return data.to(torch.complex64)
    wider = chunks.WIDER.get(data.dtype) if data.numel() < settings.FORMULA and is_readable_memory(data) else None
    return data if wider is None else data.to(wider)


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
