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
from .chunks import rounds
from .pair import Pair
from .select import cleared, select, zeroed

Parameter = Pair | Tensor | None


class Standard(NamedTuple):
    """Centred data, 0 under the mask, and the statistics of its groups (of size 1 along the reduced dimensions)."""

    centre: Tensor
    mean: Tensor
    variance: Tensor  #: divided by n
    rstd: Tensor  #: 1 / sqrt(variance + eps)
    number: Tensor  #: n, in the dtype of the data


def standardize(x: Pair, dims: tuple[int, ...], eps: float, centred: bool = True) -> Standard:
    """``(x - mean) / sqrt(variance + eps)`` over ``dims``, see :func:`scaled`; half precision is computed in float32.

    ``centred=False`` leaves the mean out: the root mean square.
    """
    data = zeroed(x)
    if rounds(data.dtype):
        data = data.float()
    count = masks.count(x.mask, dims, True).to(data.dtype)
    divisor = count.clamp_min(1)
    mean = data.sum(dims, True) / divisor if centred else torch.zeros_like(divisor)
    centre = select(data - mean, x.mask, 0) if centred else data
    variance = (centre * centre).sum(dims, True) / divisor
    rstd = torch.where(count == 0, 1, variance + eps).rsqrt()
    return Standard(centre, mean, variance, rstd, count)


def scaled(s: Standard, mask: Tensor, weight: Parameter, bias: Parameter, dtype: torch.dtype) -> Pair:
    """``centre * rstd * weight + bias`` in ``dtype``; a masked weight or bias masks what it would have scaled."""
    w, b = _values(weight), _values(bias)
    valid = mask
    for parameter in (weight, bias):
        if type(parameter) is Pair:
            valid = masks.both(valid, parameter.mask)
    factor = s.rstd if w is None else s.rstd * w
    centre = s.centre
    if factor.numel() * 2 <= centre.numel():
        data = centre * factor if b is None else torch.addcmul(b, centre, factor)
    else:  # a NaN of a group must not reach the weights of its masked entries
        data = cleared(centre * s.rstd, mask)
        data = data if w is None else data * w
        data = data if b is None else data + b
    return Pair(data.to(dtype), masks.fit(valid, data.shape))


def along(parameter: Parameter, shape: Sequence[int]) -> Parameter:
    """A parameter reshaped to broadcast against the data."""
    if type(parameter) is Pair:
        return Pair(parameter.data.reshape(shape), parameter.mask.reshape(shape), parameter.payload)
    return None if parameter is None else parameter.reshape(shape)  # type: ignore[union-attr]


def _values(parameter: Parameter) -> Tensor | None:
    return zeroed(parameter) if type(parameter) is Pair else parameter  # type: ignore[return-value]
