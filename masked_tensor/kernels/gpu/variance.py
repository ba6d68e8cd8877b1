"""Variance and standard deviation with the mean, and their gradients: what users are given of the moments."""

from collections.abc import Sequence

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
    mean,
    squares,
    number,
    out,
    center,
    valid,
    some,
    deviation,
    K,
    CORRECTION: tl.constexpr,
    ROOT: tl.constexpr,
    B: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    kept = at < K
    n = tl.load(number + at, mask=kept, other=0)
    s = tl.load(squares + at, mask=kept, other=0)
    number_less = n.to(tl.float64) - CORRECTION
    enough = (number_less > 0) & (n > 0)
    result = tl.where(enough, s / tl.where(enough, number_less, 1.0).to(s.dtype), 0.0)
    if ROOT:
        result = tl.sqrt(result)
    tl.store(out + at, result, mask=kept)
    tl.store(deviation + at, result, mask=kept)
    tl.store(valid + at, enough.to(tl.uint8), mask=kept)
    tl.store(center + at, tl.load(mean + at, mask=kept, other=0), mask=kept)
    tl.store(some + at, (n > 0).to(tl.uint8), mask=kept)


@triton.jit
def _spread(
    g, h, x, m, dx, mean, rest, number, deviation, K, R, steps, near, xs, ms, os, gs, hs, ds,
    CORRECTION: tl.constexpr, ROOT: tl.constexpr, MEAN: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
    K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    own = down(k, near, os, K2)
    n = tl.load(number + own, mask=kept, other=0)
    less = n.to(tl.float64) - CORRECTION
    slope = tl.load(g + down(k, near, gs, K2), mask=kept, other=0).to(ACC)
    slope = tl.where((less > 0) & (n > 0), slope / tl.where(less > 0, less, 1.0).to(ACC), 0.0)
    if ROOT:
        root = tl.load(deviation + own, mask=kept, other=0)
        slope = tl.where(root == 0, 0.0, slope / tl.where(root == 0, 1.0, root))
    else:
        slope = slope * 2
    shift = tl.zeros_like(slope)
    if MEAN:
        shift = tl.load(h + down(k, near, hs, K2), mask=kept, other=0).to(ACC) / tl.maximum(n, 1).to(ACC)
    centre = tl.load(mean + own, mask=kept, other=0)
    left = tl.load(rest + own, mask=kept, other=0)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
        back = tl.where(v, slope * (d - centre - left) + shift, 0.0)
        tl.store(dx + down(k, near, ds, K2) + across(r, near, ds, R2), back, mask=inside)


def serves(op: str, data: Tensor, mask: Tensor, dims: Dims, correction: float, keepdim: bool) -> str | None:
    """Why no kernel serves; None where one does.  ``op`` is var or std."""
    found = layout.refuses(data, mask)
    if found:
        return found
    flags = layout.as_bytes(mask, data.shape)
    table = layout.walk(data.shape, dims, data.stride(), flags.stride(), layout.result_strides(data.shape, dims))
    return "dimensions that do not lie as rows" if table is None else None


def forward(
    op: str, data: Tensor, mask: Tensor, dims: Dims, correction: float, keepdim: bool
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The variance or its root and where it is valid, the mean and where that is; and what the gradient needs."""
    mean, rest, squares, number = moments(data, mask, dims)
    deviation = torch.empty_like(squares)
    results = [torch.empty_like(mean, dtype=kind) for kind in (data.dtype, torch.bool) * 2]
    out, valid, center, some = results
    size = min(settings.GPU_TILE, layout.power_of_two(mean.numel()))
    _finish[(-(-mean.numel() // size),)](
        mean, squares, number, out, center, valid.view(torch.uint8), some.view(torch.uint8), deviation, mean.numel(),
        CORRECTION=float(correction), ROOT=op == "std", B=size,
    )  # fmt: skip
    results = results if keepdim else [t.squeeze(dims) for t in results]
    return tuple(results), (data, mask, mean, rest, number, deviation)


def backward(
    op: str, saved: Sequence[Tensor], grads: Sequence[Tensor | None], dims: Dims, correction: float, keepdim: bool
) -> tuple[Tensor | None, None]:
    """The gradient of the data, for that of the variance or its root, and of the mean."""
    grad, _, grad_mean, _ = grads
    if grad is None and grad_mean is None:
        return None, None
    data, mask, mean, rest, number, deviation = saved
    shape = data.shape
    given = [None if g is None else layout.restore(g, dims, keepdim).expand(shape) for g in (grad, grad_mean)]
    g, h = (mean.new_zeros(()).expand(shape) if t is None else t for t in given)
    back, flags = torch.empty_like(data), layout.as_bytes(mask, shape)
    own = layout.result_strides(shape, dims)
    table = layout.walk(shape, dims, data.stride(), flags.stride(), own, g.stride(), h.stride(), back.stride())
    if table is None:
        g, h = g.contiguous(), h.contiguous()
        table = layout.walk(shape, dims, data.stride(), flags.stride(), own, g.stride(), h.stride(), back.stride())
    assert table is not None
    sizes = layout.blocks(table)
    _spread[(sizes.programs, sizes.splits)](
        g, h, data, flags, back, mean, rest, number, deviation, table.kept, table.reduced, sizes.steps, table.near,
        *table.strides, CORRECTION=float(correction), ROOT=op == "std", MEAN=given[1] is not None,
        BK=sizes.kept, BR=sizes.reduced, K2=table.two[0], R2=table.two[1], WIDE=sizes.wide, ACC=TL[mean.dtype],
        num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    return back, None
