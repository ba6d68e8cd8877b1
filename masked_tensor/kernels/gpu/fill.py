"""Fills: a constant where an entry is masked; its data is not read, and no tensor holds the constant.

In place what is valid is neither read nor written.

They work on bits, so any dtype of up to eight bytes is served.
"""

import triton
import triton.language as tl
from torch import Tensor

from ...fill import BITS, fill_bits
from . import layout
from .tiles import indices, load_mask, places


@triton.jit
def _fill(
    x, m, out, value, R, steps, near, xs, ms, os, APART: tl.constexpr, BR: tl.constexpr, R2: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    for i in range(steps):
        r = indices(tl.program_id(0) * steps + i, BR, WIDE)
        inside = r < R
        v = load_mask(m, places(r, near[1], ms[2], ms[3], R2), inside)
        at = places(r, near[1], os[2], os[3], R2)
        constant = tl.full([BR], value, out.dtype.element_ty)
        if APART:
            d = tl.load(x + places(r, near[1], xs[2], xs[3], R2), mask=v, other=0)
            tl.store(out + at, tl.where(v, d, constant), mask=inside)
        else:
            tl.store(out + at, constant, mask=inside & (v == 0))


def fill_(data: Tensor, mask: Tensor, fill: complex, out: Tensor) -> bool:
    """Writes ``data``, with ``fill`` where ``mask``, which broadcasts, is False, into ``out``, and says whether it did.

    ``out`` may be the data: then the constant alone is written.  Autograd is not told.
    """
    if data.dtype.itemsize not in BITS or data.dtype.is_complex or data.numel() == 0:
        return False
    flags, dims = layout.as_bytes(mask, data.shape), tuple(range(data.dim()))
    table = layout.walk(data.shape, dims, data.stride(), flags.stride(), out.stride())
    if table is None:
        return False
    sizes, kind = layout.blocks(table), BITS[data.dtype.itemsize]
    _fill[(sizes.splits,)](
        data.view(kind), flags, out.view(kind), fill_bits(fill, data.dtype), table.reduced, sizes.steps, table.near,
        *table.strides, APART=out is not data, BR=sizes.reduced, R2=table.two[1], WIDE=sizes.wide,
        num_warps=layout.warps(sizes.reduced),
    )  # fmt: skip
    return True
