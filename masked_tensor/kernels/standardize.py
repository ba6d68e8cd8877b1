"""Standardizing in closed form, on CPU memory: whole groups at a time, in the cache, every step in a buffer.

For the gradient g of the result, and sums over the n valid entries of a group::

    h = (x - mean) * rstd
    dx = rstd * (g * weight - sum(g * weight) / n - h * sum(g * weight * h) / n)
    dweight = sum(g * h), dbias = sum(g) over what the parameter is shared by

The mean is rounded: ``x - mean`` of float32 is centred once more, by its own mean, the ``rest``.

What is as small as the groups is combined first, so that each pass over the data does as much as it can: where a weight
is constant over stretches of a group, ``(x - mean - rest) * rstd * weight + bias`` is one product and one sum.

Nothing under the mask takes part: it is cleared by a choice, because 0 times NaN is NaN.  The formula, in
standardize_formula.py, also serves small tensors.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from .. import masks, settings, shapes
from ..fill import can_fill_bits
from ..pair import Payload
from .chunks import Split, split
from .table import KERNELS, Kernel


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
) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], tuple[Tensor | None, ...]]:
    """Result, mean, variance, rstd; ``count`` is n, in the dtype that is computed in."""
    number, result, dtype, parts = count.clamp_min(1), torch.empty_like(data), count.dtype, split(data, dims)
    mean, squares, rstd = torch.zeros_like(count), torch.empty_like(count), torch.empty_like(count)
    rest = torch.empty_like(count) if centred and data.dtype is torch.float32 else None
    tensors = map(parts, (data, number, mean, squares, rstd, rest, weight, bias))
    for flags, h, wide, out, x, n, m, v, r, c, w, b in zip(
        _flags(mask, parts, dtype), *_buffers(parts, data, result, dtype), *tensors, strict=True
    ):
        if x.dtype is not dtype:
            x = h.copy_(x)
        if payload is not Payload.ZERO:
            x = _zero(x, flags, h)
        if centred:
            x = _zero(torch.sub(x, torch.sum(x, dims, True, out=m).div_(n), out=h), flags, h)
        _sum_of_squares(x, dims, wide, v).div_(n)
        if c is not None:  # sum((x - c) ** 2) = sum(x ** 2) - n * c ** 2
            torch.sum(x, dims, True, out=c).div_(n)
            v.addcmul_(c, c, value=-1).clamp_min_(0)
        torch.add(v, eps, out=r).rsqrt_()
        _zero(_scale_and_shift(x, c, r, w, b, dims, wide), flags, out)
    return (result, mean, squares, rstd), (data, weight, bias, mask, count, mean, rstd, rest)


def _sum_of_squares(x: Tensor, dims: tuple[int, ...], wide: Tensor, out: Tensor) -> Tensor:
    """Few adjacent numbers take one pass: torch adds up a norm one by one, and rounds each time."""
    few = dims[0] == x.dim() - len(dims) and prod([x.shape[d] for d in dims]) <= settings.ONE_BY_ONE
    found: Any = torch.linalg.vector_norm(x, 2, dims, True, out=out).square_() if few else None
    result: Tensor = torch.sum(torch.mul(x, x, out=wide), dims, True, out=out) if found is None else found
    return result


def _scale_and_shift(x: Tensor, c: Any, r: Tensor, w: Any, b: Any, dims: tuple[int, ...], out: Tensor) -> Tensor:
    """``(x - c) * r * w + b``; what is as small as the groups is combined first."""
    if w is not None and not _varies_in_group(w, x, dims):
        r, w = r * w, None
    if b is not None and w is None and not _varies_in_group(b, x, dims):
        return torch.mul(x, r, out=out).add_(b if c is None else torch.addcmul(b, c, r, value=-1))
    if c is None:
        torch.mul(x, r, out=out)
    else:
        torch.sub(x, c, out=out).mul_(r)
    if w is not None:
        return out.mul_(w) if b is None else torch.addcmul(b, out, w, out=out)
    return out if b is None else out.add_(b)


def _varies_in_group(parameter: Tensor, data: Tensor, dims: tuple[int, ...]) -> bool:
    """Whether it changes from one element of a group to the next: combined with the groups it is no small tensor."""
    last = max((d for d in dims if data.shape[d] > 1), default=0)
    return parameter.shape[last] != 1


def backward(
    saved: Sequence[Any], grads: Sequence[Any], payload: Payload, dims: tuple[int, ...], eps: float, centred: bool
) -> tuple[Tensor | None, ...]:
    """The gradients of data, weight and bias, for those of the results; that of the first is 0 outside the mask."""
    data, weight, bias = saved[:3]
    grads = grads if grads[0] is not None else (torch.zeros_like(data), *grads[1:])
    inside = any(p is not None and _varies_in_group(p, saved[0], dims) for p in (weight, bias))
    back, *totals = (_by_element if inside else _by_group)(saved, grads, payload, dims, centred)
    return back, *(t if t is None else t.to(p.dtype) for t, p in zip(totals, (weight, bias), strict=True)), None, None


def _by_group(
    saved: Sequence[Any], grads: Sequence[Any], payload: Payload, dims: tuple[int, ...], centred: bool
) -> tuple[Tensor | None, ...]:
    """For parameters that are constant over stretches of a group: ``d = x - mean`` takes part as it is.

    The gradient of the data is ``a * g + b * d + e`` with a, b and e as small as the sums of ``g`` and ``g * d``.
    """
    data, weight, bias, mask, count, mean, rstd, rest = saved
    grad, grad_mean, _, grad_rstd = grads
    dtype, back, parts = count.dtype, torch.empty_like(data), split(data, dims)
    shape: Sequence[int] = count.shape
    for p in (weight, bias):
        shape = shape if p is None else shapes.broadcast_two(shape, p.shape)
    alike, other = (tuple(d for d in dims if (shape[d] == 1) is one) for one in (True, False))
    sums, products = count.new_empty(shape), count.new_empty(shape)
    share, scale = -rstd / count.clamp_min(1), rstd if weight is None else rstd * weight
    slope = share * rstd * rstd
    from_mean = _divide_by_count(grad_mean, count, centred)
    if other:  # a NaN of a group, which ``rstd`` knows, must not reach the weights of its masked entries
        mean, rest = (t if t is None else t.nan_to_num(0, 0, 0) for t in (mean, rest))
    tensors = (data, grad, sums, products, mean, rest, share, scale, slope, from_mean, grad_rstd, weight)
    for flags, h, wide, out, x, g, p, q, m, c, share_, a, b, e, f, w in zip(
        _flags(mask, parts, dtype), *_buffers(parts, data, back, dtype), *map(parts, tensors), strict=True
    ):
        x, g = h.copy_(x) if x.dtype is not dtype else x, g.to(dtype)
        x = torch.sub(x, m, out=h) if centred else x
        x = x if payload is Payload.ZERO else _zero(x, flags, h)
        torch.sum(g, alike, True, out=p)
        torch.sum(torch.mul(g, x, out=wide), alike, True, out=q)
        p, q = _group_sums(p, q if c is None else q.addcmul_(p, c, value=-1), w, other)
        b = (q if f is None else q + f) * b
        torch.mul(g, a, out=wide).addcmul_(x, b)
        if centred:
            e = p * share_ if e is None else torch.addcmul(e, p, share_)
            wide.add_(e if c is None else e.addcmul_(b, c, value=-1))
        _zero(wide, flags, out)
    if weight is not None:
        found = products * rstd
        weight = (found.masked_fill_(products == 0, 0) if other else found).sum_to_size(weight.shape)
    return back, weight, None if bias is None else sums.sum_to_size(bias.shape)


def _group_sums(p: Tensor, q: Tensor, w: Tensor | None, other: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """What the stretches of a group come to, each with its weight."""
    p, q = (p, q) if w is None else (p * w, q * w)
    return (p.sum(other, True), q.sum(other, True)) if other else (p, q)


def _by_element(
    saved: Sequence[Any], grads: Sequence[Any], payload: Payload, dims: tuple[int, ...], centred: bool
) -> tuple[Tensor | None, ...]:
    """For parameters that change from one element of a group to the next."""
    data, weight, bias, mask, count, mean, rstd, rest = saved
    grad, grad_mean, _, grad_rstd = grads
    dtype, back, parts = count.dtype, torch.empty_like(data), split(data, dims)
    totals = [p if p is None else torch.zeros_like(p, dtype=dtype) for p in (weight, bias)]
    share = -rstd / count.clamp_min(1)
    from_mean = _divide_by_count(grad_mean, count, centred)
    from_rstd = grad_rstd * rstd if grad_rstd is not None else None
    tensors = (data, grad, mean, rstd, rest, share, from_mean, from_rstd, weight, *totals)
    for flags, h, wide, out, x, g, m, r, c, share, e, f, w, weights, biases in zip(
        _flags(mask, parts, dtype), *_buffers(parts, data, back, dtype), *map(parts, tensors), strict=True
    ):
        x, g = h.copy_(x) if x.dtype is not dtype else x, g.to(dtype)
        x = torch.sub(x, m, out=h) if centred else x
        x = x if c is None else h.sub_(c)
        h = _zero(torch.mul(x, r, out=h), flags, h)
        q = torch.mul(g, h, out=wide)
        if weights is not None:
            weights.add_(q.sum_to_size(weights.shape))
        if biases is not None:
            biases.add_(g.sum_to_size(biases.shape))
        q = (q if w is None else q.mul_(w)).sum(dims, True)
        p = g if w is None else torch.mul(g, w, out=wide)
        if centred:
            s = p.sum(dims, True)
            e = s * share if e is None else torch.addcmul(e, s, share)
        torch.mul(p, r, out=wide).addcmul_(h, (q if f is None else q + f) * share)
        _zero(wide if e is None else wide.add_(e), flags, out)
    return back, *totals


def _divide_by_count(grad: Tensor | None, count: Tensor, centred: bool) -> Tensor | None:
    return grad / count.clamp_min(1) if centred and grad is not None else None


def _buffers(parts: Split, data: Tensor, result: Tensor, dtype: torch.dtype) -> tuple[list[Tensor], ...]:
    """For each piece: a buffer, another or where the result goes to (if it is of that dtype), and the latter."""
    outs: list[Tensor] = parts(result)
    return parts.buffers(data, dtype), outs if data.dtype is dtype else parts.buffers(data, dtype), outs


def _flags(mask: Tensor, parts: Split, dtype: torch.dtype) -> Iterator[Tensor]:
    """For each piece of the mask the numbers 0 and 1, all in one buffer."""
    small = masks.compact(mask).view(torch.uint8)
    for valid, flags in zip(parts(small), parts.buffers(small, dtype), strict=True):
        yield flags.copy_(valid)


def _zero(data: Tensor, flags: Tensor, out: Tensor) -> Tensor:
    """Writes ``data`` into ``out``, and 0 where the flags are 0, whatever lies there: the derivative of ``threshold``.

    Of the ways to choose without a branch it is the one that needs one call and no other view of the data.
    """
    if data.dtype is not out.dtype:  # half precision; the data is a buffer of our own
        return out.copy_(_zero(data, flags, data))
    found: Tensor = _CHOOSE(data, flags, 0, grad_input=out)
    return found


_CHOOSE = torch.ops.aten.threshold_backward.grad_input


def _serves(data: Tensor, *_: Any) -> str | None:
    fills = data.is_floating_point() and can_fill_bits(data)
    return None if fills else "it fills the bits of real numbers in memory, which are others here"


def _constant(*options: Any) -> tuple[int, ...]:
    return (2,) if options[-1] else (1, 2)


KERNELS["standardize", "cpu"] = Kernel(forward, backward, _serves, least="FORMULA", constant=_constant)
