"""Standardizing over the valid entries of groups: ``(x - mean) * rstd * weight + bias``.

A group that fits is read once and held: statistics and result in one kernel.  Of larger groups, and of few, the moments
come first, shared by several programs, and a second kernel writes.  The mean is in two parts, with what rounding left
out of the first.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import layout
from .moments import moments
from .reduce import TL
from .tiles import across, down, indices, load_mask, load_valid


@triton.jit
def _whole(
    x, m, w, b, y, mean, rest, variance, rstd, number, K, R, near, xs, ms, ws, bs, ys, os, EPS: tl.constexpr,
    CENTRED: tl.constexpr, SCALED: tl.constexpr, SHIFTED: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
    K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    r = tl.arange(0, BR)
    kept = k < K
    inside = kept[:, None] & (r < R)[None, :]
    v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
    d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
    n = tl.sum(v.to(tl.int32), 1)
    some = tl.maximum(n, 1).to(ACC)
    own = tl.reshape(down(k, near, os, K2), [BK])
    centre = tl.zeros([BK], ACC)
    left = tl.zeros([BK], ACC)
    if CENTRED:
        centre = tl.sum(d, 1) / some
        d = tl.where(v, d - centre[:, None], 0.0)
        left = tl.sum(d, 1) / some
        d = tl.where(v, d - left[:, None], 0.0)
    spread = tl.sum(d * d, 1) / some
    scale = tl.rsqrt(tl.where(n == 0, 1.0, spread + EPS))
    tl.store(mean + own, centre, mask=kept)
    tl.store(rest + own, left, mask=kept)
    tl.store(variance + own, spread, mask=kept)
    tl.store(rstd + own, scale, mask=kept)
    tl.store(number + own, n.to(ACC), mask=kept)
    result = scale_and_shift(d * scale[:, None], w, b, k, r, near, ws, bs, inside, SCALED, SHIFTED, K2, R2, ACC)
    tl.store(y + down(k, near, ys, K2) + across(r, near, ys, R2), tl.where(v, result, 0.0), mask=inside)


@triton.jit
def scale_and_shift(
    h, w, b, k, r, near, ws, bs, inside, SCALED: tl.constexpr, SHIFTED: tl.constexpr, K2: tl.constexpr,
    R2: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """``h * weight + bias``, as far as these are given."""
    if SCALED:
        h = h * tl.load(w + down(k, near, ws, K2) + across(r, near, ws, R2), mask=inside, other=0).to(ACC)
    if SHIFTED:
        h = h + tl.load(b + down(k, near, bs, K2) + across(r, near, bs, R2), mask=inside, other=0).to(ACC)
    return h


@triton.jit
def _apply(
    x, m, w, b, y, mean, rest, squares, counts, variance, rstd, number, K, R, steps, near, xs, ms, ws, bs, ys, os,
    EPS: tl.constexpr, SCALED: tl.constexpr, SHIFTED: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
    K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """The result for moments that are known; the first of the programs of a group writes down what follows of them."""
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    own = down(k, near, os, K2)
    n = tl.load(counts + own, mask=kept, other=0)
    spread = tl.load(squares + own, mask=kept, other=0) / tl.maximum(n, 1).to(ACC)
    scale = tl.rsqrt(tl.where(n == 0, 1.0, spread + EPS))
    if tl.program_id(1) == 0:
        tl.store(variance + own, spread, mask=kept)
        tl.store(rstd + own, scale, mask=kept)
        tl.store(number + own, n.to(ACC), mask=kept)
    centre = tl.load(mean + own, mask=kept, other=0)
    left = tl.load(rest + own, mask=kept, other=0)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
        h = (d - centre - left) * scale
        h = scale_and_shift(h, w, b, k, r, near, ws, bs, inside, SCALED, SHIFTED, K2, R2, ACC)
        tl.store(y + down(k, near, ys, K2) + across(r, near, ys, R2), tl.where(v, h, 0.0), mask=inside)


def serves(
    data: Tensor, weight: Tensor | None, bias: Tensor | None, mask: Tensor, count: Tensor, _: Any,
    dims: tuple[int, ...], eps: float, centred: bool,
) -> str | None:  # fmt: skip
    """Why no kernel serves; None where one does."""
    found = layout.refuses(data, weight, bias, mask)
    if found:
        return found
    if count.dtype is not layout.wide_dtype(data.dtype):
        return "statistics of another precision"
    for p in (weight, bias):
        if p is not None and p.dtype not in layout.FLOATS:
            return f"{str(p.dtype).removeprefix('torch.')} parameters"
    tensors = _expand(data, weight, bias, mask)
    return "dimensions that do not lie as rows" if _table(tensors, dims) is None else None


def _expand(data: Tensor, weight: Tensor | None, bias: Tensor | None, mask: Tensor) -> list[Tensor]:
    """Data, bytes of the mask and parameters, in the shape of the data; the data for a parameter that is not given."""
    shape = data.shape
    return [data, layout.as_bytes(mask, shape), *(data if p is None else p.expand(shape) for p in (weight, bias))]


def _table(tensors: list[Tensor], dims: tuple[int, ...]) -> layout.Walk | None:
    data = tensors[0]
    return layout.walk(
        data.shape, dims, *(t.stride() for t in tensors), data.stride(), layout.result_strides(data.shape, dims)
    )


def forward(
    data: Tensor, weight: Tensor | None, bias: Tensor | None, mask: Tensor, count: Tensor, _: Any,
    dims: tuple[int, ...], eps: float, centred: bool,
) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:  # fmt: skip
    """Result, mean, variance and rstd, and what the gradients need; the valid entries are counted on the way.

    The statistics have size 1 along ``dims``; parameters broadcast to the data.
    """
    tensors = _expand(data, weight, bias, mask)
    result = torch.empty_like(data)
    strides = (*(t.stride() for t in tensors), result.stride(), layout.result_strides(data.shape, dims))
    table = layout.walk(data.shape, dims, *strides)
    assert table is not None
    whole, acc, small = layout.fits(table), layout.wide_dtype(data.dtype), layout.kept_shape(data.shape, dims)
    mean, rest, variance, rstd, number = (data.new_empty(small, dtype=acc) for _ in range(5))
    whole = whole and layout.blocks(table).splits == 1  # else one program a group leaves most of the device idle
    sizes = layout.blocks(table, whole=whole, share=not whole)
    how = {
        "EPS": float(eps), "SCALED": weight is not None, "SHIFTED": bias is not None, "K2": table.two[0],
        "R2": table.two[1], "ACC": TL[acc],
    }  # fmt: skip
    if whole:
        _whole[(sizes.programs,)](
            *tensors, result, mean, rest, variance, rstd, number, table.kept, table.reduced, table.near,
            *table.strides, CENTRED=centred, BK=sizes.kept, BR=sizes.reduced, WIDE=sizes.wide, **how,
            num_warps=layout.warps(sizes.kept * sizes.reduced),
        )  # fmt: skip
    else:
        mean, rest, squares, counts = moments(data, mask, dims, centred)
        sizes = layout.blocks(table)
        _apply[(sizes.programs, sizes.splits)](
            *tensors, result, mean, rest, squares, counts, variance, rstd, number, table.kept, table.reduced,
            sizes.steps, table.near, *table.strides, BK=sizes.kept, BR=sizes.reduced, WIDE=sizes.wide, **how,
            num_warps=layout.warps(sizes.kept * sizes.reduced),
        )  # fmt: skip
    return (result, mean, variance, rstd), (data, weight, bias, mask, mean, rest, rstd, number)
