"""Norm layers of sparse tensors: the statistics of a group are those of its stored-and-valid values.

One formula serves them all, as one group number per value does: layer and RMS normalization group by the leading
dimensions, batch normalization by the channel, instance normalization by row and channel, group normalization by row
and run of channels.  The result has the pattern of the input, and parameters are read at its positions.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import expect_shape
from ..kernels.precision import rounds_noticeably
from ..layouts.positions import find
from .along import group_values, scatter_back
from .reduction import StoredValid, take_valid
from .slices import sum_slices


class Statistics(NamedTuple):
    """What is known of the groups that store something; of half precision in float32."""

    mean: Tensor
    variance: Tensor  #: divided by n
    number: Tensor  #: n
    keys: Tensor  #: which group it is: its row-major position along the kept dimensions


def standardize(
    x: Tensor,
    mask: Tensor | None,
    kept: Mapping[int, int],
    extent: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    centred: bool = True,
) -> tuple[Tensor, Statistics]:
    """``(v - mean) / sqrt(variance + eps) * weight + bias``, the statistics being those of the group of each value.

    A group is a position along the ``kept`` dimensions, of which ``kept[d]`` neighbours are one.  ``weight`` and
    ``bias`` extend over the dimensions ``extent``.  ``centred=False`` leaves the mean out: the root mean square.
    """
    t = take_valid(x, mask)
    o = group_values(t, kept)
    v = t.values.float() if rounds_noticeably(t.values.dtype) else t.values
    number = o.slices.stored.to(v.dtype)
    divisor = number.clamp_min(1)
    mean = sum_slices(v, o.slices) / divisor if centred else torch.zeros_like(divisor)
    centre = v - o.slices.to_values(mean)
    if centred:  # a rounded mean leaves a rest, whose derivative is 0
        centre = centre - o.slices.to_values(sum_slices(centre.detach(), o.slices) / divisor)
    variance = sum_slices(centre * centre, o.slices) / divisor
    rstd = torch.where(number == 0, 1, variance + eps).rsqrt()
    result = _scale_and_shift(t, centre * o.slices.to_values(rstd), extent, weight, bias)
    return result, Statistics(mean.detach(), variance.detach(), number, o.keys)


def normalize_by(
    x: Tensor,
    mask: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """The same with given statistics of each channel (dimension 1)."""
    t = take_valid(x, mask)
    channel = t.coordinate(1)
    return _scale_and_shift(t, (t.values - mean[channel]) * (variance + eps).rsqrt()[channel], (1,), weight, bias)


def _scale_and_shift(
    t: StoredValid, v: Tensor, extent: Sequence[int], weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    place = t.position(extent)
    for name, parameter, apply in (("weight", weight, torch.mul), ("bias", bias, torch.add)):
        if parameter is not None:
            expect_shape(name, parameter, [t.x.shape[d] for d in extent])
            v = apply(v, parameter.reshape(-1)[place])
    return scatter_back(t, v.to(t.values.dtype), 0)


def local_response_norm(x: Tensor, mask: Tensor | None, size: int, alpha: float, beta: float, k: float) -> Tensor:
    """``v / (k + alpha * m) ** beta``, with m the mean square of ``size`` neighbouring channels, 0 if not stored.

    The neighbours are looked up in the sorted positions of the stored values.
    """
    t = take_valid(x, mask)
    place, channel = t.position(range(x.dim())), t.coordinate(1)
    table, order = place.sort()
    squares = (t.values * t.values)[order]
    near = torch.zeros_like(t.values)
    step = x.shape[2:].numel()
    for shift in range(-(size // 2), (size - 1) // 2 + 1):
        there, found = find(place + shift * step, table)
        found &= (channel + shift >= 0) & (channel + shift < x.shape[1])
        near = near + torch.where(found, squares[there], 0)
    return scatter_back(t, t.values / (k + alpha * (near / size)) ** beta, 0)
