"""Max pooling: the largest valid tap; an output is valid iff the core of its window is (see conv).

In adaptive and fractional pooling, whose regions depend on the size, it is valid iff any tap is.  An index never names
a masked-out position where its output is valid.  Unpooling writes only valid entries; an output belongs to the
input at the same relative position, and is valid where a valid entry was written.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import kernels, masks, pair
from ..compat import OpOverload
from ..kernels.identity import identity
from ..op import Op
from ..pair import Pair, Payload
from ..select import fill_masked, select, zero_masked, zeroed_result
from ..shared import windows
from ..shared.memory_format import make_dense, suggest_format
from ..shared.rows import left
from ..shared.windows import Window, per_dim

Ints = int | Sequence[int]


def fill_masked_taps(x: Pair, dims: int) -> Tensor:
    """The data with the masked taps out of the race; a mask that is constant over the window needs nothing."""
    if windows.is_constant(x.mask, dims):
        return x.data
    if suggest_format(x.data if dims > 1 else x.data.unsqueeze(-2)) is torch.contiguous_format:
        x = make_dense(x)  # what is filled may have other strides where a size is 1
    return fill_masked(x, identity("max", x.data.dtype))


def max_pool(
    op: OpOverload,
    x: Pair,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    dims: int,
) -> Any:
    """max_pool1d, 2d, 3d, with or without indices."""
    kernel = per_dim(kernel_size, dims)
    settings = [kernel, per_dim(stride, dims) if stride else kernel, per_dim(padding, dims), per_dim(dilation, dims)]
    frame = [Window(k, s, p, p, d, ceil_mode) for k, s, p, d in zip(*settings, strict=False)]  # torch says if not
    along = windows.left_dims(x.mask, frame)
    if along:
        return _max_pool_left(op, x, frame, along, (*settings, ceil_mode))
    out: Any = kernels.run("max_pool", pool_filled, (x.data, x.mask), x.payload, op, dims, settings, ceil_mode)
    value = out[0] if isinstance(out, tuple) else out
    mask = windows.valid_outputs(masks.compact(x.mask), frame, x.data.shape[-dims:], value.shape[-dims:])
    mask = masks.expand_to(mask, value.shape)
    if not isinstance(out, tuple):
        return zeroed_result(value, mask)
    return Pair(value, mask), Pair(_indices(op, x, out[1], dims, *settings, ceil_mode), mask)


def pool_filled(
    data: Tensor, mask: Tensor, payload: Payload, op: OpOverload, dims: int, how: Sequence[Any], ceil_mode: bool
) -> Any:
    """The formula: torch's op."""
    return op(fill_masked_taps(Pair(data, mask, payload), dims), *how, ceil_mode)


def _max_pool_left(
    op: OpOverload, x: Pair, frame: Sequence[Window], along: Sequence[int], settings: Sequence[Any]
) -> Any:
    """For rows that are padded on the left: an index is the position of the value in ``x``."""
    dims, sizes, count = len(frame), x.data.shape, windows.counts(frame)
    starts = [left.first_steps(x.mask, dim, dims) for dim in along]
    own = [count(dim, sizes[dim] - start) for dim, start in zip(along, starts, strict=True)]
    for dim, start in zip(along, starts, strict=True):
        x = left.turn_pair(x, dim, start)
    out = max_pool(op, x, *settings, dims=dims)
    if not isinstance(out, tuple):
        return left.turn_back(out, along, own)
    index = out[1].data
    for dim, start in zip(along, starts, strict=True):
        inner = sizes[dim + 1 :].numel() if dim < -1 else 1
        place = index.div(inner, rounding_mode="floor") % sizes[dim]
        index = index + ((place + start) % sizes[dim] - place) * inner
    return tuple(left.turn_back(y, along, own) for y in (out[0], Pair(index, out[1].mask, out[1].payload)))


def fractional_max_pool(op: OpOverload, x: Pair | Tensor, *region: Any, dims: int) -> tuple[Pair, Pair]:
    """fractional_max_pool2d, 3d: a channel with a masked sample has unknown regions, so it is masked."""
    *sizes, samples = region
    if type(samples) is not Pair:
        return region_max_pool(op, pair.as_pair(x), *region, dims=dims)
    known = masks.all(samples.mask, -1).reshape(*samples.mask.shape[:2], *(1,) * dims)  # (N, C, dims) for (N, C, *size)
    value, index = region_max_pool(op, pair.as_pair(x), *sizes, zero_masked(samples), dims=dims)
    known = masks.expand_to(known if value.data.dim() == dims + 2 else known[0], value.data.shape)
    return Pair(value.data, masks.logical_and(value.mask, known)), Pair(
        index.data, masks.logical_and(index.mask, known)
    )


