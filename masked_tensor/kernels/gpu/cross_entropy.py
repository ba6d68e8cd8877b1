"""Cross entropy and negative log-likelihood with masked labels and masked classes, in one pass over the scores.

A sample counts where its label is valid and not ``ignore_index``, and one of its classes is valid: only then are its
scores read.  A label outside of the classes gives NaN; nothing is read there.  For the gradient the logarithm of each
sample's sum is kept, and what it is weighted with.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ... import settings
from ...masks import full
from ..losses import NONE
from . import layout
from .reduce import TL
from .reduce_states import initial, join, step
from .tiles import across, down, indices, load_mask, load_valid


@triton.jit
def _samples(
    x, m, target, known, weight, out, logs, weights, shares, flags, K, R, steps, near, xs, ms, ts, ns, os, IGNORED,
    SMOOTHING: tl.constexpr, WEIGHTED: tl.constexpr, SCORES: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
    K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """The loss of each sample; SCORES: they are logarithms of probabilities already."""
    k = indices(tl.program_id(0), BK, WIDE)
    rx, rm = down(k, near, xs, K2), down(k, near, ms, K2)
    counts = load_mask(known, down(k, near, ns, K2), (k < K)[:, None])
    label = tl.load(target + down(k, near, ts, K2), mask=counts, other=0).to(tl.int64)
    counts = counts & (label != IGNORED)
    named = tl.reshape(counts & (label >= 0) & (label < R), [BK])
    a, b = initial(BK, BR, "logsumexp", ACC)
    picked = tl.full([BK, BR], -float("inf"), ACC)
    spread = tl.zeros([BK, BR], ACC)
    heavy = tl.zeros([BK, BR], ACC)
    n = tl.zeros([BK, BR], tl.int32)
    for i in range(steps):
        r = indices(tl.program_id(1) + i, BR, WIDE)
        v = load_mask(m, rm + across(r, near, ms, R2), counts & (r < R)[None, :])
        d = load_valid(x, rx + across(r, near, xs, R2), v, ACC)
        n += v.to(tl.int32)
        picked = tl.where(v & (r.to(tl.int64)[None, :] == label), d, picked)
        if not SCORES:
            a, b = step(a, b, d, v, "logsumexp")
        if SMOOTHING > 0:
            c = _class_weight(weight, r, v, R, WEIGHTED, ACC)
            spread += c * d
            heavy += c
    total = tl.zeros([BK], ACC)
    if not SCORES:
        a, b = join(a, b, "logsumexp")
        total = tl.log(b) + a
    number = tl.sum(n, 1)
    counted = tl.reshape(counts, [BK]) & (number > 0)
    one = _weight_of(weight, tl.reshape(label, [BK]), named, WEIGHTED, ACC)
    loss = one * (total - _picked(picked))
    share = SMOOTHING / tl.maximum(number, 1).to(ACC)
    if SMOOTHING > 0:
        loss = loss * (1 - SMOOTHING) + share * (tl.sum(heavy, 1) * total - tl.sum(spread, 1))
    at = tl.reshape(down(k, near, os, K2), [BK])
    tl.store(out + at, tl.where(counted, tl.where(named, loss, float("nan")), 0.0), mask=k < K)
    tl.store(logs + at, total, mask=k < K)
    tl.store(weights + at, tl.where(counted, one, 0.0), mask=k < K)
    tl.store(shares + at, share, mask=k < K)
    tl.store(flags + at, counted.to(tl.uint8), mask=k < K)


@triton.jit
def _weight_of(weight, label, named, WEIGHTED: tl.constexpr, ACC: tl.constexpr):
    if WEIGHTED:
        return tl.load(weight + label, mask=named, other=0).to(ACC)
    else:
        return tl.full(label.shape, 1.0, ACC)


@triton.jit
def _picked(scores):
    """The one score of a row that is not -inf, NaN or not."""
    nan = scores != scores
    return tl.where(tl.max(nan.to(tl.int32), 1) > 0, float("nan"), tl.max(tl.where(nan, -float("inf"), scores), 1))


@triton.jit
def _total(
    each,
    weights,
    flags,
    out,
    valid,
    number,
    divisor,
    N,
    steps,
    B: tl.constexpr,
    ACC: tl.constexpr,
):
    """The sum over all samples, or their weighted mean, by one program, in order."""
    total = tl.zeros([B], ACC)
    heavy = tl.zeros([B], ACC)
    n = tl.zeros([B], tl.int64)
    for i in range(steps):
        at = i * B + tl.arange(0, B)
        total += tl.load(each + at, mask=at < N, other=0)
        heavy += tl.load(weights + at, mask=at < N, other=0)
        n += tl.load(flags + at, mask=at < N, other=0).to(tl.int64)
    result = tl.sum(total, 0)
    weight = tl.sum(heavy, 0)
    some = tl.sum(n, 0)
    tl.store(out, result)
    tl.store(divisor, weight)
    tl.store(number, some)
    tl.store(valid, (some > 0).to(tl.uint8))


@triton.jit
def _slopes(
    g, x, m, target, weight, dx, logs, weights, shares, flags, K, R, steps, near, gs, xs, ms, ts, ds, os,
    SMOOTHING: tl.constexpr, WEIGHTED: tl.constexpr, SCORES: tl.constexpr,
    BK: tl.constexpr, BR: tl.constexpr, K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    own = down(k, near, os, K2)
    counted = load_mask(flags, own, kept)
    label = tl.load(target + down(k, near, ts, K2), mask=counted, other=0).to(tl.int64)
    total = tl.load(logs + own, mask=kept, other=0)
    one = tl.load(weights + own, mask=kept, other=0) * (1 - SMOOTHING)
    share = tl.load(shares + own, mask=kept, other=0)
    grad = tl.load(g + down(k, near, gs, K2), mask=kept, other=0).to(ACC)
    heavy = tl.zeros([BK, BR], ACC)
    if SMOOTHING > 0:
        for i in range(steps):
            r = indices(i, BR, WIDE)
            v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), counted & (r < R)[None, :])
            heavy += _class_weight(weight, r, v, R, WEIGHTED, ACC)
    spread = tl.sum(heavy, 1)[:, None]
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside) & counted
        hit = (r.to(tl.int64)[None, :] == label).to(ACC)
        slope = -one * hit
        if not SCORES:
            d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
            slope += tl.exp(d - total) * (one + share * spread)
        if SMOOTHING > 0:
            slope -= share * _class_weight(weight, r, v, R, WEIGHTED, ACC)
        tl.store(dx + down(k, near, ds, K2) + across(r, near, ds, R2), tl.where(v, grad * slope, 0.0), mask=inside)


@triton.jit
def _class_weight(weight, r, v, R, WEIGHTED: tl.constexpr, ACC: tl.constexpr):
    if WEIGHTED:
        return tl.where(v, tl.load(weight + r, mask=r < R, other=0).to(ACC)[None, :], 0.0)
    else:
        return v.to(ACC)


def serves(
    data: Tensor, mask: Tensor | None, target: Tensor, known: Tensor, weight: Tensor | None,
    weights_known: Tensor | None, dim: int, kind: str, reduction: int, ignored: int = -100, smoothing: float = 0.0,
) -> str | None:  # fmt: skip
    """Why no kernel serves; None where one does."""
    found = layout.refuses(data, mask, target, known, weight)
    if found:
        return found
    if target.dtype not in (torch.int64, torch.int32, torch.uint8):
        return "targets that are no classes"
    if weights_known is not None:
        return "a masked weight"
    if weight is not None and (weight.requires_grad or weight.dtype not in layout.FLOATS):
        return "a weight with a gradient"
    table = _walk(data, mask, target, known, dim, torch.empty_like(data, device="meta"))[1]
    return "dimensions that do not lie as rows" if table is None else None


def _walk(
    data: Tensor, mask: Tensor | None, target: Tensor, known: Tensor, dim: int, *others: Tensor
) -> tuple[list[Tensor], layout.Walk | None]:
    """Data, bytes of the mask, labels and bytes of theirs in the shape of the data, and the table of them."""
    shape, dims = data.shape, (dim,)
    mask = full(shape, data.device) if mask is None else mask
    wide = [t.unsqueeze(dim).expand(shape) for t in (target, layout.as_bytes(known, target.shape))]
    tensors = [data, layout.as_bytes(mask, shape), *wide]
    strides = (t.stride() for t in (*tensors, *others))
    return tensors, layout.walk(shape, dims, *strides, layout.result_strides(shape, dims))


def forward(
    data: Tensor, mask: Tensor | None, target: Tensor, known: Tensor, weight: Tensor | None,
    weights_known: Tensor | None, dim: int, kind: str, reduction: int, ignored: int = -100, smoothing: float = 0.0,
) -> tuple[Any, tuple[Any, ...]]:  # fmt: skip
    """The entries and which samples count, or the sum, what a mean divides it by, whether one counts, and the dtype.

    ``known`` is the mask of the targets, which have the shape of the data without ``dim``; ``kind`` is
    ``"cross_entropy"`` or ``"nll_loss"``.
    """
    tensors, table = _walk(data, mask, target, known, dim)
    assert table is not None
    acc, each = layout.wide_dtype(data.dtype), reduction == NONE
    weight = None if weight is None else weight.contiguous()
    out = target.new_empty(target.shape, dtype=data.dtype if each else acc)
    logs, weights, shares = (target.new_empty(target.shape, dtype=acc) for _ in range(3))
    counted = target.new_empty(target.shape, dtype=torch.bool)
    sizes = layout.blocks(table, share=False)
    _samples[(sizes.programs, 1)](
        *tensors, data if weight is None else weight, out, logs, weights, shares, counted.view(torch.uint8),
        table.kept, table.reduced, sizes.steps, table.near, *table.strides, ignored, SMOOTHING=float(smoothing),
        WEIGHTED=weight is not None, SCORES=kind == "nll_loss", BK=sizes.kept, BR=sizes.reduced, K2=table.two[0],
        R2=table.two[1], WIDE=sizes.wide, ACC=TL[acc], num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    saved = data, mask, target, weight, logs, weights, shares, counted
    if each:
        return (out, counted), saved
    total, divisor = (data.new_empty((), dtype=acc) for _ in range(2))
    number, valid = target.new_empty((), dtype=torch.int64), target.new_empty((), dtype=torch.bool)
    size = min(layout.power_of_two(out.numel()), settings.GPU_TILE)
    _total[(1,)](
        out, weights, counted.view(torch.uint8), total, valid.view(torch.uint8), number, divisor, out.numel(),
        -(-out.numel() // size), B=size, ACC=TL[acc],
    )  # fmt: skip
    return (total, number if weight is None else lambda: divisor, valid, data.dtype), saved


def backward(
    saved: Sequence[Any], grads: Sequence[Tensor | None], dim: int, kind: str, reduction: int, ignored: int = -100,
    smoothing: float = 0.0,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradient of the data, 0 where it is masked and for samples that do not count."""
    data, mask, target, weight, *kept = saved
    grad, back, flags = grads[0], torch.empty_like(data), kept[-1]
    if grad is None:
        return (None,) * 6
    shape = data.shape
    grad = grad.unsqueeze(dim).expand(shape) if reduction == NONE else grad.expand(shape)
    tensors, _ = _walk(data, mask, target, flags, dim)
    operands = [grad, *tensors[:3], back]
    own = layout.result_strides(shape, (dim,))
    table = layout.walk(shape, (dim,), *(t.stride() for t in operands), own)
    if table is None:
        operands[0] = grad.contiguous()
        table = layout.walk(shape, (dim,), *(t.stride() for t in operands), own)
    assert table is not None
    sizes = layout.blocks(table)
    _slopes[(sizes.programs, sizes.splits)](
        *operands[:4], data if weight is None else weight, back, *kept[:-1], flags.view(torch.uint8), table.kept,
        table.reduced, sizes.steps, table.near, *table.strides, SMOOTHING=float(smoothing),
        WEIGHTED=weight is not None, SCORES=kind == "nll_loss", BK=sizes.kept, BR=sizes.reduced, K2=table.two[0],
        R2=table.two[1], WIDE=sizes.wide, ACC=TL[layout.wide_dtype(data.dtype)],
        num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    return back, *(None for _ in range(5))
