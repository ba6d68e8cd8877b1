"""Standardize: subtract the mean of the valid entries and divide by their standard deviation.

Two passes over zero-filled data: ``mean = sum(x) / n``, then ``variance = sum(d * d) / n`` with ``d = x - mean``, 0
under the mask.  Every step has a finite derivative whatever the payload; a group with nothing valid has mean 0 and
divisor 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from . import masks
from .pair import Pair
from .select import cleared, select, zeroed


class Standard(NamedTuple):
    """Standardized data and the statistics of its groups (of size 1 along the reduced dimensions)."""

    data: Tensor
    mean: Tensor
    variance: Tensor  #: divided by n
    rstd: Tensor  #: 1 / sqrt(variance + eps)
    number: Tensor  #: n, in the dtype of the data


def standardize(x: Pair, dims: tuple[int, ...], eps: float, centred: bool = True) -> Standard:
    """``(x - mean) / sqrt(variance + eps)`` over ``dims``; half precision is computed in float32.

    ``centred=False`` leaves the mean out: the root mean square.
    """
    data = zeroed(x)
    if data.dtype in (torch.float16, torch.bfloat16):
        data = data.float()
    count = masks.count(x.mask, dims, True).to(data.dtype)
    divisor = count.clamp_min(1)
    mean = data.sum(dims, True) / divisor if centred else torch.zeros_like(divisor)
    centre = select(data - mean, x.mask, 0) if centred else data
    variance = (centre * centre).sum(dims, True) / divisor
    rstd = torch.where(count == 0, 1, variance + eps).rsqrt()
    return Standard(cleared(centre * rstd, x.mask), mean, variance, rstd, count)


def scaled(
    data: Tensor, mask: Tensor, weight: Pair | Tensor | None, bias: Pair | Tensor | None, dtype: torch.dtype
) -> Pair:
    """``data * weight + bias`` in ``dtype``; a masked weight or bias masks what it would have scaled."""
    for parameter in (weight, bias):
        if type(parameter) is Pair:
            mask = masks.both(mask, parameter.mask)
    if weight is not None:
        data = data * (zeroed(weight) if type(weight) is Pair else weight)  # type: ignore[operator]
    if bias is not None:
        data = data + (zeroed(bias) if type(bias) is Pair else bias)  # type: ignore[operator]
    return Pair(data.to(dtype), masks.fit(mask, data.shape))


def along(parameter: Pair | Tensor | None, shape: Sequence[int]) -> Pair | Tensor | None:
    """A parameter reshaped to broadcast against the data."""
    if type(parameter) is Pair:
        return Pair(parameter.data.reshape(shape), parameter.mask.reshape(shape), parameter.payload)
    return None if parameter is None else parameter.reshape(shape)  # type: ignore[union-attr]


def whole(mask: Tensor, dims: Sequence[int]) -> bool:
    """Whether every group along ``dims`` is valid or masked as a whole (a static fact)."""
    return all(masks.constant(mask, dim) for dim in dims)
