"""The gradients of standardizing, for the gradient g of the result and sums over the n valid entries of a group::

    h = (x - mean) * rstd
    dx = rstd * (g * weight - sum(g * weight) / n - h * sum(g * weight * h) / n)
    dweight = sum(g * h), dbias = sum(g) over what the parameter is shared by

Rows that fit, whose parameters are as long, take one kernel: each program adds up the gradients of the parameters over
its rows, and a second kernel adds up the programs, in order.  Other groups take a kernel for the sums, per stretch over
which the parameters are constant, and one that writes.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ... import settings
from . import layout
from .reduce import TL
from .tiles import across, down, indices, load_mask, load_valid


@triton.jit
def _rows(
    g, x, m, w, dx, mean, rest, rstd, number, weights, biases, K, R, steps, near, gs, xs, ms, ws, ds, os,
    CENTRED: tl.constexpr, SCALED: tl.constexpr, SHIFTED: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
    K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    r = tl.arange(0, BR)
    scale = tl.full([1, BR], 1.0, ACC)
    if SCALED:
        scale = tl.load(w + across(r, near, ws, R2), mask=(r < R)[None, :], other=0).to(ACC)
    dw = tl.zeros([BK, BR], ACC)
    db = tl.zeros([BK, BR], ACC)
    for i in range(steps):
        k = indices(tl.program_id(0) * steps + i, BK, WIDE)
        kept = (k < K)[:, None]
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
        q = load_valid(g, down(k, near, gs, K2) + across(r, near, gs, R2), v, ACC)
        own = down(k, near, os, K2)
        spread = tl.load(rstd + own, mask=kept, other=0)
        n = tl.maximum(tl.load(number + own, mask=kept, other=1), 1.0)
        if CENTRED:
            d = d - tl.load(mean + own, mask=kept, other=0) - tl.load(rest + own, mask=kept, other=0)
        h = tl.where(v, d * spread, 0.0)
        p = tl.where(v, q * scale, 0.0)
        back = p - h * (tl.sum(p * h, 1)[:, None] / n)
        if CENTRED:
            back -= tl.sum(p, 1)[:, None] / n
        tl.store(dx + down(k, near, ds, K2) + across(r, near, ds, R2), tl.where(v, spread * back, 0.0), mask=inside)
        dw += q * h
        db += q
    at = tl.program_id(0).to(tl.int64) * R + r.to(tl.int64)
    if SCALED:
        tl.store(weights + at, tl.sum(dw, 0), mask=r < R)
    if SHIFTED:
        tl.store(biases + at, tl.sum(db, 0), mask=r < R)


@triton.jit
def _fold(parts, out, R, P, near, ps, BR: tl.constexpr, BP: tl.constexpr, R2: tl.constexpr, ACC: tl.constexpr):
    """The sum of what ``P`` programs found for each of ``R`` parameters."""
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    total = tl.zeros([BP, BR], ACC)
    for i in range(0, P, BP):
        p = (i + tl.arange(0, BP))[:, None]
        inside = (p < P) & (r < R)[None, :]
        total += tl.load(parts + p.to(tl.int64) * R + r.to(tl.int64)[None, :], mask=inside, other=0)
    tl.store(out + tl.reshape(across(r, near, ps, R2), [BR]), tl.sum(total, 0), mask=r < R)


@triton.jit
def _sums(
    g, x, m, w, mean, rest, rstd, sums, products, K, R, steps, near, gs, xs, ms, ws, ss, os, SCALED: tl.constexpr,
    BK: tl.constexpr, BR: tl.constexpr, K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """The sums of ``g * weight`` and ``g * weight * h``."""
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    p = tl.zeros([BK, BR], ACC)
    q = tl.zeros([BK, BR], ACC)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
        e = load_valid(g, down(k, near, gs, K2) + across(r, near, gs, R2), v, ACC)
        if SCALED:
            e = e * tl.load(w + down(k, near, ws, K2) + across(r, near, ws, R2), mask=inside, other=0).to(ACC)
        at = down(k, near, ss, K2) + across(r, near, ss, R2)
        d = d - load_valid(mean, at, v, ACC) - load_valid(rest, at, v, ACC)
        p += tl.where(v, e, 0.0)
        q += tl.where(v, e * (d * load_valid(rstd, at, v, ACC)), 0.0)
    own = tl.program_id(1).to(tl.int64) * K + tl.reshape(down(k, near, os, K2), [BK])
    tl.store(sums + own, tl.sum(p, 1), mask=k < K)
    tl.store(products + own, tl.sum(q, 1), mask=k < K)


@triton.jit
def _write(
    g, x, m, w, dx, mean, rest, rstd, shift, slope, K, R, steps, near, gs, xs, ms, ws, ds, os, SCALED: tl.constexpr,
    BK: tl.constexpr, BR: tl.constexpr, K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """``rstd * g * weight - shift - h * slope``, of which shift and slope belong to the group."""
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    own = down(k, near, os, K2)
    centre = tl.load(mean + own, mask=kept, other=0)
    left = tl.load(rest + own, mask=kept, other=0)
    spread = tl.load(rstd + own, mask=kept, other=0)
    a = tl.load(shift + own, mask=kept, other=0)
    b = tl.load(slope + own, mask=kept, other=0)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
        e = load_valid(g, down(k, near, gs, K2) + across(r, near, gs, R2), v, ACC)
        if SCALED:
            e = e * tl.load(w + down(k, near, ws, K2) + across(r, near, ws, R2), mask=inside, other=0).to(ACC)
        back = spread * e - a - (d - centre - left) * spread * b
        tl.store(dx + down(k, near, ds, K2) + across(r, near, ds, R2), tl.where(v, back, 0.0), mask=inside)


def backward(
    saved: Sequence[Any], grads: Sequence[Tensor | None], _: Any, dims: tuple[int, ...], eps: float, centred: bool
) -> tuple[Tensor | None, ...]:
    """The gradients of data, weight and bias, for those of the results; None for the mask and the count."""
    data = saved[0]
    grad, grad_mean, _, grad_rstd = grads
    if grad is None:
        grad = data.new_zeros(()).expand(data.shape)
    if not _fits(saved, grad, dims):  # it lies in another way
        grad = torch.empty_like(data).copy_(grad)
    rows = _by_rows(saved, grad, dims, centred) if grad_mean is None and grad_rstd is None else None
    return rows or _by_group(saved, grad, grad_mean, grad_rstd, dims, centred)


def _fits(saved: Sequence[Any], grad: Tensor, dims: tuple[int, ...]) -> bool:
    data, weight, _, mask, *_ = saved
    tensors = [t.expand(data.shape) for t in (data, layout.as_bytes(mask, data.shape), _or(weight, data), grad)]
    lies = torch.empty_like(data, device="meta").stride(), layout.result_strides(data.shape, dims)
    return layout.walk(data.shape, dims, *(t.stride() for t in tensors), *lies) is not None


def _by_rows(
    saved: Sequence[Any], grad: Tensor, dims: tuple[int, ...], centred: bool
) -> tuple[Tensor | None, ...] | None:
    data, weight, bias, mask, *statistics = saved
    back, shape, parameters = torch.empty_like(data), data.shape, (weight, bias)
    totals = [None if p is None else torch.empty_like(p, memory_format=torch.contiguous_format) for p in parameters]
    tensors = [t.expand(shape) for t in (grad, data, layout.as_bytes(mask, shape), _or(weight, data), back)]
    others = [_or(t, back).expand(shape).stride() for t in totals]
    table = layout.walk(shape, dims, *(t.stride() for t in tensors), layout.result_strides(shape, dims), *others)
    if table is None or not layout.fits(table) or any(p is not None and p.numel() != table.reduced for p in parameters):
        return None
    if any(
        p is not None and any(p.expand(shape).stride(d) for d in range(data.dim()) if d not in dims) for p in parameters
    ):
        return None
    sizes, acc = layout.blocks(table, whole=True, share=False), layout.wide_dtype(data.dtype)
    programs = sizes.programs if weight is bias is None else min(sizes.programs, settings.GPU_PROGRAMS)
    steps = -(-sizes.programs // programs)
    programs = -(-sizes.programs // steps)
    parts = [data.new_empty((0 if p is None else programs, table.reduced), dtype=acc) for p in parameters]
    _rows[(programs,)](
        *tensors, *statistics, *parts, table.kept, table.reduced, steps, table.near, *table.strides[:6],
        CENTRED=centred, SCALED=weight is not None, SHIFTED=bias is not None, BK=sizes.kept, BR=sizes.reduced,
        K2=table.two[0], R2=table.two[1], WIDE=sizes.wide, ACC=TL[acc],
        num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    wide = min(layout.power_of_two(table.reduced), settings.GPU_COLUMNS)
    for part, total, lies in zip(parts, totals, table.strides[6:], strict=True):
        if total is not None:
            _fold[(-(-table.reduced // wide),)](
                part, total, table.reduced, programs, table.near, lies, BR=wide,
                BP=max(1, settings.GPU_TILE // wide), R2=table.two[1], ACC=TL[acc],
            )  # fmt: skip
    return back, *totals, None, None


def _or(tensor: Tensor | None, other: Tensor) -> Tensor:
    return other if tensor is None else tensor


def _by_group(
    saved: Sequence[Any], grad: Tensor, grad_mean: Tensor | None, grad_rstd: Tensor | None, dims: tuple[int, ...],
    centred: bool,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    data, weight, bias, _, _, _, rstd, number = saved
    given = [p for p in (weight, bias) if p is not None]
    alike = tuple(d for d in dims if all(p.expand(data.shape).stride(d) == 0 for p in given))
    if alike:  # over stretches with one weight
        sums, products = _add_up(saved, grad, None, alike, dims)
        p, q = (t if weight is None else t * weight for t in (sums, products))
        other = [d for d in dims if d not in alike]
        p, q = (t.sum(other, True) for t in (p, q)) if other else (p, q)
        found = [
            None if t is None else s.sum_to_size(t.shape).to(t.dtype) for t, s in ((weight, products), (bias, sums))
        ]
    else:
        p, q = _add_up(saved, grad, weight, dims, dims)
        found = []
        for parameter, which in ((weight, 1), (bias, 0)):
            shared = tuple(
                d for d in range(data.dim()) if parameter is not None and parameter.expand(data.shape).stride(d) == 0
            )
            found.append(
                None
                if parameter is None
                else _add_up(saved, grad, None, shared, dims)[which].reshape(parameter.shape).to(parameter.dtype)
            )
    share = rstd / number.clamp_min(1)
    slope = share * q if grad_rstd is None else share * (q + rstd * grad_rstd)
    shift = share * p if centred else torch.zeros_like(share)
    if centred and grad_mean is not None:
        shift = shift - grad_mean / number.clamp_min(1)
    return _write_out(saved, grad, shift, slope, dims), *found, None, None


def _add_up(
    saved: Sequence[Any], grad: Tensor, weight: Tensor | None, over: tuple[int, ...], dims: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """The sums of ``g * weight`` and ``g * weight * h`` along ``over``."""
    data, _, _, mask, mean, rest, rstd, _ = saved
    shape = data.shape
    tensors = [t.expand(shape) for t in (grad, data, layout.as_bytes(mask, shape), _or(weight, data))]
    lies = layout.result_strides(shape, dims), layout.result_strides(shape, over)
    table = layout.walk(shape, over, *(t.stride() for t in tensors), *lies)
    if table is None:
        return _add_up_in_steps(saved, grad, weight, over)
    sizes, acc = layout.blocks(table), mean.dtype
    sums, products = (data.new_empty((sizes.splits, *layout.kept_shape(shape, over)), dtype=acc) for _ in range(2))
    _sums[(sizes.programs, sizes.splits)](
        *tensors, mean, rest, rstd, sums, products, table.kept, table.reduced, sizes.steps, table.near,
        *table.strides, SCALED=weight is not None, BK=sizes.kept, BR=sizes.reduced, K2=table.two[0], R2=table.two[1],
        WIDE=sizes.wide, ACC=TL[acc], num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    return (sums[0], products[0]) if sizes.splits == 1 else (sums.sum(0), products.sum(0))


def _add_up_in_steps(
    saved: Sequence[Any], grad: Tensor, weight: Tensor | None, over: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """The same where the dimensions do not lie as rows."""
    data, _, _, mask, mean, rest, rstd, _ = saved
    e = grad.to(mean.dtype) if weight is None else grad.to(mean.dtype) * weight
    h = (data.to(mean.dtype) - mean - rest) * rstd
    return torch.where(mask, e, 0).sum(over, True), torch.where(mask, e * h, 0).sum(over, True)


def _write_out(saved: Sequence[Any], grad: Tensor, shift: Tensor, slope: Tensor, dims: tuple[int, ...]) -> Tensor:
    data, weight, _, mask, mean, rest, rstd, _ = saved
    shape, back = data.shape, torch.empty_like(data)
    tensors = [t.expand(shape) for t in (grad, data, layout.as_bytes(mask, shape), _or(weight, data), back)]
    table = layout.walk(shape, dims, *(t.stride() for t in tensors), layout.result_strides(shape, dims))
    assert table is not None
    sizes = layout.blocks(table)
    _write[(sizes.programs, sizes.splits)](
        *tensors, mean, rest, rstd, shift, slope, table.kept, table.reduced, sizes.steps, table.near, *table.strides,
        SCALED=weight is not None, BK=sizes.kept, BR=sizes.reduced, K2=table.two[0], R2=table.two[1],
        WIDE=sizes.wide, ACC=TL[mean.dtype], num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    return back
