"""Unfold and fold: windows as columns; a column is valid iff the core of its window is (see conv).

So ``unfold``, a matrix product and ``fold`` together do what a convolution does: the masked taps of a valid column are
0 and valid.  ``fold`` adds columns up, like a transposed convolution.
"""

from collections.abc import Sequence

from .. import masks
from ..compat import OpOverload
from ..op import Op
from ..pair import Pair, Payload
from ..select import zero_masked
from ..shared import windows
from ..shared.windows import Window, per_dim

Ints = Sequence[int]


def _frame(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> list[Window]:
    settings = zip(*(per_dim(s, 2) for s in (kernel, dilation, padding, stride)), strict=True)
    return [Window(k, s, p, p, d) for k, d, p, s in settings]


def _blocks(frame: Sequence[Window], sizes: Sequence[int]) -> list[int]:
    return [(size - w.span - 1) // w.stride + 1 for w, size in zip(frame, sizes, strict=True)]


def im2col(op: OpOverload, x: Pair, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Pair:
    """``(N, C, H, W)`` to ``(N, C * taps, columns)``."""
    frame, sizes = _frame(kernel, dilation, padding, stride), x.data.shape[-2:]
    data = op(zero_masked(x), kernel, dilation, padding, stride)
    blocks = _blocks(frame, sizes)
    mask = windows.valid_outputs(masks.compact(x.mask), frame, sizes, blocks)
    mask = mask.expand(*mask.shape[:-2], *blocks).flatten(-2) if mask.shape[-2:].numel() > 1 else mask.squeeze(-1)
    if mask.shape[-2] > 1:
        mask = mask.repeat_interleave(data.shape[-2] // mask.shape[-2], -2)
    return Pair(data, masks.expand_to(mask, data.shape), Payload.ANY)


def col2im(
    op: OpOverload, x: Pair, output_size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Pair:
    """``(N, C * taps, columns)`` to ``(N, C, H, W)``."""
    frame = _frame(kernel, dilation, padding, stride)
    data = op(zero_masked(x), output_size, kernel, dilation, padding, stride)
    mask = masks.compact(x.mask)
    if mask.shape[-2] > 1:
        channels = data.shape[-3]
        split = mask.reshape(*mask.shape[:-2], channels, mask.shape[-2] // channels, mask.shape[-1])
        mask = masks.any(split, -2)
    blocks = _blocks(frame, output_size)
    shape = blocks if mask.shape[-1] > 1 else [1, 1]
    mask = windows.valid_transposed(mask.reshape(*mask.shape[:-1], *shape), frame, [0, 0], blocks, output_size)
    return Pair(data, masks.expand_to(mask, data.shape))


OPS = [Op("im2col", im2col, generic=True), Op("col2im", col2im, generic=True)]
