"""A copy that is masked where it is not finite: without a branch for each entry."""

from typing import Any

import torch
from torch import Tensor

from ... import settings
from ...compat import is_tracked
from ...fill import can_fill_bits
from ...pair import Pair, Payload
from ...select import select

_SIMPLE = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def is_finite(values: Tensor) -> Tensor:
    """``isfinite`` in two passes instead of four: what is not finite has no difference to itself."""
    return values - values == 0 if values.dtype in _SIMPLE else values.isfinite()


def finite_copy(data: Tensor) -> Pair:
    """A fresh pair, 0 where it is masked, laid out as ``data``.

    Of floats these are two passes without a branch: what was not replaced is what it was.
    """
    if data.dtype in _SIMPLE and not is_tracked(data) and can_fill_bits(data):
        copy = torch.nan_to_num(data, 0.0, 0.0, 0.0)
        return Pair(copy, copy == data, Payload.ZERO)
    valid = is_finite(data.detach())
    return Pair(select(data, valid, 0), valid, Payload.ZERO)


def of_array(values: Any) -> Pair:
    """The same of an array of numpy, of floats, row by row: in steps that stay in cache."""
    copy = torch.from_numpy(values.copy("C"))
    if copy.numel() <= settings.PIECE:
        return finite_copy(copy)
    valid = torch.empty(copy.shape, dtype=torch.bool)
    step = settings.PIECE
    spare = torch.empty(min(step, copy.numel()), dtype=copy.dtype)
    for part, seen in zip(copy.view(-1).split(step), valid.view(-1).split(step), strict=True):
        torch.eq(torch.sub(part, part, out=spare[: len(part)]), 0, out=seen)
        torch.nan_to_num(part, 0.0, 0.0, 0.0, out=part)
    return Pair(copy, valid, Payload.ZERO)
