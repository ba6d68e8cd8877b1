"""The sum of squared distances from the mean, which variances are made of, and its gradient."""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .. import variance
from . import layout
from .moments import moments
from .reduce import TL, Dims
from .tiles import across, down, indices, load_mask, load_valid


@triton.jit
def _spread(
    g, x, m, dx, mean, rest, K, R, steps, near, xs, ms, os, gs, ds, BK: tl.constexpr, BR: tl.constexpr,
    K2: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    k = indices(tl.program_id(0), BK, WIDE)
    kept = (k < K)[:, None]
    own = down(k, near, os, K2)
    slope = tl.load(g + down(k, near, gs, K2), mask=kept, other=0).to(ACC) * 2
    centre = tl.load(mean + own, mask=kept, other=0)
    left = tl.load(rest + own, mask=kept, other=0)
    for i in range(steps):
        r = indices(tl.program_id(1) * steps + i, BR, WIDE)
        inside = kept & (r < R)[None, :]
        v = load_mask(m, down(k, near, ms, K2) + across(r, near, ms, R2), inside)
        d = load_valid(x, down(k, near, xs, K2) + across(r, near, xs, R2), v, ACC)
        back = tl.where(v, slope * (d - centre - left), 0.0)
        tl.store(dx + down(k, near, ds, K2) + across(r, near, ds, R2), back, mask=inside)


def serves(
    data: Tensor, mask: Tensor, number: Tensor, _: Any, dims: Dims, keep: bool, dtype: torch.dtype
) -> str | None:
    """Why no kernel serves; None where one does."""
    found = layout.refuses(data, mask)
    if found:
        return found
    if dtype is not layout.wide_dtype(data.dtype):
        return f"squares in {str(dtype).removeprefix('torch.')}"
    flags = layout.as_bytes(mask, data.shape)
    table = layout.walk(data.shape, dims, data.stride(), flags.stride(), layout.result_strides(data.shape, dims))
    return "dimensions that do not lie as rows" if table is None else None


def forward(
    data: Tensor, mask: Tensor, number: Tensor, _: Any, dims: Dims, keep: bool, dtype: torch.dtype
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The sum, and what the gradient needs; the number of valid entries is counted on the way."""
    mean, rest, squares, _counted = moments(data, mask, dims)
    return squares if keep else squares.squeeze(dims), (data, mask, number, mean, rest)


def backward(
    saved: Sequence[Tensor], grad: Tensor, _: Any, dims: Dims, keep: bool, dtype: torch.dtype
) -> tuple[Tensor, None, None]:
    """The gradient of the data."""
    data, mask, _number, mean, rest = saved
    shape, back = data.shape, torch.empty_like(data)
    g, flags = layout.restore(grad, dims, keep).expand(shape), layout.as_bytes(mask, shape)
    strides = data.stride(), flags.stride(), layout.result_strides(shape, dims)
    table = layout.walk(shape, dims, *strides, g.stride(), back.stride())
    if table is None:  # a gradient that lies in another way
        g = g.contiguous()
        table = layout.walk(shape, dims, *strides, g.stride(), back.stride())
    assert table is not None
    sizes = layout.blocks(table)
    _spread[(sizes.programs, sizes.splits)](
        g, data, flags, back, mean, rest, table.kept, table.reduced, sizes.steps, table.near, *table.strides,
        BK=sizes.kept, BR=sizes.reduced, K2=table.two[0], R2=table.two[1], WIDE=sizes.wide, ACC=TL[mean.dtype],
        num_warps=layout.warps(sizes.kept * sizes.reduced),
    )  # fmt: skip
    return back, None, None


def twice(saved: Sequence[Tensor], grad: Tensor, *options: Any) -> tuple[Tensor, None, None]:
    """The same in steps that can be recorded."""
    return variance.backward(saved[:3], grad, *options)
