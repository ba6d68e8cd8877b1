"""Resampling: nearest moves the mask; linear and cubic renormalise their weights over the valid neighbours.

With a scale factor a row has the size it would have by itself; with ``align_corners``, positions run from its first
entry to its last.  An interpolated output is valid iff its nearest neighbour is.  Cubic kernels reach beyond a row's
end, where torch repeats the border: a row's border is its last valid entry.  ``grid_sample``: the output at a
masked coordinate is masked; zeros read outside an image with any valid entry (``padding_mode="zeros"``) are valid.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import errors, masks, pair
from ..compat import OpOverload
from ..layouts import meshes
from ..masks import sides
from ..op import Op
from ..pair import Pair, Payload
from ..select import zero_masked
from ..shared import windows
from ..shared.memory_format import stored_as
from ..shared.rows import ends, left

aten = torch.ops.aten
Operand = Pair | Tensor


def nearest(op: OpOverload, x: Pair, output_size: Sequence[int], *scales: float | None, dims: int, line: Any) -> Pair:
    """upsample_nearest and its pixel-centred variant; ``line``: the same in one dimension."""
    along = _left_dims(x, dims, scales, aligned=False)
    if along:

        def again(x: Pair) -> Pair:
            return nearest(op, x, output_size, *scales, dims=dims, line=line)

        return left.by_rows(x, dims, along, again, partial(_number, scales))
    data = op(x.data, output_size, *scales)
    mask, payload = masks.compact(x.mask), x.payload
    for i in range(dims):
        if not masks.is_constant(x.mask, i - dims):
            scale = _scale(scales, i)
            index = line(_positions(x, i - dims), [output_size[i]], scale).flatten().long()
            index = meshes.replicate_like(index, x.data)
            moved = mask.index_select(i - dims, index)
            if scale is None:
                mask = moved
            else:  # what lies beyond a row's own end may have been moved from a valid entry
                moved = moved & _outputs_within(mask, i - dims, output_size[i], scale)
                sides.note_as(moved, [i - dims], mask)
                mask, payload = moved, Payload.ANY
    return Pair(data, masks.expand_to(mask, data.shape), payload)


def _outputs_within(mask: Tensor, dim: int, size: int, scale: float) -> Tensor:
    """Which outputs a row enlarged on its own has: ``floor(n * scale)``, n up to its last valid entry."""
    _, last = ends.first_and_last(mask, dim)
    number = meshes.replicate_like(torch.arange(1, size + 1, device=mask.device), mask)
    return ends.reshape_along(number, dim, mask.dim()) <= _enlarged(last + 1, scale)


def _enlarged(steps: Tensor, scale: float) -> Tensor:
    """The size that torch gives rows of so many ``steps``."""
    return (steps.double() * scale).floor().long()


def _number(scales: Sequence[float | None], dim: int, steps: Tensor) -> Tensor:
    return _enlarged(steps, scales[dim] or 1.0)


def _left_dims(x: Pair, dims: int, scales: Sequence[float | None], aligned: bool) -> list[int]:
    """Along which dims rows are known to be padded on the left, and results do not begin at whole multiples."""
    apart = (i - dims for i, scale in enumerate(scales) if scale is not None and (aligned or scale % 1))
    return [dim for dim in apart if sides.is_left(x.mask, dim)]


def _positions(x: Pair, dim: int) -> Tensor:
    """0, 1, 2 ... as a one-line image, in the precision torch computes positions in."""
    dtype = torch.float64 if x.data.dtype is torch.float64 else torch.float32
    return torch.arange(x.data.shape[dim], dtype=dtype, device=x.data.device).view(1, 1, -1)


def _scale(scales: Sequence[float | None], dim: int) -> float | None:
    return scales[dim] if scales else None


def interpolate(
    op: OpOverload,
    x: Pair,
    output_size: Sequence[int],
    align_corners: bool,
    *scales: float | None,
    dims: int,
    cubic: bool = False,
    antialias: bool = False,
) -> Pair:
    """upsample_linear1d, bilinear2d, trilinear3d, bicubic2d and the antialiased ones."""
    if windows.is_constant(x.mask, dims):
        data = op(x.data, output_size, align_corners, *scales)
        return Pair(data, windows.narrow_windows(x.mask, dims).expand(data.shape))
    if not x.data.is_floating_point():
        return _of_bytes(op, x, output_size, align_corners, *scales, dims=dims, cubic=cubic, antialias=antialias)
    aligned = _is_aligned(align_corners, scales)
    if aligned and antialias:
        raise errors.UnsupportedOpError(
            "interpolate(scale_factor=, align_corners=True, antialias=True) of a padded batch takes values from places "
            "that depend on the padded size; give align_corners=False, or resample each row alone (x.unpad())"
        )
    along = _left_dims(x, dims, scales, aligned)
    if along:

        def again(x: Pair) -> Pair:
            return interpolate(op, x, output_size, align_corners, *scales, dims=dims, cubic=cubic, antialias=antialias)

        return left.by_rows(x, dims, along, again, partial(_number, scales))
    if aligned:
        return _between_corners(x, output_size, scales, dims, cubic)
    return _by_weight(op, x, output_size, align_corners, scales, dims, cubic)


def _by_weight(
    op: OpOverload, x: Pair, output_size: Sequence[int], align_corners: bool, scales: Sequence[float | None],
    dims: int, cubic: bool,
) -> Pair:  # fmt: skip
    """The mean of what is valid in each place, by the weights that the op gives; valid where its centre is."""
    values, present = zero_masked(x), windows.narrow_leading(x.mask, dims)
    valid, centre = present, values
    for i in range(dims):
        line = aten.upsample_linear1d(_positions(x, i - dims), [output_size[i]], align_corners, _scale(scales, i))
        index = (line.flatten() + 0.5).floor().long().clamp(max=x.data.shape[i - dims] - 1)
        index = meshes.replicate_like(index, x.data)
        valid = valid.index_select(i - dims, index)
        if cubic:
            centre = centre.index_select(i - dims, index)
            values, present = _extend_edges(values, present, i + x.data.dim() - dims)
    exact = torch.promote_types(x.data.dtype, torch.float32)
    with masks.no_autocast(x.data.device):
        weight = op(present.to(exact), output_size, align_corners, *scales)
    data = op(values, output_size, align_corners, *scales)
    valid = masks.expand_to(valid, data.shape)
    if scales:
        sides.note_as(valid, range(-dims, 0), x.mask)
    return Pair(_as_input(_renormalised(data, weight, centre if cubic else None), x), valid)


def _renormalised(data: Tensor, weight: Tensor, centre: Tensor | None) -> Tensor:
    """Sums over neighbours divided by the weight of the valid ones; ``centre``: the nearest, of cubic sums.

    Cubic weights may be negative: what remains can vanish, then the nearest neighbour stands for all.
    """
    safe = weight > (0.0 if centre is None else 0.1)
    data = data / torch.where(safe, weight, 1).to(data.dtype)
    return data if centre is None else torch.where(safe, data, centre)


def _is_aligned(align_corners: bool, scales: Sequence[float | None]) -> bool:
    """Whether positions depend on the size of a row, which is enlarged by a factor."""
    return align_corners and any(scale is not None for scale in scales)


def _between_corners(
    x: Pair, output_size: Sequence[int], scales: Sequence[float | None], dims: int, cubic: bool
) -> Pair:
    """With ``align_corners`` by a factor: from the first entry of each row to its last, as many as it has by itself.

    A row ends at its last step with a valid entry.
    """
    exact = torch.promote_types(x.data.dtype, torch.float32)
    values, present = zero_masked(x).to(exact), windows.narrow_leading(x.mask, dims)
    small, valid, centre, weight = masks.compact(x.mask), present, values, present.to(exact)
    for i, size in enumerate(output_size):
        dim, scale = i - dims, scales[i] or 1.0
        others = [d for d in range(-dims - 1, 0) if d != dim]
        if masks.is_constant(x.mask, dim):
            last = torch.full((1,) * small.dim(), x.data.shape[dim] - 1, device=small.device)
        else:
            last = ends.first_and_last(masks.any(small, others, keepdim=True), dim)[1].clamp(min=0)
        number = _enlarged(last + 1, scale)
        step = last.to(exact) / (number - 1).clamp(min=1) * (number > 1)
        place = ends.reshape_along(torch.arange(size, device=small.device), dim, small.dim())
        at = place * step
        near = torch.minimum((at + 0.5).floor().long(), last)
        valid = ends.gather_along(valid, valid.dim() + dim, near) & (place < number)
        centre = ends.gather_along(centre, centre.dim() + dim, near) if cubic else centre
        values, weight = (_weighted_taps(t, dim, at, last, cubic) for t in (values, weight))
    data = _renormalised(values, weight, centre if cubic else None).to(x.data.dtype)
    return Pair(_as_input(data, x), masks.expand_to(valid, data.shape))


def _weighted_taps(x: Tensor, dim: int, at: Tensor, last: Tensor, cubic: bool) -> Tensor:
    """The weighted sum of the 2 or 4 entries around each place ``at``; beyond the ends of a row its ends repeat."""
    below = at.floor()
    part = at - below
    weights = [1 - part, part]
    if cubic:
        weights = [_cubic(part + 1), _cubic(part), _cubic(1 - part), _cubic(2 - part)]
    terms = []
    for tap, weight in enumerate(weights, 1 - len(weights) // 2):
        source = torch.minimum(below.long() + tap, last).clamp(min=0)
        terms.append(ends.gather_along(x, x.dim() + dim, source) * weight)
    return sum(terms[1:], terms[0])


def _cubic(distance: Tensor) -> Tensor:
    """torch's weight of an entry at a ``distance`` of at most 2."""
    a, d = -0.75, distance
    return torch.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a)


