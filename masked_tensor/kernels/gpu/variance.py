"""Variance, standard deviation and mean with where they are valid, and their gradient in one pass.

The moments are found in one kernel, and a small one makes of those of each slice what is asked for, and what the
gradient divides the distances by: of ``v = s / d`` it is ``d / 2``, of its root r ``d * r``.
"""

from collections.abc import Sequence
from math import floor
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ... import settings
from . import layout
from .moments import moments
from .reduce import TL, Dims
from .tiles import across, down, indices, load_mask, load_valid


@triton.jit
def _finish(
    squares, mean, rest, number, out, valid, average, some, over, K, CORRECTION: tl.constexpr, LEAST: tl.constexpr,
    ROOT: tl.constexpr, B: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B).to(tl.int64)
    inside = at < K
    n = tl.load(number + at, mask=inside, other=0)
    enough = n > LEAST
    divisor = tl.where(enough, n.to(ACC) - CORRECTION, 1.0)
    result = tl.load(squares + at, mask=inside, other=0) / divisor
    if ROOT:
        result = tl.sqrt(result)
        tl.store(over + at, divisor * result, mask=inside)
    else:
        tl.store(over + at, divisor * 0.5, mask=inside)
    centre = tl.load(mean + at, mask=inside, other=0) + tl.load(rest + at, mask=inside, other=0)
    tl.store(out + at, result, mask=inside)
    tl.store(valid + at, enough.to(tl.uint8), mask=inside)
    tl.store(average + at, centre, mask=inside)
    tl.store(some + at, (n > 0).to(tl.uint8), mask=inside)


@triton.jit
def _spread(
    g, h, x, m, dx, mean, rest, over, number, K, R, steps, near, xs, ms, os, ds, GIVEN: tl.constexpr,
    BK: tl.constexpr, BR: tl.constexpr, K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    own = down(k, near, os, K2)
    centre = tl.load(mean + own, mask=kept, other=0)
    left = tl.load(rest + own, mask=kept, other=0)
    away = tl.load(over + own, mask=kept, other=0)
    slope = tl.zeros([BK, 1], ACC)
    share = tl.zeros([BK, 1], ACC)
    if GIVEN[0]:
        slope += tl.where(away == 0, 0.0, tl.load(g + own, mask=kept, other=0).to(ACC))
    if GIVEN[1]:
        n = tl.maximum(tl.load(number + own, mask=kept, other=1), 1).to(ACC)
        share += tl.load(h + own, mask=kept, other=0).to(ACC) / n
    away = tl.where(away == 0, 1.0, away)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
        back = slope * ((d - centre - left) / away) + share
        tl.store(dx + down(k, near, ds, K2) + across(r, near, ds, R2), tl.where(v, back, 0.0), mask=inside)


def serves(data: Tensor, mask: Tensor, _: Any, dims: Dims, *options: Any) -> str | None:
    """Why no kernel serves; None where one does."""
    found = layout.refuses(data, mask)
    if found:
        return found
    flags = layout.as_bytes(mask, data.shape)
    lies = torch.empty_like(data, device="meta").stride(), layout.result_strides(data.shape, dims)
    table = layout.walk(data.shape, dims, data.stride(), flags.stride(), *lies)
    return "dimensions that do not lie as rows" if table is None else None


def forward(
    data: Tensor, mask: Tensor, _: Any, dims: Dims, keepdim: bool, correction: float, root: bool, both: bool
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The variance, or its root, and where it is valid; the same of the mean, if ``both``."""
    mean, rest, squares, number = moments(data, mask, dims)
    out, average = (data.new_empty(squares.shape, dtype=data.dtype) for _ in range(2))
    valid, some = (data.new_empty(squares.shape, dtype=torch.bool) for _ in range(2))
    over = torch.empty_like(squares)
    size = min(layout.power_of_two(squares.numel()), settings.GPU_TILE)
    _finish[(-(-squares.numel() // size),)](
        squares, mean, rest, number, out, valid.view(torch.uint8), average, some.view(torch.uint8), over,
        squares.numel(), CORRECTION=float(correction), LEAST=max(floor(correction), 0), ROOT=root, B=size,
        ACC=TL[over.dtype],
    )  # fmt: skip
    results: tuple[Tensor, ...] = (out, valid, average, some) if both else (out, valid)
    if not keepdim:
        results = tuple(t.squeeze(dims) for t in results)
    return results, (data, mask, mean, rest, over, number)


def backward(
    saved: Sequence[Tensor], grads: Sequence[Tensor | None], _: Any, dims: Dims, keepdim: bool, *options: Any
) -> tuple[Tensor, None]:
    """The gradient of the data."""
    data, mask, mean, rest, over, number = saved
    shape, back = data.shape, torch.empty_like(data)
    given = [None if g is None else layout.restore(g, dims, keepdim).contiguous() for g in (*grads, None, None)[:3:2]]
    flags, own = layout.as_bytes(mask, shape), layout.result_strides(shape, dims)
    table = layout.walk(shape, dims, data.stride(), flags.stride(), own, back.stride())
    assert table is not None
    sizes = layout.blocks(table)
    _spread[(sizes.programs, sizes.splits)](
        *(mean if g is None else g for g in given), data, flags, back, mean, rest, over, number, table.kept,
        table.reduced, sizes.steps, table.near, *table.strides, GIVEN=tuple(g is not None for g in given),
        BK=sizes.kept, BR=sizes.reduced, K2=table.two[0], R2=table.two[1], WIDE=sizes.wide, ACC=TL[mean.dtype],
        num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    return back, None
