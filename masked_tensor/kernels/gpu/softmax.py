"""Softmax and its logarithm over the valid entries, both ways.

A row that fits is read once and held; of a longer one the first pass finds the greatest entry and the sum below it as
it goes (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), and the second writes.  What is
masked is 0, of a logarithm -inf.  The backward pass needs the result alone, and reads it as the forward pass did.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import layout
from .reduce import TL
from .reduce_states import initial, join, step
from .tiles import across, down, indices, load_mask, load_valid


@triton.jit
def _softmax(
    x, m, y, K, R, steps, near, xs, ms, ys, LOG: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
    K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, WHOLE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    rx, rm, ry = down(k, near, xs, K2), down(k, near, ms, K2), down(k, near, ys, K2)
    if WHOLE:
        r = tl.arange(0, BR)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, rm + across(r, near, ms, R2), inside)
        d = load_valid(x, rx + across(r, near, xs, R2), v, ACC)
        top = tl.max(tl.where(v, d, -float("inf")), 1)
        total = tl.sum(tl.where(v, tl.exp(d - top[:, None]), 0.0), 1)
        _write(y, ry + across(r, near, ys, R2), inside, v, d, top, total, LOG)
    else:
        a, b = initial(BK, BR, "logsumexp", ACC)
        for i in range(steps):
            r = indices(tl.program_id(1) + i, BR, WIDE)
            inside = kept & (r < R)[None, :]
            v = load_mask(m, rm + across(r, near, ms, R2), inside)
            d = load_valid(x, rx + across(r, near, xs, R2), v, ACC)
            a, b = step(a, b, d, v, "logsumexp")
        top, total = join(a, b, "logsumexp")
        for i in range(steps):
            r = indices(tl.program_id(1) + i, BR, WIDE)
            inside = kept & (r < R)[None, :]
            v = load_mask(m, rm + across(r, near, ms, R2), inside)
            d = load_valid(x, rx + across(r, near, xs, R2), v, ACC)
            _write(y, ry + across(r, near, ys, R2), inside, v, d, top, total, LOG)


@triton.jit
def _write(y, at, inside, v, d, top, total, LOG: tl.constexpr):
    if LOG:
        result = tl.where(v, d - top[:, None] - tl.log(total)[:, None], -float("inf"))
    else:
        result = tl.where(v, tl.exp(d - top[:, None]) / total[:, None], 0.0)
    tl.store(y + at, result, mask=inside)


@triton.jit
def _softmax_backward(
    g, m, y, dx, K, R, steps, near, gs, ms, ys, ds, LOG: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
    K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, WHOLE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    rg, rm, ry, rd = down(k, near, gs, K2), down(k, near, ms, K2), down(k, near, ys, K2), down(k, near, ds, K2)
    if WHOLE:
        r = tl.arange(0, BR)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, rm + across(r, near, ms, R2), inside)
        p = load_valid(y, ry + across(r, near, ys, R2), v, ACC)
        q = load_valid(g, rg + across(r, near, gs, R2), v, ACC)
        total = tl.sum(q if LOG else p * q, 1)
        tl.store(dx + rd + across(r, near, ds, R2), _slope(p, q, v, total, LOG), mask=inside)
    else:
        sums = tl.zeros([BK, BR], ACC)
        for i in range(steps):
            r = indices(tl.program_id(1) + i, BR, WIDE)
            inside = kept & (r < R)[None, :]
            v = load_mask(m, rm + across(r, near, ms, R2), inside)
            q = load_valid(g, rg + across(r, near, gs, R2), v, ACC)
            if LOG:
                sums += q
            else:
                sums += q * load_valid(y, ry + across(r, near, ys, R2), v, ACC)
        total = tl.sum(sums, 1)
        for i in range(steps):
            r = indices(tl.program_id(1) + i, BR, WIDE)
            inside = kept & (r < R)[None, :]
            v = load_mask(m, rm + across(r, near, ms, R2), inside)
            p = load_valid(y, ry + across(r, near, ys, R2), v, ACC)
            q = load_valid(g, rg + across(r, near, gs, R2), v, ACC)
            tl.store(dx + rd + across(r, near, ds, R2), _slope(p, q, v, total, LOG), mask=inside)


@triton.jit
def _slope(p, q, v, total, LOG: tl.constexpr):
    if LOG:
        return tl.where(v, q - tl.exp(p) * total[:, None], 0.0)
    else:
        return tl.where(v, p * (q - total[:, None]), 0.0)


def serves(data: Tensor, mask: Tensor, dim: int, log: bool) -> str | None:
    """Why no kernel serves; None where one does."""
    found = layout.refuses(data, mask)
    if found or data.dim() == 0:
        return found or "a single number"
    flags = layout.as_bytes(mask, data.shape)
    if layout.walk(data.shape, (dim % data.dim(),), data.stride(), flags.stride(), _laid_out(data).stride()) is None:
        return "dimensions that do not lie as rows"
    return None


def _laid_out(data: Tensor) -> Tensor:
    return torch.empty_like(data, device="meta")


def forward(data: Tensor, mask: Tensor, dim: int, log: bool) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The result, and what the gradient needs."""
    dims, result, flags = (dim % data.dim(),), torch.empty_like(data), layout.as_bytes(mask, data.shape)
    _run(_softmax, (data, flags, result), dims, log)
    return result, (result, mask)


def backward(saved: tuple[Tensor, Tensor], grad: Tensor, dim: int, log: bool) -> tuple[Tensor, None]:
    """The gradient of the data, 0 where it is masked."""
    result, mask = saved
    back, flags = torch.empty_like(result), layout.as_bytes(mask, result.shape)
    dims = (dim % result.dim(),)
    strides = (flags.stride(), result.stride(), back.stride())
    if layout.walk(result.shape, dims, grad.stride(), *strides) is None:  # a gradient that lies in another way
        grad = torch.empty_like(result).copy_(grad)
    _run(_softmax_backward, (grad, flags, result, back), dims, log)
    return back, None


def _run(kernel: Any, tensors: Any, dims: tuple[int, ...], log: bool) -> None:
    data = tensors[0]
    table = layout.walk(data.shape, dims, *(t.stride() for t in tensors))
    assert table is not None
    whole = layout.fits(table)
    sizes = layout.blocks(table, whole=whole, share=False)
    kernel[(sizes.programs, 1)](
        *tensors, table.kept, table.reduced, sizes.steps, table.near, *table.strides, LOG=log, BK=sizes.kept,
        BR=sizes.reduced, K2=table.two[0], R2=table.two[1], WIDE=sizes.wide, WHOLE=whole,
        ACC=TL[layout.wide_dtype(tensors[-1].dtype)], num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
