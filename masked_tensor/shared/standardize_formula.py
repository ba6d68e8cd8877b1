"""Standardizing step by step, in plain ops that have derivatives of every order; see standardize.py."""

from collections.abc import Sequence
from typing import Any

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


def differentiate(
    given: Sequence[Any], settings: Sequence[Any], grads: Sequence[Tensor | None], needed: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """The gradients of data, weight and bias, those that are ``needed``, for those of the results.

    They can be differentiated again where gradients are recorded, and run under torch.func.
    """
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        made = zip(formula(*given, *settings), grads, strict=True)
        results = [(r, g) for r, g in made if r.requires_grad and g is not None]
    inputs = [t for t, wanted in zip(given, needed, strict=False) if wanted]
    outputs, slopes = zip(*results, strict=True)
    found = iter(torch.autograd.grad(outputs, inputs, slopes, create_graph=again, allow_unused=True))
    return tuple(next(found) if wanted else None for wanted in needed[:3])
