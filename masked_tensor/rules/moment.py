"""Variance and standard deviation over the n valid entries: a result is valid iff ``n > correction``.

A slice without entries has nothing that is masked: it gives NaN, as the plain op does.

Squares of the distances from the mean are added up, on the CPU in float64: squares of float32 leave its range.  A mean
in the precision of the data is rounded, so that the distances d do not quite add up to 0: ``sum(d ** 2) - sum(d) ** 2 /
n`` makes up for it.  The standard deviation has gradient 0 at zero variance, as the plain op has.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import masks, settings, shapes
from ..compat import is_tracked
from ..fill import can_fill_bits
from ..kernels import chunks
from ..kernels.precision import wide_dtype
from ..masks.strides import lay_out_as
from ..op import Op
from ..packing import reduction as packed
from ..pair import Pair, Payload
from ..select import guard, select, zero_masked, zero_masked_inplace
from ..shared.squares import abs_squared, safe_sqrt
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
    pieces = can_fill_bits(data) and data.numel() >= settings.FORMULA
    other = chunks.as_it_lies(x, dims) if pieces else None
    if other is not None:
        found = (part.permute(other[2]) for part in _variance(other[0], other[1], correction, True))
        result, valid = ((part if keepdim else part.squeeze(dims)).contiguous() for part in found)
        return result, valid
    keep = keepdim or pieces or len(dims) < data.dim()  # what is reduced as a whole broadcasts as it is
    dtype = wide_dtype(data)
    number, divisor, valid = _divisors(x.mask, dims, keep, 1 if correction is None else correction, dtype)
    if not pieces:
        squares = _squares(x, dims, number, keep, dtype)
    elif is_tracked(data):
        squares = _Squares.apply(data, x.mask, x.payload, dims, number, dtype)
    else:
        squares = _squares_in_pieces(x, dims, number, dtype)
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

    return masks.keep(mask, ("variance", dims, keepdim, correction, dtype), make)


def _squares(x: Pair, dims: tuple[int, ...], number: Tensor, keep: bool, dtype: torch.dtype) -> Tensor:
    """The sum of the squared distances of the valid entries from their mean, in ``dtype``."""
    whole = masks.is_constant(x.mask, dims)  # a slice is valid or masked as a whole: nothing mixes
    given = guard(x.data, x.mask) if whole else zero_masked(x)
    data = given.to(dtype)
    exact = given.dtype is not dtype and data.is_cpu  # float64 means of shorter numbers
    distance = data - data.sum(dims, keep) / number
    distance = select(distance, x.mask, 0) if is_tracked(distance) else zero_masked_inplace(distance, x.mask)
    squares = abs_squared(distance).sum(dims, keep)
    return squares if exact else (squares - abs_squared(distance.detach().sum(dims, keep)) / number).clamp_min(0)


class _Squares(torch.autograd.Function):
    """The same in pieces, also where a gradient is wanted; it saves no distances."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, payload: Payload, *rest: Any) -> Tensor:
        ctx.save_for_backward(data, mask)
        ctx.rest = payload, *rest
        return _squares_in_pieces(Pair(data, mask, payload), *rest)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (data, mask), (payload, dims, number, _) = ctx.saved_tensors, ctx.rest
        dtype = torch.promote_types(data.dtype, torch.float32)
        distance = zero_masked(Pair(data, mask, payload)).to(dtype)
        distance = select(distance - (distance / number.to(dtype)).sum(dims, True), mask, 0)
        distance = distance - (distance / number.to(dtype)).sum(dims, True)  # what a rounded mean left
        root = grad.detach().abs().sqrt()  # a gradient of a deviation may leave the range that its product is in
        root = torch.where(root > 0, root, 1)
        distance = distance * (2 * grad / root).to(dtype) * root.to(dtype)
        return select(distance.to(data.dtype), mask, 0), *(None,) * 5


def _squares_in_pieces(x: Pair, dims: tuple[int, ...], number: Tensor, dtype: torch.dtype) -> Tensor:
    """The same with every piece about its own mean; pieces of a slice are put together about a common point.

    With distances d from the piece's mean, which lies a from that point: ``sum(d ** 2) + 2 a sum(d) + n a ** 2``.
    """
    walk = chunks.outermost_dim(x.data)
    exact = x.data.dtype is not dtype
    joins = walk in dims and x.data.numel() > settings.per_step(settings.CHUNK)
    squares, rests, centers, numbers = [], [], [], []
    for part, mask, start in chunks.pieces(x, walk, 0, dtype):
        n = masks.count(mask, dims, True) if joins else number
        n = n if walk in dims else n.narrow(walk, start, part.shape[walk])
        some = n.clamp_min(1) if joins else n
        center = part.sum(dims, True) / some
        there = masks.compact(mask).view(torch.uint8).to(dtype)
        if there.numel() == part.numel():
            part.addcmul_(there, center, value=-1)  # what is masked stays 0
        else:
            part.sub_(center).mul_(there)
        if not exact:
            rests.append(part.sum(dims, True))
        squares.append((abs_squared(part) if part.is_complex() else part.square_()).sum(dims, True))
        centers.append(center)
        numbers.append(n)
    result, rest = torch.cat(squares, walk), torch.zeros((), dtype=dtype) if exact else torch.cat(rests, walk)
    if joins:
        n, center = torch.cat(numbers, walk), torch.cat(centers, walk)
        away = center - (center * (n / number)).sum(walk, True)
        result = (result + (away.conj_physical() * (2 * rest + n * away)).real).sum(walk, True)
        rest = (rest + n * away).sum(walk, True)
    elif exact:
        return result
    return (result - abs_squared(rest) / number).clamp_min(0)


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