def _as_input(data: Tensor, x: Pair) -> Tensor:
    """Channels last where the image is."""
    return stored_as(data, x.data)


def _of_bytes(
    op: OpOverload, x: Pair, output_size: Sequence[int], align_corners: bool, *scales: float | None, **said: Any
) -> Pair:
    """Images of uint8, which torch rounds: as it does where no neighbour is masked, else as float32 is rounded."""
    wide = interpolate(op, Pair(x.data.float(), x.mask), output_size, align_corners, *scales, **said)
    if _is_aligned(align_corners, scales):
        return Pair(_as_input(wide.data.round().clamp(0, 255).to(x.data.dtype), x), wide.mask)
    touched = op((~x.mask).float(), output_size, align_corners, *scales) != 0
    data = op(x.data, output_size, align_corners, *scales)
    data = torch.where(touched, wide.data.round().clamp(0, 255).to(data.dtype), data)
    return Pair(_as_input(data, x), wide.mask)


def _extend_edges(x: Tensor, mask: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Each row's first and last valid entry repeated beyond its ends."""
    first, last = ends.first_and_last(mask, dim)
    place = ends.reshape_along(torch.arange(x.shape[dim], device=x.device), dim, x.dim())
    source = torch.minimum(torch.maximum(place, first), last).clamp(0, x.shape[dim] - 1)
    return ends.gather_along(x, dim, source), ends.gather_along(mask, dim, source)


def grid_sample(
    op: OpOverload, x: Operand, grid: Operand, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Pair:
    """grid_sampler in two and three dimensions."""
    x, grid = pair.as_pair(x), pair.as_pair(grid)
    settings = (padding_mode, align_corners)
    at = guarded_grid = zero_masked(grid)
    known = masks.all(grid.mask, -1).unsqueeze(1)
    dims = grid.data.shape[-1]
    if windows.is_constant(x.mask, dims):
        data = op(zero_masked(x), guarded_grid, interpolation_mode, *settings)
        return Pair(
            data, masks.logical_and(windows.narrow_windows(x.mask, dims).expand(data.shape), known.expand(data.shape))
        )
    hidden = (~windows.narrow_leading(x.mask, dims)).expand(x.data.shape[0], -1, *x.data.shape[2:])
    masked = hidden.to(at.dtype)
    missing = op(masked, at, interpolation_mode, *settings)
    whole = op(torch.ones_like(masked[:, :1]), at, interpolation_mode, *settings)
    some = masks.any(windows.narrow_leading(x.mask, dims), tuple(range(2, 2 + dims)), True)
    valid = (op(masked, at.detach(), 1, *settings) < 0.5) & some
    present = whole - missing
    # Where nothing is missing the ratio is 1, even outside the input (whole = 0).
    touched = (missing != 0) & (present.abs() > (0.1 if interpolation_mode == 2 else 0.0))
    ratio = torch.where(touched, whole, 1) / torch.where(touched, present, 1)
    data = op(zero_masked(x), at, interpolation_mode, *settings) * ratio
    mask = masks.logical_and(valid.expand(data.shape), known.expand(data.shape))
    return Pair(data, mask)


def affine_grid(op: OpOverload, theta: Pair, size: Sequence[int], align_corners: bool) -> Pair:
    """affine_grid_generator: a coordinate is valid iff its whole row of ``theta`` is."""
    data = op(zero_masked(theta), size, align_corners)
    rows = masks.all(theta.mask, -1)
    return Pair(data, rows.view(rows.shape[0], *[1] * (data.dim() - 2), rows.shape[1]).expand(data.shape))


def by_factor(op: OpOverload, x: Pair, output_size: Sequence[int] | None, *rest: Any, rule: Any, **params: Any) -> Pair:
    """The overloads that take a size or scale factors (last argument)."""
    *settings, factors = rest
    asked, dims = output_size, params["dims"]
    if output_size is None:
        sizes = x.data.shape[-dims:]
        output_size = [math.floor(size * factor) for size, factor in zip(sizes, factors, strict=True)]

    def as_asked(x: Tensor, output_size: Sequence[int], *rest: Any) -> Tensor:
        """Compilers take this overload apart; of the other not all have a gradient at sizes that are free."""
        result: Tensor = op(x, asked, *settings, factors)
        return result

    plain = as_asked if rule is interpolate else op.overloadpacket.default
    result: Pair = rule(plain, x, output_size, *settings, *(factors or ()), **params)
    return result


def _upsample(name: str, rule: Any, **params: Any) -> list[Op]:
    return [
        Op(f"{name}.default", rule, params, generic=True),
        Op(f"{name}.vec", by_factor, {"rule": rule, **params}, generic=True),
    ]


OPS = [
    *(
        row
        for kind in ("upsample_nearest", "_upsample_nearest_exact")
        for dims in (1, 2, 3)
        for row in _upsample(f"{kind}{dims}d", nearest, dims=dims, line=getattr(aten, f"{kind}1d").default)
    ),
    *_upsample("upsample_linear1d", interpolate, dims=1),
    *_upsample("upsample_bilinear2d", interpolate, dims=2),
    *_upsample("upsample_trilinear3d", interpolate, dims=3),
    *_upsample("upsample_bicubic2d", interpolate, dims=2, cubic=True),
    *_upsample("_upsample_bilinear2d_aa", interpolate, dims=2, antialias=True),
    *_upsample("_upsample_bicubic2d_aa", interpolate, dims=2, cubic=True, antialias=True),
    Op("grid_sampler", grid_sample, generic=True),
    Op("grid_sampler_2d", grid_sample, generic=True),
    Op("grid_sampler_3d", grid_sample, generic=True),
    Op("affine_grid_generator", affine_grid, generic=True),
]
