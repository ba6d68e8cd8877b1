"""The gradients of reductions: one pass that writes the gradient of the data, 0 where an entry is masked."""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...select import select
from . import layout
from .reduce import TL, Dims
from .tiles import across, down, indices, is_nan, load_mask, load_valid


@triton.jit
def _spread(
    g, x, m, dx, first, second, K, R, steps, near, xs, ms, os, gs, ds, OP: tl.constexpr, BK: tl.constexpr,
    BR: tl.constexpr, K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    own = down(k, near, os, K2)
    grad = tl.load(g + down(k, near, gs, K2), mask=kept, other=0).to(ACC)
    a = grad
    b = grad
    if (OP != "sum") and (OP != "nansum") and (OP != "norm1"):
        a = tl.load(first + own, mask=kept, other=0).to(ACC)
        if (OP != "logsumexp") and (OP != "norm2"):  # of a mean their number
            b = tl.load(second + own, mask=kept, other=0).to(ACC)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        at = down(k, near, ds, K2) + across(r, near, ds, R2)
        if (OP == "sum") or (OP == "mean"):
            slope = (grad / tl.maximum(b, 1) if OP == "mean" else grad) + tl.zeros([BK, BR], ACC)
        else:
            d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
            slope = _slope(grad, a, b, d, OP)
        tl.store(dx + at, tl.where(v, slope, 0.0), mask=inside)


@triton.jit
def _slope(grad, a, b, d, OP: tl.constexpr):
    """The gradient of a valid entry ``d``, for that of the result; ``a`` and ``b`` are what was saved of the row."""
    if OP == "mean":
        return grad / tl.maximum(b, 1)
    elif OP == "nansum":
        return tl.where(is_nan(d), 0.0, grad + d * 0.0)
    elif OP == "norm1":
        return grad * _sign(d)
    elif OP == "norm2":
        return tl.where(a == 0, 0.0, grad * (d / tl.where(a == 0, 1.0, a)))
    elif OP == "logsumexp":
        return grad * tl.exp(d - tl.where(a == -float("inf"), 0.0, a))
    elif OP == "prod":
        others = tl.where(b == 0, a / tl.where(d == 0, 1.0, d), tl.where((b == 1) & (d == 0), a, 0.0))
        return grad * others
    else:
        if OP == "amin":
            size = -d
        elif OP == "norminf":
            size = tl.abs(d)
        else:
            size = d
        attained = (size == a) | (is_nan(size) & is_nan(a))
        share = tl.where(attained, grad / tl.maximum(b, 1), 0.0)
        if OP == "norminf":
            return share * _sign(d)
        else:
            return share


@triton.jit
def _sign(d):
    return tl.where(d > 0, 1.0, tl.where(d < 0, -1.0, d))


def backward(
    op: str, saved: Sequence[Tensor], grad: Any, _: Any, dims: Dims, keepdim: bool, *__: Any
) -> tuple[Tensor, None]:
    """The gradient of the data; of a mean ``grad`` is a pair, the second for where it is valid, which has none."""
    data, mask, first, second, _number = saved
    grad = grad[0] if op == "mean" else grad
    shape = mask.shape
    grad = layout.restore(grad, dims, keepdim).expand(shape)
    back = data.new_empty(shape) if data.shape != shape else torch.empty_like(data)
    data, flags = back if data.shape != shape else data, layout.as_bytes(mask, shape)
    strides = data.stride(), flags.stride(), layout.result_strides(shape, dims)
    table = layout.walk(shape, dims, *strides, grad.stride(), back.stride())
    if table is None:  # a gradient that lies in another way
        grad = grad.contiguous()
        table = layout.walk(shape, dims, *strides, grad.stride(), back.stride())
    assert table is not None
    sizes = layout.blocks(table)
    _spread[(sizes.programs, sizes.splits)](
        grad, data, flags, back, first, second, table.kept, table.reduced, sizes.steps, table.near,
        *table.strides, OP=op, BK=sizes.kept, BR=sizes.reduced, K2=table.two[0], R2=table.two[1], WIDE=sizes.wide,
        ACC=TL[layout.wide_dtype(back.dtype)], num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    return back, None


def twice(saved: Sequence[Tensor], grad: Any, _: Any, dims: Dims, keepdim: bool, *__: Any) -> Any:
    """That of a sum or a mean in plain steps, which need no data."""
    like, mask, _first, number, _number = saved
    if isinstance(grad, tuple):
        share = layout.restore(grad[0], dims, keepdim) / number.clamp_min(1)
    else:
        share = layout.restore(grad, dims, keepdim)
    return select(share.to(like.dtype).expand(mask.shape), mask, 0), None
