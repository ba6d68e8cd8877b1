"""Variance, standard deviation and mean in one kernel: two passes over what a program holds in its cache.

The first finds the mean, the second adds up the distances and their squares about it, and takes out what a rounded
mean left over.  The parts of a shared reduction are merged in float64 (Chan, Golub and LeVeque, 1979).
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import layout
from .reduce import TL
from .tiles import across, down, indices, load_mask, load_valid


@triton.jit
def _moments(
    x, m, mean, rest, squares, number, K, R, steps, near, xs, ms, os, CENTRED: tl.constexpr, BK: tl.constexpr,
    BR: tl.constexpr, K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, SPLIT: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = k < K
    rx, rm = down(k, near, xs, K2), down(k, near, ms, K2)
    a = tl.zeros([BK, BR], ACC)
    c = tl.zeros([BK, BR], ACC)
    n = tl.zeros([BK, BR], tl.int32)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        v = load_mask(m, rm + across(r, near, ms, R2), kept[:, None] & (r < R)[None, :])
        n += v.to(tl.int32)
        if CENTRED:
            a += load_valid(x, rx + across(r, near, xs, R2), v, ACC)
    total = tl.sum(n.to(tl.int64), 1)
    some = tl.maximum(total, 1).to(ACC)
    centre = tl.sum(a, 1) / some
    a = tl.zeros([BK, BR], ACC)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        v = load_mask(m, rm + across(r, near, ms, R2), kept[:, None] & (r < R)[None, :])
        e = load_valid(x, rx + across(r, near, xs, R2), v, ACC)
        if CENTRED:
            e = tl.where(v, e - centre[:, None], 0.0)
        a += e
        c += e * e
    left = tl.sum(a, 1)
    spread = tl.sum(c, 1)
    if CENTRED:
        spread = _not_below_zero(spread - left * (left / some))
        left = _left(left / some, centre)
    else:
        left = centre
    at = tl.program_id(1).to(tl.int64) * K + k.to(tl.int64) if SPLIT else tl.reshape(down(k, near, os, K2), [BK])
    tl.store(mean + at, centre, mask=kept)
    tl.store(rest + at, left, mask=kept)
    tl.store(squares + at, spread, mask=kept)
    tl.store(number + at, total, mask=kept)


@triton.jit
def _left(rest, mean):
    """What rounding left out of a mean: nothing, if that is not finite."""
    return tl.where(mean - mean == 0, rest, 0.0)


@triton.jit
def _not_below_zero(x):
    return tl.where(x < 0, 0.0, x)  # NaN stays


@triton.jit
def _merge(
    means, rests, spreads, numbers, mean, rest, squares, number, K, S, near, os, BK: tl.constexpr, BS: tl.constexpr,
    K2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = k < K
    s = tl.arange(0, BS)
    at = s.to(tl.int64)[None, :] * K + k.to(tl.int64)[:, None]
    inside = kept[:, None] & (s < S)[None, :]
    counts = tl.load(numbers + at, mask=inside, other=0)
    n = counts.to(tl.float64)
    part = tl.load(means + at, mask=inside, other=0).to(tl.float64)
    part += tl.load(rests + at, mask=inside, other=0).to(tl.float64)
    total = tl.sum(counts, 1)
    centre = tl.sum(n / tl.maximum(total, 1).to(tl.float64)[:, None] * part, 1)
    away = tl.where(n > 0, part - centre[:, None], 0.0)
    spread = tl.sum(tl.load(spreads + at, mask=inside, other=0).to(tl.float64) + n * away * away, 1)
    where = tl.reshape(down(k, near, os, K2), [BK])
    rounded = centre.to(ACC)
    tl.store(mean + where, rounded, mask=kept)
    tl.store(rest + where, _left(centre - rounded.to(tl.float64), centre).to(ACC), mask=kept)
    tl.store(squares + where, spread.to(ACC), mask=kept)
    tl.store(number + where, total, mask=kept)


def moments(data: Tensor, mask: Tensor, dims: tuple[int, ...], centred: bool = True) -> tuple[Tensor, ...]:
    """Mean, what rounding left out of it, the sum of squares about both, and the number of valid entries.

    Of size 1 along ``dims``, in the dtype that is added up in; not ``centred``: the mean is 0.
    """
    flags = layout.as_bytes(mask, data.shape)
    strides = (data.stride(), flags.stride(), layout.result_strides(data.shape, dims))
    table = layout.walk(data.shape, dims, *strides)
    assert table is not None
    sizes, acc = layout.blocks(table), layout.wide_dtype(data.dtype)
    found = _like_moments(data, layout.kept_shape(data.shape, dims), acc)
    split = sizes.splits > 1
    parts = _like_moments(data, (sizes.splits, table.kept), acc) if split else found
    _moments[(sizes.programs, sizes.splits)](
        data, flags, *parts, table.kept, table.reduced, sizes.steps, table.near, *table.strides, CENTRED=centred,
        BK=sizes.kept, BR=sizes.reduced, K2=table.two[0], R2=table.two[1], WIDE=sizes.wide, SPLIT=split, ACC=TL[acc],
        num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    if split:
        high = layout.join_rows(sizes, table)
        _merge[(-(-table.kept // high),)](
            *parts, *found, table.kept, sizes.splits, table.near, table.strides[2], BK=high,
            BS=layout.power_of_two(sizes.splits), K2=table.two[0], WIDE=sizes.wide, ACC=TL[acc],
        )  # fmt: skip
    return found


def _like_moments(data: Tensor, shape: Any, dtype: torch.dtype) -> tuple[Tensor, ...]:
    return *(data.new_empty(shape, dtype=dtype) for _ in range(3)), data.new_empty(shape, dtype=torch.int64)
