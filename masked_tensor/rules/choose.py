"""Choosing: only the chosen operand decides validity, and ``masked_fill`` never turns padding into data.

``where(c, x, other)``: ``v = vc & (c ? vx : vo)``.  ``masked_fill(x, c, value)``: ``v = vx & vc``.  The branch not
taken never sends back NaN: torch's own derivatives of both ops select and do not multiply.
"""

import math
from typing import Any

import torch
from torch import Tensor

from .. import layouts, masks, pair, settings
from ..op import Op, ops
from ..packing import kinds as packed
from ..pair import Pair, Payload
from ..select import select
from ..sparse.rules import choose, on_values

Operand = Pair | Tensor | float | bool | complex


def where(condition: Pair | Tensor, x: Operand, other: Operand) -> Pair:
    """Accepts tensors and numbers (``where(condition)`` alone decomposes into ``nonzero``)."""
    c = pair.as_pair(condition)
    result = torch.where(c.data, _data(x), _data(other))
    first = c.data if c.data.dtype is torch.bool else c.data.bool()  # torch takes uint8, with a warning
    if type(x) is Pair and type(other) is Pair and masks.same_memory(x.mask, other.mask):
        chosen = x.mask
    elif type(x) is Pair and type(other) is Pair:
        taken, left = masks.compact(x.mask), masks.compact(other.mask)
        chosen = left ^ (first & (taken ^ left))
    elif type(x) is Pair:
        chosen = ~first | masks.compact(x.mask)
    elif type(other) is Pair:
        chosen = first | masks.compact(other.mask)
    else:
        chosen = c.mask
    mask = masks.expand_to(
        masks.logical_and(masks.expand_to(c.mask, result.shape), masks.expand_to(chosen, result.shape)), result.shape
    )
    return Pair(result, mask, _payload(x, other, mask))


def _data(x: Operand) -> Any:
    return x.data if type(x) is Pair else x


def _payload(x: Operand, other: Operand, mask: Tensor) -> Payload:
    """ZERO if both are 0 wherever the result is masked out: a static fact of their masks."""
    zero = all(
        (type(v) is Pair and v.payload is Payload.ZERO and masks.same_memory(v.mask, mask))
        or (isinstance(v, int | float) and v == 0)
        for v in (x, other)
    )
    return Payload.ZERO if zero else Payload.ANY


def masked_fill(x: Pair | Tensor, mask: Pair | Tensor, value: Operand | Tensor) -> Pair:
    """Writes ``value`` where ``mask`` is True; a masked ``value`` masks what it fills."""
    x, chosen = pair.as_pair(x), pair.data_of(mask)
    valid = masks.logical_and(x.mask, mask.mask) if type(mask) is Pair else x.mask
    if type(value) is Pair:
        valid = masks.logical_and(valid, ~chosen | value.mask)
        value = number_of(value, x.data.dtype)
    result = with_value(x.data, chosen, value)
    keeps = x.payload is Payload.ZERO and valid is x.mask and not isinstance(value, Tensor) and value == 0
    return Pair(result, masks.expand_to(valid, result.shape), Payload.ZERO if keeps else Payload.ANY)


def number_of(value: Pair, dtype: torch.dtype) -> Tensor:
    """The data of a 0-d ``value`` that torch converts to ``dtype`` as a number: 0 if masked, as garbage may not fit."""
    if value.data.dtype is dtype or value.data.dim():
        return value.data
    return torch.where(value.mask, value.data, torch.zeros_like(value.data))


def with_value(data: Tensor, chosen: Tensor, value: Any) -> Tensor:
    """``torch.masked_fill`` on plain tensors; large data is selected on its bits."""
    known = type(size := data.numel()) is int  # a graph shall serve all sizes
    if known and size >= settings.SMALL_OTHER and data.is_floating_point() and _fits(value, data.dtype):
        shape = torch.broadcast_shapes(data.shape, chosen.shape)
        return select(data.expand(shape), ~chosen, value)
    return torch.masked_fill(data, chosen, value)


def _fits(value: Any, dtype: torch.dtype) -> bool:
    """Whether the number surely fits the dtype; the others are left to torch to judge."""
    if not isinstance(value, int | float):
        return False
    return abs(value) <= torch.finfo(dtype).max or value in (math.inf, -math.inf) or value != value


def without_masked(index: Pair | Tensor) -> Tensor:
    """An integer or boolean index without masked-out data: 0 or False where it is masked out."""
    return select(index.data, index.mask, 0) if type(index) is Pair else index


def known_true(condition: Pair | Tensor) -> Tensor:
    """Where a condition is valid and True, for a plain target, which holds no mask."""
    if type(condition) is Pair and layouts.is_sparse(condition.data):
        return layouts.to_dense(condition).data
    return without_masked(condition)


#: From torch 2.14 on ``x[condition] = number`` is a ``masked_fill_``, and nothing tells the two apart.
_CONDITIONS = known_true if torch.__version__ >= "2.14" else None

OPS = [
    *ops("where.self where.ScalarSelf where.ScalarOther where.Scalar", where, sparse=choose, packed=packed.choose),
    Op("masked_fill", masked_fill, sparse=on_values, packed=packed.elementwise, conditions=_CONDITIONS),
]
