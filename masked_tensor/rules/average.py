"""Average pooling: the plain op with 0 for the masked taps; an output is valid iff the core of its window is.

The divisor is the plain op's on the row without its padding: with ``count_include_pad=False`` or ``ceil_mode`` it
depends on where the row ends, which is at its last valid entry.  Under ``convolution_validity("any")`` it is the number
of valid taps.  Adaptive pooling is the mean of the valid entries of each region, valid iff there is any;
of an empty input what the plain op gives.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload
from ..op import Op
from ..packing.per_sequence import averaged
from ..pair import Pair
from ..select import finished, zeroed
from ..settings import current
from ..shared import extents, windows
from ..shared.windows import Window, each

Ints = int | Sequence[int]


def avg_pool(
    op: OpOverload,
    x: Pair,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *divisor_override: int | None,
    dims: int,
) -> Pair:
    """avg_pool1d, 2d, 3d."""
    kernel = each(kernel_size, dims)
    steps, pads = each(stride, dims) if stride else kernel, each(padding, dims)
    data = op(zeroed(x, inside=True), kernel, steps, pads, ceil_mode, count_include_pad, *divisor_override)
    frame = [Window(k, s, p, p, ceil=ceil_mode) for k, s, p in zip(kernel, steps, pads, strict=True)]
    sizes, outputs = x.data.shape[-dims:], data.shape[-dims:]
    mask = masks.fit(windows.valid(masks.compact(x.mask), frame, sizes, outputs), data.shape)
    by_valid = current().convolution == "any"
    fixed = divisor_override != () and divisor_override[0] is not None
    if not fixed and not windows.constant(x.mask, dims) and (by_valid or ceil_mode or not count_include_pad):
        small = windows.leading(x.mask, dims)
        whole = torch.ones(tuple(sizes), dtype=torch.bool, device=small.device)
        divisor = _taps(whole, frame, outputs, count_include_pad)
        if by_valid:
            wanted = _taps(small, frame, outputs, False)
        else:
            for dim in range(-dims, 0):
                small = extents.hull(small, dim)
            wanted = _taps(small, frame, outputs, count_include_pad)
        data = data * (divisor / wanted.clamp(min=1)).to(data.dtype)
    return finished(data, mask)


def _taps(inside: Tensor, frame: Sequence[Window], outputs: Sequence[int], with_padding: bool) -> Tensor:
    """How many taps of each window lie inside, or on the padding around what is inside."""
    first = inside.dim() - len(frame)
    if with_padding:
        for i, window in enumerate(frame):
            reach = Window(2 * window.left + 1, 1, 2 * window.left)
            inside = windows.taps(inside, first + i, reach, inside.shape[first + i] + 2 * window.left, False)
        frame = [Window(window.kernel, window.stride) for window in frame]
    count = inside.to(torch.int32)
    for i, (window, number) in enumerate(zip(frame, outputs, strict=True)):
        count = windows.count(count, first + i, window, number)
    return count


def adaptive_avg_pool(op: OpOverload, x: Pair, output_size: Sequence[int], *, dims: int) -> Pair:
    """adaptive_avg_pool1d, 2d, 3d."""
    data = op(zeroed(x, inside=True), output_size)
    if x.data.numel() == 0:
        return pair.plain(data)
    if windows.constant(x.mask, dims):
        return finished(data, windows.first(x.mask, dims).expand(data.shape))
    exact = torch.promote_types(data.dtype, torch.float32)
    with masks.exactly(data.device):
        fraction = op(windows.leading(x.mask, dims).to(exact), output_size)
    mask = fraction > 0
    mean = data.to(exact) / torch.where(mask, fraction, 1)
    return finished(mean.to(data.dtype), masks.fit(mask, data.shape))


ROWS = [
    *(Op(f"avg_pool{dims}d", avg_pool, {"dims": dims}, generic=True) for dims in (1, 2, 3)),
    Op("adaptive_avg_pool1d", adaptive_avg_pool, {"dims": 1}, generic=True, rows=averaged),
    *(Op(f"adaptive_avg_pool{dims}d", adaptive_avg_pool, {"dims": dims}, generic=True) for dims in (2, 3)),
    *(Op(f"_adaptive_avg_pool{dims}d", adaptive_avg_pool, {"dims": dims}, generic=True) for dims in (2, 3)),
]
