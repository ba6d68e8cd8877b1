"""Reductions in one pass: the result and its validity, over rows, columns or any dimensions that lie as such.

A program adds up lane by lane, then across its lanes.  Where few results have many entries several programs share
them, and a second kernel joins their parts in a fixed order: the same bits from run to run.

The gradient is one pass: it needs what the forward pass found out (the extreme and its ties, the product and its
zeros, the number that a mean divides by).
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ... import shapes
from ...masks import known
from . import layout
from .reduce_states import finish, initial, join, step
from .tiles import across, down, indices, load_mask, load_valid

KEPT = ("mean", "norm2", "amax", "amin", "norminf", "prod", "logsumexp")  # what a gradient needs is saved
REDUCTIONS = ("sum", "nansum", "norm1", *KEPT)
LINEAR = ("sum", "mean")  # a gradient needs no data
LOGICAL = ("any", "all", "count_nonzero")  # of numbers of any kind, without a gradient
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
Dims = tuple[int, ...]
TL = {torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def _reduce(
    x, m, out, valid, first, second, number, K, R, steps, near, xs, ms, os, OP: tl.constexpr, BK: tl.constexpr,
    BR: tl.constexpr, K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, SPLIT: tl.constexpr,
    SAVE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = k < K
    a, b = initial(BK, BR, OP, ACC)
    n = tl.zeros([BK, BR], tl.int32)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept[:, None] & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        n += v.to(tl.int32)
        d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
        a, b = step(a, b, d, v, OP)
    a, b = join(a, b, OP)
    total = tl.sum(n.to(tl.int64), 1)
    if SPLIT:
        at = tl.program_id(1).to(tl.int64) * K + k.to(tl.int64)
        tl.store(first + at, a, mask=kept)
        tl.store(second + at, b, mask=kept)
        tl.store(number + at, total, mask=kept)
    else:
        at = tl.reshape(down(k, near, os, K2), [BK])
        _store(out, valid, first, second, number, at, kept, a, b, total, OP, SAVE)


@triton.jit
def _store(out, valid, first, second, number, at, kept, a, b, n, OP: tl.constexpr, SAVE: tl.constexpr):
    result = finish(a, b, n, OP)
    tl.store(out + at, result, mask=kept)
    tl.store(valid + at, (n > 0).to(tl.uint8), mask=kept)
    if SAVE:
        if (OP == "logsumexp") or (OP == "norm2"):
            tl.store(first + at, result, mask=kept)
        elif OP == "mean":
            tl.store(second + at, n, mask=kept)
        elif OP != "norm1":
            tl.store(first + at, a, mask=kept)
            tl.store(second + at, b, mask=kept)


@triton.jit
def _join(
    parts, others, counts, out, valid, first, second, number, K, S, near, os, OP: tl.constexpr, BK: tl.constexpr,
    BS: tl.constexpr, K2: tl.constexpr, WIDE: tl.constexpr, SAVE: tl.constexpr,
):  # fmt: skip
    """What the programs of the first kernel found, ``(S, K)``, put together."""
    k = indices(tl.program_id(0), BK, WIDE)
    kept = k < K
    s = tl.arange(0, BS)
    at = s.to(tl.int64)[None, :] * K + k.to(tl.int64)[:, None]
    inside = kept[:, None] & (s < S)[None, :]
    n = tl.load(counts + at, mask=inside, other=0)
    other = 0.0
    if (OP == "amax") or (OP == "amin") or (OP == "norminf") or (OP == "logsumexp"):
        other = -float("inf")
    elif OP == "prod":
        other = 1.0
    a = tl.load(parts + at, mask=inside, other=other)
    b = tl.load(others + at, mask=inside, other=0)
    a, b = join(a, b, OP)
    where = tl.reshape(down(k, near, os, K2), [BK])
    _store(out, valid, first, second, number, where, kept, a, b, tl.sum(n, 1), OP, SAVE)


def serves(
    op: str, data: Tensor, mask: Tensor, _: Any, dims: Dims, keepdim: bool, dtype: Any = None, *__: Any
) -> str | None:
    """Why no kernel reduces this; None where one does."""
    if found := layout.refuses(data, mask):
        return found
    if dtype is torch.float64 and data.dtype is not dtype:  # it would be added up in float32
        return "a result of float64 of shorter numbers"
    if dtype is not None and dtype not in layout.FLOATS:
        return f"a result of {str(dtype).removeprefix('torch.')}"
    return "dimensions that do not lie as rows" if _table(data, mask, dims) is None else None


def _table(data: Tensor, mask: Tensor, dims: Dims) -> layout.Walk | None:
    """The walk over data, mask and result."""
    flags = layout.as_bytes(mask, data.shape)
    return layout.walk(data.shape, dims, data.stride(), flags.stride(), layout.result_strides(data.shape, dims))


def forward(
    op: str,
    data: Tensor,
    mask: Tensor,
    _: Any,
    dims: Dims,
    keepdim: bool,
    dtype: torch.dtype | None = None,
    *__: Any,
) -> tuple[Any, tuple[Tensor, ...]]:
    """The result, and what the gradient needs; ``dtype`` is the result's.

    Where it is valid is kept with the mask; a mean also returns it.
    """
    out, valid, saved = reduce(op, data, mask, dims, dtype)
    if not keepdim:
        out, valid = out.squeeze(dims), valid.squeeze(dims)
    known.keep_any(mask, dims, keepdim, valid)
    return (out, valid) if op == "mean" else out, saved


def serves_logical(op: str, data: Tensor, mask: Tensor, dim: Any, keepdim: bool) -> str | None:
    """The same of any, all and count_nonzero."""
    found = None if data.dtype in _WHOLE and data.numel() else layout.refuses(data, mask)
    if found:
        return found
    dims = shapes.canonical_dims(dim, data.dim())
    return "dimensions that do not lie as rows" if _table(data, mask, dims) is None else None


def logical(op: str, data: Tensor, mask: Tensor, dim: Any, keepdim: bool) -> tuple[Tensor, tuple[()]]:
    """any, all and count_nonzero."""
    data = data.view(torch.uint8) if data.dtype is torch.bool else data
    dtype = torch.int64 if op == "count_nonzero" else torch.bool
    return forward(op, data, mask, None, shapes.canonical_dims(dim, data.dim()), keepdim, dtype)[0], ()


def reduce(
    op: str, data: Tensor, mask: Tensor, dims: Dims, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """The result and where it is valid, of size 1 along ``dims``, and what the gradient needs."""
    shape, table = data.shape, _table(data, mask, dims)
    assert table is not None
    sizes, acc, small = layout.blocks(table), layout.wide_dtype(data.dtype), layout.kept_shape(data.shape, dims)
    out = data.new_empty(small, dtype=dtype or data.dtype)
    valid = data.new_empty(small, dtype=torch.bool)
    save, split = op in KEPT, sizes.splits > 1
    found = _stats(op, acc, small if save else (0,), data)
    parts = _stats(op, acc, (sizes.splits, table.kept), data) if split else found
    results = out.view(torch.uint8) if out.dtype is torch.bool else out, valid.view(torch.uint8)
    how = {"OP": op, "BK": sizes.kept, "K2": table.two[0], "WIDE": sizes.wide, "SAVE": save}
    _reduce[(sizes.programs, sizes.splits)](
        data, layout.as_bytes(mask, shape), *results, *parts, table.kept, table.reduced, sizes.steps,
        table.near, *table.strides, **how, BR=sizes.reduced, R2=table.two[1], SPLIT=split, ACC=TL[acc],
        num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    if split:
        high = layout.join_rows(sizes, table)
        _join[(-(-table.kept // high),)](
            *parts, *results, *found, table.kept, sizes.splits, table.near, table.strides[2], **how | {"BK": high},
            BS=layout.power_of_two(sizes.splits),
        )  # fmt: skip
    return out, valid, (data.new_empty(0) if op in LINEAR else data, mask, *found)


def _stats(op: str, acc: torch.dtype, shape: Any, data: Tensor) -> tuple[Tensor, ...]:
    second = acc if op == "logsumexp" else torch.int64
    return tuple(data.new_empty(shape, dtype=kind) for kind in (acc, second, torch.int64))
