"""Standardizing step by step, in plain ops that have derivatives of every order; see standardize.py beside it."""

import torch
from torch import Tensor

from ..compat import in_transform, is_tracked
from ..pair import Pair, Payload
from ..select import select, zero_masked


def formula(
    data: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mask: Tensor,
    count: Tensor,
    payload: Payload,
    dims: tuple[int, ...],
    eps: float,
    centred: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Result, mean, variance, rstd, in steps that autograd records."""
    x = zero_masked(Pair(data, mask, payload)).to(torch.promote_types(data.dtype, count.dtype))
    number = count.clamp_min(1)
    mean = x.sum(dims, True) / number if centred else torch.zeros_like(number)
    centre = select(x - mean, mask, 0) if centred else x
    if centred and data.dtype is count.dtype is torch.float32:  # the rest is 0 but for rounding, and so its derivative
        rest = centre.detach().sum(dims, True) / number
        centre = select(centre - rest, mask, 0)
    variance = (centre * centre).sum(dims, True) / number
    rstd = torch.where(count == 0, 1, variance + eps).rsqrt()
    result = centre * rstd
    if weight is not None:
        if is_tracked(weight) or in_transform():  # a NaN of a group must not reach the weights of its masked entries
            result = select(result, mask, 0)
        result = result * weight
    result = result if bias is None else result + bias
    return select(result.to(data.dtype), mask, 0), mean, variance.detach(), rstd
