"""Convolutions: masked taps count as 0, and an output is valid iff the core of its window is.

The core is what remains of a window after removing the padding from each side: a "same" convolution keeps
its mask, and a padded batch has exactly the outputs of its unpadded rows.  A position is valid if any channel of the
group is (every channel, under the rule "all" or if a product needs all of its terms).  A transposed convolution's
output belongs to the input
``max(0, ceil((o + 2 * padding - dilation * (kernel - 1) - output_padding) / stride))``.  With ``renormalize`` the sum
is divided by the valid fraction of the taps inside the input (partial convolution, Liu et al. 2018).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload
from ..op import Op
from ..packing import convolution as packed
from ..pair import Pair
from ..select import zero_masked, zeroed_result
from ..settings import current
from ..shared import product_validity, windows
from ..shared.memory_format import stored_as
from ..shared.rows import left
from ..shared.windows import Window, per_dim

Operand = Pair | Tensor
Ints = int | Sequence[int]
Plain = Callable[..., Tensor]


def _windows(weight: Operand, stride: Ints, padding: Ints | str, dilation: Ints) -> list[Window]:
    kernels = pair.data_of(weight).shape[2:]
    dims = len(kernels)
    result = []
    for i, (kernel, s, d) in enumerate(zip(kernels, per_dim(stride, dims), per_dim(dilation, dims), strict=True)):
        if isinstance(padding, str):
            total = d * (kernel - 1) if padding == "same" else 0
            left, right = total // 2, total - total // 2
        else:
            left = right = per_dim(padding, dims)[i]
        result.append(Window(kernel, s, left, right, d))
    return result


def conv(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    op: Plain,
) -> Pair:
    """conv1d, conv2d, conv3d.

    Where masked pixels are scattered, few windows have a whole core, and a patch convolution may have none:
    ``meaning(convolution="any", renormalize=True)`` takes what is valid in each window, and scales it up.
    """
    frame = _windows(weight, stride, padding, dilation)
    along = windows.left_dims(x.mask, frame) if type(x) is Pair else ()
    if along:
        again = partial(conv, weight=weight, bias=bias, stride=stride, padding=padding, dilation=dilation)
        return left.by_rows(
            pair.as_pair(x), len(frame), along, partial(again, groups=groups, op=op), windows.counts(frame)
        )
    apply = partial(_call, op, stride, padding, dilation, groups)

    def validity(mask: Tensor, sizes: Sequence[int], outputs: Sequence[int]) -> Tensor:
        return windows.valid_outputs(mask, frame, sizes, outputs)

    return _convolve(apply, validity, x, weight, bias, groups, transposed=False)


def _call(
    op: Plain, stride: Ints, padding: Any, dilation: Ints, groups: int, x: Tensor, weight: Tensor, *bias: Any
) -> Tensor:
    return op(x, weight, *(bias or (None,)), stride, padding, dilation, groups)


def conv_transpose(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    op: Plain,
) -> Pair:
    """conv_transpose1d, conv_transpose2d, conv_transpose3d."""
    frame = _windows(weight, stride, padding, dilation)
    extra = per_dim(output_padding, len(frame))
    along = windows.left_dims(x.mask, frame, every=True) if type(x) is Pair else ()
    if along:
        rest = (weight, bias, stride, padding, output_padding, groups, dilation)

        def again(x: Pair) -> Pair:
            return conv_transpose(x, *rest, op=op)

        return left.by_rows(
            pair.as_pair(x), len(frame), along, again, lambda dim, steps: frame[dim].reached(steps, extra[dim])
        )

    def apply(x: Tensor, weight: Tensor, *bias: Any) -> Tensor:
        return op(x, weight, *(bias or (None,)), stride, padding, output_padding, groups, dilation)

    def validity(mask: Tensor, sizes: Sequence[int], outputs: Sequence[int]) -> Tensor:
        return windows.valid_transposed(mask, frame, extra, sizes, outputs)

    return _convolve(apply, validity, x, weight, bias, groups, transposed=True)


def convolution(
    op: OpOverload,
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    *backend: bool,
) -> Pair:
    """The general form, into which the others decompose; ``backend``: the flags of ``_convolution``."""
    if transposed:

        def swapped(x: Tensor, w: Tensor, b: Any, s: Ints, p: Ints, extra: Ints, groups: int, d: Ints) -> Tensor:
            result: Tensor = op(x, w, b, s, p, d, True, extra, groups, *backend)
            return result

        return conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation, op=swapped)

    def direct(x: Tensor, w: Tensor, b: Any, s: Ints, p: Ints, d: Ints, groups: int) -> Tensor:
        result: Tensor = op(x, w, b, s, p, d, False, output_padding, groups, *backend)
        return result

    return conv(x, weight, bias, stride, padding, dilation, groups, op=direct)


def conv_tbc(x: Operand, weight: Operand, bias: Operand, pad: int = 0) -> Pair:
    """conv1d over ``(time, batch, channels)``."""
    x, kernel = (pair.moved(v, torch.permute, dims) for v, dims in ((x, (1, 2, 0)), (weight, (2, 1, 0))))
    return pair.moved(conv(x, kernel, bias, 1, pad, op=torch.conv1d), torch.permute, (2, 0, 1))


def _convolve(
    apply: Callable[..., Tensor],
    validity: Callable[[Tensor, Sequence[int], Sequence[int]], Tensor],
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    groups: int,
    transposed: bool,
) -> Pair:
    x, dims = pair.as_pair(x), pair.data_of(weight).dim() - 2
    ratio = _ratio(apply, x, weight, groups, transposed) if current().renormalize else None
    addend = None if bias is None else pair.data_of(bias)
    kernel = stored_as(zero_masked(weight), weight.data) if isinstance(weight, Pair) else weight
    data = apply(zero_masked(x, inside=True), kernel, *(() if ratio is not None else (addend,)))
    if ratio is not None:
        data = data * ratio.to(data.dtype)
        if addend is not None:
            data = data + addend.view(-1, *[1] * dims)
    mask = _positions(_as_batch(masks.compact(x.mask), dims), groups)
    mask = validity(mask, x.data.shape[-dims:], data.shape[-dims:])
    if mask.shape[1] > 1:
        mask = mask.repeat_interleave(data.shape[-dims - 1] // groups, 1)
    mask = mask if data.dim() == dims + 2 else mask.squeeze(0)
    mask = _with_parameters(masks.expand_to(mask, data.shape), weight, bias, dims, groups, transposed)
    return zeroed_result(data, mask)


def _as_batch(mask: Tensor, dims: int) -> Tensor:
    return mask if mask.dim() == dims + 2 else mask.unsqueeze(0)


def _positions(mask: Tensor, groups: int) -> Tensor:
    """``(N, 1 or groups, *size)``: which positions are valid, from the compact mask of ``(N, C, *size)``."""
    if mask.shape[1] <= 1:
        return mask
    join = masks.all if current().convolution == "all" else product_validity.is_present
    return join(mask.reshape(mask.shape[0], groups, mask.shape[1] // groups, *mask.shape[2:]), 2)


def _with_parameters(
    mask: Tensor, weight: Operand, bias: Operand | None, dims: int, groups: int, transposed: bool
) -> Tensor:
    """An output channel needs a valid weight and, if it has a bias, that too."""
    if mask.shape[-dims - 1] == 0:  # torch's result has no channels where the input has none
        return mask
    shape = (-1, *[1] * dims)
    if isinstance(weight, Pair):
        known = weight.mask
        if transposed:  # (C_in, C_out / groups, *kernel)
            split = known.reshape(groups, known.shape[0] // groups, *known.shape[1:])
            known = split.transpose(1, 2).flatten(0, 1)
        mask = masks.logical_and(mask, product_validity.is_present(known, tuple(range(1, known.dim()))).reshape(shape))
    if isinstance(bias, Pair):
        mask = masks.logical_and(mask, bias.mask.reshape(shape))
    return mask


def _ratio(apply: Callable[..., Tensor], x: Pair, weight: Operand, groups: int, transposed: bool) -> Tensor:
    """Taps inside the input over valid taps, for each window; 1 where none is valid."""
    with masks.no_autocast(x.data.device), torch.no_grad():
        present = x.mask.to(torch.float32)  # exact up to 2**24 taps
        kernel = torch.ones_like(pair.data_of(weight), dtype=torch.float32)
        inside = apply(torch.ones_like(present[:1] if x.data.dim() == kernel.dim() else present), kernel)
        seen = apply(present, kernel)
        return torch.where(seen > 0.5, inside / seen.clamp(min=1), 1.0)


OPS = [
    # "same" with an even kernel pads, then convolves
    Op("conv1d.padding", conv, {"op": torch.conv1d}, batched=True, packed=packed.conv1d),
    Op("conv2d.padding", conv, {"op": torch.conv2d}, batched=True),
    Op("conv3d.padding", conv, {"op": torch.conv3d}, batched=True),
    Op("conv1d", conv, {"op": torch.conv1d}, packed=packed.conv1d),
    Op("conv2d", conv, {"op": torch.conv2d}),
    Op("conv3d", conv, {"op": torch.conv3d}),
    Op("_convolution_mode", conv, {"op": torch.ops.aten._convolution_mode.default}),
    Op("conv_transpose1d", conv_transpose, {"op": torch.conv_transpose1d}),
    Op("conv_transpose2d.input", conv_transpose, {"op": torch.conv_transpose2d}),
    Op("conv_transpose3d.input", conv_transpose, {"op": torch.conv_transpose3d}),
    Op("convolution", convolution, generic=True),
    Op("_convolution", convolution, generic=True),
    Op("conv_tbc", conv_tbc),
]
