"""Average pooling: the plain op with 0 for the masked taps; an output is valid iff the core of its window is.

The divisor is the one that the plain op has for the row without its padding: with ``count_include_pad=False`` or
``ceil_mode`` it depends on where the row ends, which is at its last valid entry.  Under ``meaning(convolution="any")``
it is the number of valid taps.  Adaptive pooling is the mean of the valid entries of each region, valid iff there is
any; an empty input has the plain result.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload
from ..op import Op
from ..packing.per_sequence import average_pool
from ..pair import Pair
from ..select import zero_masked, zeroed_result
from ..settings import current
from ..shared import windows
from ..shared.rows import ends, left
from ..shared.windows import Window, per_dim

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
    kernel = per_dim(kernel_size, dims)
    steps, pads = per_dim(stride, dims) if stride else kernel, per_dim(padding, dims)
    frame = [
        Window(k, s, p, p, ceil=ceil_mode) for k, s, p in zip(kernel, steps, pads, strict=False)
    ]  # torch says if not
    along = windows.left_dims(x.mask, frame)
    if along:
        rest: tuple[Any, ...] = (kernel, steps, pads, ceil_mode, count_include_pad, *divisor_override)
        return left.by_rows(x, dims, along, lambda x: avg_pool(op, x, *rest, dims=dims), windows.counts(frame))
    data = op(zero_masked(x, inside=True), kernel, steps, pads, ceil_mode, count_include_pad, *divisor_override)
    sizes, outputs = x.data.shape[-dims:], data.shape[-dims:]
    mask = masks.expand_to(windows.valid_outputs(masks.compact(x.mask), frame, sizes, outputs), data.shape)
    by_valid = current().convolution == "any"
    fixed = divisor_override != () and divisor_override[0] is not None
    if not fixed and not windows.is_constant(x.mask, dims) and (by_valid or ceil_mode or not count_include_pad):
        small = windows.narrow_leading(x.mask, dims)
        whole = torch.ones(tuple(sizes), dtype=torch.bool, device=small.device)
        divisor = _taps(whole, frame, outputs, count_include_pad)
        if by_valid:
            wanted = _taps(small, frame, outputs, False)
        else:
            for dim in range(-dims, 0):
                small = ends.fill_gaps(small, dim)
            wanted = _taps(small, frame, outputs, count_include_pad)
        data = data * (divisor / wanted.clamp(min=1)).to(data.dtype)
    return zeroed_result(data, mask)


def _taps(inside: Tensor, frame: Sequence[Window], outputs: Sequence[int], with_padding: bool) -> Tensor:
    """How many taps of each window lie inside, or on the padding around what is inside."""
    first = inside.dim() - len(frame)
    if with_padding:
        for i, window in enumerate(frame):
            reach = Window(2 * window.left + 1, 1, 2 * window.left)
            inside = windows.tap_outputs(inside, first + i, reach, inside.shape[first + i] + 2 * window.left, False)
        frame = [Window(window.kernel, window.stride) for window in frame]
    count = inside.to(torch.int32)
    for i, (window, number) in enumerate(zip(frame, outputs, strict=True)):
        count = windows.count_taps(count, first + i, window, number)
    return count


def adaptive_avg_pool(op: OpOverload, x: Pair, output_size: Sequence[int], *, dims: int) -> Pair:
    """adaptive_avg_pool1d, 2d, 3d."""
    data = op(zero_masked(x, inside=True), output_size)
    if x.data.numel() == 0:
        return pair.plain_pair(data)
    if windows.is_constant(x.mask, dims):
        return zeroed_result(data, windows.narrow_windows(x.mask, dims).expand(data.shape))
    exact = torch.promote_types(data.dtype, torch.float32)
    with masks.no_autocast(data.device):
        fraction = op(windows.narrow_leading(x.mask, dims).to(exact), output_size)
    mask = fraction > 0
    mean = data.to(exact) / torch.where(mask, fraction, 1)
    return zeroed_result(mean.to(data.dtype), masks.expand_to(mask, data.shape))


OPS = [
    *(Op(f"avg_pool{dims}d", avg_pool, {"dims": dims}, generic=True) for dims in (1, 2, 3)),
    Op("adaptive_avg_pool1d", adaptive_avg_pool, {"dims": 1}, generic=True, packed=average_pool),
    *(Op(f"adaptive_avg_pool{dims}d", adaptive_avg_pool, {"dims": dims}, generic=True) for dims in (2, 3)),
    *(Op(f"_adaptive_avg_pool{dims}d", adaptive_avg_pool, {"dims": dims}, generic=True) for dims in (2, 3)),
]
