"""Fills: a constant written where an entry is masked, whatever lies there.  What is valid is neither read nor written.

They work on bits, so any dtype of up to eight bytes is served.
"""

import triton
import triton.language as tl
from torch import Tensor

from ...fill import BITS, fill_bits
from . import layout
from .tiles import indices, load_mask, places


@triton.jit
def _fill(x, m, value, R, steps, near, xs, ms, BR: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr):
    for i in range(steps):
        r = indices(tl.program_id(0) * steps + i, BR, WIDE)
        inside = r < R
        v = load_mask(m, places(r, near[1], ms[2], ms[3], R2), inside)
        constant = tl.full([BR], value, x.dtype.element_ty)
        tl.store(x + places(r, near[1], xs[2], xs[3], R2), constant, mask=inside & (v == 0))


def fill_(data: Tensor, mask: Tensor, fill: complex) -> bool:
    """Writes ``fill`` into ``data`` where ``mask``, which broadcasts, is False, and says whether it did.

    Autograd is not told.
    """
    if data.dtype.itemsize not in BITS or data.dtype.is_complex or data.numel() == 0:
        return False
    flags, dims = layout.as_bytes(mask, data.shape), tuple(range(data.dim()))
    table = layout.walk(data.shape, dims, data.stride(), flags.stride())
    if table is None:
        return False
    sizes = layout.blocks(table)
    bits = data.view(BITS[data.dtype.itemsize])
    _fill[(sizes.splits,)](
        bits, flags, fill_bits(fill, data.dtype), table.reduced, sizes.steps, table.near, *table.strides,
        BR=sizes.reduced, R2=table.two[1], WIDE=sizes.wide, num_warps=layout.warps(sizes.reduced),
    )  # fmt: skip
    return True
