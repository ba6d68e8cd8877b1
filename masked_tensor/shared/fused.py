"""Standardizing in closed form, on CPU memory: whole groups at a time, in the cache, every step in a buffer.

For the gradient g of the result, and sums over the n valid entries of a group::

    h = (x - mean) * rstd
    dx = rstd * (g * weight - sum(g * weight) / n - h * sum(g * weight * h) / n)
    dweight = sum(g * h), dbias = sum(g) over what the parameter is shared by

Nothing under the mask takes part: it is cleared bit by bit, because 0 times NaN is NaN.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Result, mean, variance and rstd; ``count`` is n, in the dtype that is computed in."""
    number, result, dtype, parts = count.clamp_min(1), torch.empty_like(data), count.dtype, split(data, dims)
    mean, squares, rstd = torch.zeros_like(count), torch.empty_like(count), torch.empty_like(count)
    least = torch.full((), eps, dtype=dtype)
    tensors = (data, result, number, mean, squares, rstd, weight, bias)
    buffers = (parts.buffers(data, dtype) for _ in range(2))
    for keep, h, square, x, out, n, m, v, r, w, b in zip(
        _keepers(mask, parts, dtype), *buffers, *map(parts, tensors), strict=True
    ):
        if x.dtype is not dtype:
            x = h.copy_(x)
        if payload is not Payload.ZERO:
            x = keep(x, h)
        if centred:
            x = keep(torch.sub(x, torch.div(x.sum(dims, True), n, out=m), out=h), h)
        torch.sum(torch.mul(x, x, out=square), dims, True, out=v)
        torch.rsqrt(torch.addcdiv(least, v, n), out=r)
        torch.mul(x, r if w is None else r * w, out=h)
        keep(h if b is None else h.add_(b), out)
    return result, mean, squares.div_(number), rstd


def backward(
    saved: Sequence[Tensor], grads: Sequence[Tensor], dims: tuple[int, ...], centred: bool
) -> tuple[Tensor | None, ...]:
    """The gradients of data, weight and bias, for those of the results; that of the first is 0 outside the mask."""
    data, weight, bias, mask, count, mean, rstd = saved
    grad, grad_mean, _, grad_rstd = grads
    dtype, back = count.dtype, torch.empty_like(data)
    shape = next((p.shape for p in (weight, bias) if p is not None), count.shape)
    alike = tuple(d for d in dims if shape[d] == 1)  # along these the parameters are constant
    other = tuple(d for d in dims if shape[d] != 1)
    weights, biases = totals = [p if p is None else torch.zeros_like(p, dtype=dtype) for p in (weight, bias)]
    number = count.clamp_min(1)
    share = -rstd / number
    tensors = (data, grad, back, mean, rstd, share, grad_mean / number, grad_rstd * rstd * share)
    parts = split(data, dims)
    buffers = (parts.buffers(data, dtype) for _ in range(2))
    for keep, h, d, x, g, out, m, r, share, from_mean, from_rstd, w, *sums in zip(
        _keepers(mask, parts, dtype), *buffers, *map(parts, (*tensors, weight, biases, weights)), strict=True
    ):
        g = g.to(dtype)
        keep(torch.sub(x, m, out=h).mul_(r), h)
        p, q = _sum(g, alike), _sum(torch.mul(g, h, out=d), alike)
        for total, part in zip(sums, (p, q), strict=True):
            if total is not None:
                total.add_(part.sum_to_size(total.shape))
        factor = r
        if w is not None:
            p, q = p * w, q * w
            g, factor = (g, r * w) if alike else (p, r)
        torch.mul(g, factor, out=d).addcmul_(h, torch.addcmul(from_rstd, _sum(q, other), share))
        keep(d.add_(torch.addcmul(from_mean, _sum(p, other), share)) if centred else d, out)
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
