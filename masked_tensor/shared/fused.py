"""Standardizing in closed form, on CPU memory: whole groups at a time, in the cache, every step in a buffer.

For the gradient g of the result, and sums over the n valid entries of a group::

    h = (x - mean) * rstd
    dx = rstd * (g * weight - sum(g * weight) / n - h * sum(g * weight * h) / n)
    dweight = sum(g * h), dbias = sum(g) over what the parameter is shared by

The mean is rounded: ``x - mean`` of float32 is centred once more, by its own mean, the ``rest``.

Nothing under the mask takes part: it is cleared bit by bit, because 0 times NaN is NaN.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..fill import BITS
from ..pair import Payload
from .chunks import Split, split


def forward(
    data: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mask: Tensor,
    count: Tensor,
    payload: Payload,
    dims: tuple[int, ...],
    eps: float,
    centred: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Result, mean, variance, rstd and rest; ``count`` is n, in the dtype that is computed in."""
    number, result, dtype, parts = count.clamp_min(1), torch.empty_like(data), count.dtype, split(data, dims)
    mean, squares, rstd = torch.zeros_like(count), torch.empty_like(count), torch.empty_like(count)
    rest = torch.empty_like(count) if centred and data.dtype is torch.float32 else None
    least = torch.full((), eps, dtype=dtype)
    tensors = (data, result, number, mean, squares, rstd, rest, weight, bias)
    buffers = (parts.buffers(data, dtype) for _ in range(2))
    for keep, h, square, x, out, n, m, v, r, c, w, b in zip(
        _keepers(mask, parts, dtype), *buffers, *map(parts, tensors), strict=True
    ):
        if x.dtype is not dtype:
            x = h.copy_(x)
        if payload is not Payload.ZERO:
            x = keep(x, h)
        if centred:
            x = keep(torch.sub(x, torch.div(x.sum(dims, True), n, out=m), out=h), h)
        torch.sum(torch.mul(x, x, out=square), dims, True, out=v)
        if c is not None:  # sum((x - c) ** 2) = sum(x ** 2) - n * c ** 2
            torch.div(x.sum(dims, True), n, out=c)
            v.addcmul_(c * c, n, value=-1).clamp_min_(0)
        torch.rsqrt(torch.addcdiv(least, v, n), out=r)
        keep(_scaled(x, c, r, w, b, h), out)
    return result, mean, squares.div_(number), rstd, rest


def _scaled(x: Tensor, c: Any, r: Tensor, w: Any, b: Any, out: Tensor) -> Tensor:
    """``(x - c) * r * w + b``; what is as small as ``r`` is combined first."""
    small = w is not None and w.shape == r.shape
    if small:
        r = r * w
    if c is None or (small and b is not None):
        torch.mul(x, r, out=out)
        b = b if c is None else b - c * r
    else:
        torch.sub(x, c, out=out).mul_(r)
    if w is not None and not small:
        return out.mul_(w) if b is None else torch.addcmul(b, out, w, out=out)
    return out if b is None else out.add_(b)


def backward(
    saved: Sequence[Any], grads: Sequence[Tensor], dims: tuple[int, ...], centred: bool
) -> tuple[Tensor | None, ...]:
    """The gradients of data, weight and bias, for those of the results; that of the first is 0 outside the mask."""
    data, weight, bias, mask, count, mean, rstd, rest = saved
    grad, grad_mean, _, grad_rstd = grads
    dtype, back = count.dtype, torch.empty_like(data)
    shape = next((p.shape for p in (weight, bias) if p is not None), count.shape)
    alike = tuple(d for d in dims if shape[d] == 1)  # along these the parameters are constant
    other = tuple(d for d in dims if shape[d] != 1)
    weights, biases = totals = [p if p is None else torch.zeros_like(p, dtype=dtype) for p in (weight, bias)]
    number = count.clamp_min(1)
    share = -rstd / number
    tensors = (data, grad, back, mean, rstd, rest, share, grad_mean / number, grad_rstd * rstd * share)
    parts = split(data, dims)
    buffers = (parts.buffers(data, dtype) for _ in range(2))
    for keep, h, d, x, g, out, m, r, c, share, from_mean, from_rstd, w, *sums in zip(
        _keepers(mask, parts, dtype), *buffers, *map(parts, (*tensors, weight, biases, weights)), strict=True
    ):
        g = g.to(dtype)
        torch.sub(x, m, out=h)
        keep((h if c is None else h.sub_(c)).mul_(r), h)
        p, q = _sum(g, alike), _sum(torch.mul(g, h, out=d), alike)
        for total, part in zip(sums, (p, q), strict=True):
            if total is not None:
                total.add_(part.sum_to_size(total.shape))
        factor = r
        if w is not None:
            p, q = p * w, q * w
            g, factor = (g, r * w) if alike else (p, r)
        p, q = _sum(p, other), _sum(q, other)  # before d, which q may lie in, is written
        torch.mul(g, factor, out=d).addcmul_(h, torch.addcmul(from_rstd, q, share))
        keep(d.add_(torch.addcmul(from_mean, p, share)) if centred else d, out)
    return back, *(t if t is None else t.to(p.dtype) for t, p in zip(totals, (weight, bias), strict=True))


def _keepers(mask: Tensor, parts: Split, dtype: torch.dtype) -> Iterator[Callable[[Tensor, Tensor], Tensor]]:
    """For each piece, what writes data of ``dtype`` into another tensor and 0 outside the mask: by ``bits & flags``."""
    small = masks.compact(mask).view(torch.int8)
    for valid, flags in zip(parts(small), parts.buffers(small, BITS[dtype.itemsize]), strict=True):
        yield partial(_keep, flags.copy_(valid.neg()))


def _keep(flags: Tensor, data: Tensor, out: Tensor) -> Tensor:
    if data.dtype is not out.dtype:  # half precision; the data is a buffer of our own
        return out.copy_(_keep(flags, data, data))
    torch.bitwise_and(data.view(flags.dtype), flags, out=out.view(flags.dtype))
    return out


def _sum(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return x.sum(dims, True) if dims else x
