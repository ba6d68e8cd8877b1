"""Fills: a constant where an entry is masked, in place or in other memory, whatever lies there.

In place, what is valid is neither read nor written.  Fills work on bits, so any dtype of up to eight bytes is served.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...fill import BITS, fill_bits
from . import layout
from .tiles import indices, load_mask, places


@triton.jit
def _fill(x, m, y, value, R, steps, near, xs, ms, ys, IN_PLACE: tl.constexpr, BR: tl.constexpr, R2: tl.constexpr,
          WIDE: tl.constexpr):  # fmt: skip
    for i in range(steps):
        r = indices(tl.program_id(0) * steps + i, BR, WIDE)
        inside = r < R
        v = load_mask(m, places(r, near[1], ms[2], ms[3], R2), inside)
        at = y + places(r, near[1], ys[2], ys[3], R2)
        constant = tl.full([BR], value, y.dtype.element_ty)
        if IN_PLACE:
            tl.store(at, constant, mask=inside & (v == 0))
        else:
            d = tl.load(x + places(r, near[1], xs[2], xs[3], R2), mask=v, other=0)
            tl.store(at, tl.where(v, d, constant), mask=inside)


def serves(data: Tensor, mask: Tensor, fill: complex) -> str | None:
    """Why no kernel serves; None where one does."""
    if data.dtype.itemsize not in BITS or data.dtype.is_complex:
        return f"{str(data.dtype).removeprefix('torch.')} data"
    if data.numel() == 0:
        return "no entries"
    if data.is_neg() or data.is_conj():
        return "a lazy negation"
    return "dimensions that do not lie as rows" if _table(data, torch.empty_like(data, device="meta")) is None else None


def forward(data: Tensor, mask: Tensor, fill: complex) -> tuple[Tensor, tuple[Tensor]]:
    """The data with ``fill`` where they are masked, in new memory."""
    result = torch.empty_like(data)
    _run(data, mask, result, fill)
    return result, (mask,)


def backward(saved: tuple[Tensor], grad: Tensor, fill: complex) -> tuple[Tensor, None]:
    """The gradient of the data, 0 where they are masked."""
    (mask,) = saved
    return forward(grad, mask, 0)[0] if serves(grad, mask, 0) is None else torch.where(mask, grad, 0), None


def fill_(data: Tensor, mask: Tensor, fill: complex) -> Tensor:
    """Writes ``fill`` into ``data`` where an entry is masked; autograd is not told."""
    _run(data, mask, data, fill)
    return data


def _run(data: Tensor, mask: Tensor, result: Tensor, fill: complex) -> None:
    wide, flags = BITS[data.dtype.itemsize], layout.as_bytes(mask, data.shape)
    table = _table(data, result, flags)
    if table is None:  # constant along a dimension between others
        flags = torch.empty_like(data, dtype=torch.uint8).copy_(flags)
        table = _table(data, result, flags)
    assert table is not None
    sizes = layout.blocks(table)
    bits = fill_bits(fill, data.dtype)
    _fill[(sizes.splits,)](
        data.view(wide), flags, result.view(wide), bits, table.reduced, sizes.steps, table.near, *table.strides,
        IN_PLACE=result is data, BR=sizes.reduced, R2=table.two[1], WIDE=sizes.wide,
        num_warps=layout.warps(sizes.reduced),
    )  # fmt: skip


def _table(data: Tensor, result: Tensor, *flags: Tensor) -> layout.Walk | None:
    """Of data, mask and result."""
    mask = (f.stride() for f in (*flags, data))
    return layout.walk(data.shape, tuple(range(data.dim())), data.stride(), next(mask), result.stride())
