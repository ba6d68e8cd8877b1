"""Variances, and the sum of squared distances from the mean of the n valid entries, from which they are computed.

On the CPU squares are added up in float64: those of float32 leave its range.  A mean in the precision of the data is
rounded, so that the distances d do not quite add up to 0: ``sum(d ** 2) - sum(d) ** 2 / n`` makes up for it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import masks, settings
from ..compat import is_tracked
from ..pair import Pair, Payload
from ..select import guard, select, zero_masked, zero_masked_inplace
from . import chunks
from .precision import WIDER, wide_dtype
from .reductions import mean
from .squares import abs_squared, safe_sqrt
from .table import KERNELS, Kernel, run

Dims = tuple[int, ...]


def variance(
    data: Tensor, mask: Tensor, payload: Payload, dims: Dims, keepdim: bool, correction: float, root: bool, both: bool
) -> tuple[Tensor, ...]:
    """``sum(abs(x - mean) ** 2) / (n - correction)``, or its root, rounded once, and where ``n > correction``.

    With ``both`` also the mean, and where ``n > 0``.
    """
    keep = keepdim or len(dims) < data.dim()  # what is reduced as a whole broadcasts as it is
    dtype, real = wide_dtype(data), data.dtype.to_real() if data.is_complex() else data.dtype
    number, divisor, valid = _divisors(mask, dims, keep, correction, dtype)
    result = run("squares", formula, (data, mask, number), payload, dims, keep, dtype) / divisor
    if keep and not keepdim:
        result, valid = result.squeeze(dims), valid.squeeze(dims)
    result = (safe_sqrt(result) if root else result).to(real)
    return (result, valid, *mean(data, mask, payload, dims, keepdim, real)) if both else (result, valid)


def _divisors(mask: Tensor, dims: Dims, keepdim: bool, correction: float, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """What the mean and the sum of squares are divided by, and where the variance is valid."""
    dtype = dtype.to_real() if dtype.is_complex else dtype

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


def formula(
    data: Tensor, mask: Tensor, number: Tensor, payload: Payload, dims: Dims, keep: bool, dtype: torch.dtype
) -> Tensor:
    """The sum of the squared distances of the valid entries from their mean, in ``dtype``; ``number`` is n."""
    x = Pair(data, mask, payload)
    whole = masks.is_constant(x.mask, dims)  # a slice is valid or masked as a whole: nothing mixes
    given = guard(x.data, x.mask) if whole else zero_masked(x)
    data = given.to(dtype)
    exact = given.dtype is not dtype and dtype in WIDER.values()  # float64 means of shorter numbers
    distance = data - data.sum(dims, keep) / number
    distance = select(distance, x.mask, 0) if is_tracked(distance) else zero_masked_inplace(distance, x.mask)
    squares = abs_squared(distance).sum(dims, keep)
    return squares if exact else (squares - abs_squared(distance.detach().sum(dims, keep)) / number).clamp_min(0)


def forward(
    data: Tensor, mask: Tensor, number: Tensor, payload: Payload, dims: Dims, keep: bool, dtype: torch.dtype
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The same in pieces, which stay in the cache; no distances are kept."""
    x, at, n, other = Pair(data, mask, payload), dims, number, chunks.as_it_lies(Pair(data, mask, payload), dims)
    if other is not None:
        x, at, back = other
        n = number.permute(sorted(range(len(back)), key=back.__getitem__)) if number.dim() else number
    result = _squares_in_pieces(x, at, n, dtype)
    if other is not None:
        result = result.permute(back).contiguous()
    return result if keep else result.squeeze(dims), (data, mask, number)


def backward(
    saved: Sequence[Tensor], grad: Tensor, payload: Payload, dims: Dims, keep: bool, dtype: torch.dtype
) -> tuple[Tensor, None, None]:
    """The gradient of the data, in steps that can be recorded."""
    data, mask, number = saved
    dtype = torch.promote_types(data.dtype, torch.float32)
    distance = zero_masked(Pair(data, mask, payload)).to(dtype)
    distance = select(distance - (distance / number.to(dtype)).sum(dims, True), mask, 0)
    distance = distance - (distance / number.to(dtype)).sum(dims, True)  # what a rounded mean left
    root = grad.detach().abs().sqrt()  # a gradient of a deviation may leave the range that its product is in
    root = torch.where(root > 0, root, 1)
    distance = distance * (2 * grad / root).to(dtype) * root.to(dtype)
    return select(distance.to(data.dtype), mask, 0), None, None


def _squares_in_pieces(x: Pair, dims: Dims, number: Tensor, dtype: torch.dtype) -> Tensor:
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


KERNELS["squares", "cpu"] = Kernel(forward, backward, chunks.serves, backward, least="FORMULA")
