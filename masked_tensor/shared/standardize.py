"""Standardize: subtract the mean of the valid entries, divide by their standard deviation, scale and shift.

With sums over the n valid entries of a group, in two passes::

    mean = sum(x) / n,  variance = sum((x - mean) ** 2) / n,  rstd = 1 / sqrt(variance + eps)
    h = (x - mean) * rstd,  result = h * weight + bias

A rounded mean is a mean no more: 1e6 in float32 is off by up to 0.03.  Small float32 tensors are computed in float64,
others centre what is left once more.

One kernel serves every norm.  Its formula is as it stands above, in steps with finite derivatives whatever the
masked-out data are.  A group with nothing valid has mean 0 and divisor 1.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import kernels, masks, settings
from ..compat import is_readable_memory
from ..kernels import standardize_op
from ..kernels.precision import rounds_noticeably
from ..kernels.standardize_formula import formula
from ..pair import Pair, Payload
from ..select import zero_masked

Parameter = Pair | Tensor | None


class Statistics(NamedTuple):
    """What is known of the groups, of size 1 along the reduced dimensions, in the dtype that was computed in."""

    mean: Tensor
    variance: Tensor  #: divided by n; not differentiable
    rstd: Tensor
    number: Tensor  #: n


def standardize(
    x: Pair,
    dims: tuple[int, ...],
    eps: float,
    weight: Parameter = None,
    bias: Parameter = None,
    centred: bool = True,
) -> tuple[Pair, Statistics]:
    """The data standardized over ``dims``, scaled and shifted, with the statistics of the groups.

    ``weight`` and ``bias`` broadcast to the data's shape, see :func:`shaped`; a masked one masks what it would have
    scaled.  ``centred=False`` leaves the mean out: the root mean square.
    """
    parameters: list[Any] = [zero_masked(p) if type(p) is Pair else p for p in (weight, bias)]
    data, mean, variance, rstd, count = _run(x, parameters, dims, eps, centred)
    mask = x.mask
    for parameter in (weight, bias):
        if type(parameter) is Pair:
            mask = masks.logical_and(mask, masks.expand_to(parameter.mask, data.shape))
    payload = Payload.ZERO if mask is x.mask else Payload.ANY
    return Pair(data, mask, payload), Statistics(mean, variance, rstd, count)


def _run(x: Pair, parameters: list[Any], dims: tuple[int, ...], eps: float, centred: bool) -> tuple[Tensor, ...]:
    """Result, mean, variance, rstd and the number of valid entries."""
    large = type(size := x.data.numel()) is not int or size >= settings.FORMULA  # a graph shall serve all sizes
    dtype = _precision(x.data, centred, large)
    if large and standardize_op.is_supported(x.data):
        w, b = parameters
        return standardize_op.standardize(x.data, w, b, x.mask, x.payload, dims, eps, centred, dtype)
    count = masks.derive(x.mask, ("number", dims, dtype), lambda: masks.count(x.mask, dims, True).to(dtype))
    tensors = (x.data, *parameters, x.mask, count)
    return *kernels.run("standardize", formula, tensors, x.payload, dims, eps, centred), count


def _precision(data: Tensor, centred: bool, large: bool) -> torch.dtype:
    """The dtype to compute in, and to count in: of small float32 with a mean it is float64, of complex numbers real."""
    if data.is_complex() and not centred:
        return data.dtype.to_real()
    if rounds_noticeably(data.dtype):
        return torch.float32
    return (
        torch.float64
        if centred and not large and data.dtype is torch.float32 and is_readable_memory(data)
        else data.dtype
    )


def smallest_eps(dtype: torch.dtype) -> float:
    """The ``eps`` of a root mean square that is given none: of half precision that of float32."""
    return torch.finfo(torch.float32 if rounds_noticeably(dtype) else dtype).eps


def reshape_parameter(parameter: Parameter, shape: Sequence[int]) -> Parameter:
    """A parameter reshaped to broadcast against the data."""
    if type(parameter) is Pair:
        return Pair(parameter.data.reshape(shape), parameter.mask.reshape(shape), parameter.payload)
    return None if parameter is None else parameter.reshape(shape)
