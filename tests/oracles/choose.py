"""Choices, one entry after the other."""

import itertools
from typing import Any

import torch

from ..helpers.harness import Masked
from .pointwise import masked, operands


def where(op: Any, x: Any, condition: Any, other: Any) -> Any:
    """One entry after the other (the database puts the condition second)."""
    x, chosen, other = operands([v if isinstance(v, Masked) else torch.as_tensor(v) for v in (x, condition, other)])
    shape = torch.broadcast_shapes(chosen.data.shape, x.data.shape, other.data.shape)
    data = torch.zeros(shape, dtype=torch.result_type(x.data, other.data))
    valid = torch.zeros(shape, dtype=torch.bool)
    parts = [(v.data.expand(shape), v.mask.expand(shape)) for v in (chosen, x, other)]
    for place in itertools.product(*(range(n) for n in shape)):
        taken = parts[1] if parts[0][0][place] else parts[2]
        data[place], valid[place] = taken[0][place], parts[0][1][place] and taken[1][place]
    return Masked(data, valid)


def masked_fill(op: Any, x: Any, mask: Any, value: Any) -> Any:
    """One entry after the other: padding stays padding."""
    x, chosen, value = masked(x), masked(mask), masked(value if isinstance(value, Masked) else torch.as_tensor(value))
    shape = torch.broadcast_shapes(x.data.shape, chosen.data.shape)
    data, valid = x.data.expand(shape).clone(), x.mask.expand(shape).clone()
    for place in itertools.product(*(range(n) for n in shape)):
        if not chosen.mask.expand(shape)[place]:
            valid[place] = False
        elif chosen.data.expand(shape)[place]:
            data[place] = value.data
            valid[place] &= bool(value.mask)
    return Masked(data, valid)


ORACLES = {"where": where, "masked_fill": masked_fill}