def region_max_pool(op: OpOverload, x: Pair, *region: Any, dims: int) -> tuple[Pair, Pair]:
    """adaptive_max_pool1d, 2d, 3d, fractional_max_pool2d, 3d: regions that depend on the size, valid iff any tap is."""
    value, index = op(fill_masked_taps(x, dims), *region)
    if windows.is_constant(x.mask, dims):
        mask = windows.narrow_windows(x.mask, dims).expand(value.shape)
        return Pair(value, mask), Pair(index, mask)
    # Fractional regions are drawn per channel, in the dtype of the data.
    present = x.mask.to(x.data.dtype) if len(region) > 1 else windows.narrow_leading(x.mask, dims).to(torch.float32)
    first, place = op(present, *region)
    mask = masks.expand_to(first > 0.5, value.shape)
    return Pair(value, mask), Pair(_has_index(x.mask, index, place, dims), mask)


def _indices(op: OpOverload, x: Pair, index: Tensor, dims: int, *settings: Any) -> Tensor:
    """``index``, save where a valid lowest value has lost its tie to a masked tap: there the first valid tap."""
    if windows.is_constant(x.mask, dims):
        return index
    _, place = op(windows.narrow_leading(x.mask, dims).to(torch.float32), *settings)
    return _has_index(x.mask, index, place, dims)


def _has_index(mask: Tensor, index: Tensor, place: Tensor, dims: int) -> Tensor:
    flat = mask.flatten(-dims)
    named = flat.gather(-1, index.flatten(-dims).clamp(0, flat.shape[-1] - 1)).view(index.shape)
    return index + (place - index) * ~named  # ``where(named, index, place)``, in memory as ``index``


def max_pool_backward(op: OpOverload, gradient: Pair | Tensor, x: Pair | Tensor, *settings: Any) -> Pair:
    """The derivative of max_pool2d, for callers below autograd: 0 where the output or the input is masked."""
    gradient, x, indices = pair.as_pair(gradient), pair.as_pair(x), pair.as_pair(settings[-1])
    known = masks.logical_and(gradient.mask, indices.mask)
    data = op(select(gradient.data, known), x.data, *settings[:-1], select(indices.data, known))
    return Pair(select(data, x.mask), x.mask, Payload.ZERO)


def max_unpool(op: OpOverload, x: Pair | Tensor, indices: Pair | Tensor, output_size: list[int], *rest: Any) -> Pair:
    """max_unpool2d, max_unpool3d (``rest``: its stride and padding, which its kernel does not use)."""
    x, indices = pair.as_pair(x), pair.as_pair(indices)
    dims = len(output_size)
    if dims != (3 if rest else 2):
        op(x.data, indices.data, output_size, *rest)  # raises
    valid = masks.logical_and(x.mask, indices.mask)
    total = 1
    for size in output_size:
        total *= size
    place = select(indices.data, valid, total).flatten(-dims)  # masked entries write into a place that is cut off
    shape = (*x.data.shape[:-dims], total + 1)
    value = zero_masked(x).new_zeros(shape).scatter(-1, place, zero_masked(x).flatten(-dims))
    spread = _repeat_mask(valid, output_size).flatten(-dims)
    spread = torch.cat([spread, torch.zeros_like(spread[..., :1])], -1)
    # What is masked was written nowhere that can be trusted, so only valid entries have a say.
    mask = spread.scatter(-1, place, valid.flatten(-dims))[..., :-1].reshape(*shape[:-1], *output_size)
    form = suggest_format(x.data) if dims == 2 else torch.contiguous_format  # as torch's kernels do
    return Pair(value[..., :-1].reshape(mask.shape).contiguous(memory_format=form), mask.contiguous(), Payload.ANY)


def _repeat_mask(mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """``mask`` enlarged over its last dims by whole steps; what is left over belongs to the last entry."""
    for i, size in enumerate(sizes):
        dim = mask.dim() - len(sizes) + i
        step = max(1, size // max(1, mask.shape[dim]))
        owner = (torch.arange(size, device=mask.device) // step).clamp(max=mask.shape[dim] - 1)
        mask = mask.index_select(dim, owner)
    return mask


OPS = [
    *(
        Op(f"{name}{suffix}", max_pool, {"dims": dims}, generic=True)
        for dims, name in enumerate(("max_pool1d", "max_pool2d", "max_pool3d"), 1)
        for suffix in ("", "_with_indices")
    ),
    *(Op(f"adaptive_max_pool{dims}d", region_max_pool, {"dims": dims}, generic=True) for dims in (1, 2, 3)),
    *(Op(f"fractional_max_pool{dims}d", fractional_max_pool, {"dims": dims}, generic=True) for dims in (2, 3)),
    Op("max_pool2d_with_indices_backward", max_pool_backward, generic=True),
    Op("max_unpool2d", max_unpool, generic=True),
    Op("max_unpool3d", max_unpool, generic=True),
]
