"""Choosing: only the operand that is chosen has a say in validity, and ``masked_fill`` never turns padding into data.

``where(c, x, other)``: ``v = vc & (c ? vx : vo)``.  ``masked_fill(x, c, value)``: ``v = vx & vc``.  The branch not
taken never sends NaN back: torch's own derivatives of both select, they do not multiply.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..op import Op
from ..pair import Pair, Payload

Operand = Pair | Tensor | float | bool | complex


def where(condition: Pair | Tensor, x: Operand, other: Operand) -> Pair:
    """Tensors and numbers alike (``where(condition)`` alone decomposes into ``nonzero``)."""
    c = pair.of(condition)
    result = torch.where(c.data, _data(x), _data(other))
    if type(x) is Pair and type(other) is Pair and masks.same(x.mask, other.mask):
        chosen = x.mask
    elif type(x) is Pair and type(other) is Pair:
        taken, left = masks.compact(x.mask), masks.compact(other.mask)
        chosen = left ^ (c.data & (taken ^ left))
    elif type(x) is Pair:
        chosen = ~c.data | masks.compact(x.mask)
    elif type(other) is Pair:
        chosen = c.data | masks.compact(other.mask)
    else:
        chosen = c.mask
    mask = masks.fit(masks.both(masks.fit(c.mask, result.shape), masks.fit(chosen, result.shape)), result.shape)
    return Pair(result, mask, _payload(x, other, mask))


def _data(x: Operand) -> Any:
    return x.data if type(x) is Pair else x


def _payload(x: Operand, other: Operand, mask: Tensor) -> Payload:
    """ZERO if both are 0 wherever the result is masked out: a static fact of their masks."""
    zero = all(
        (type(v) is Pair and v.payload is Payload.ZERO and masks.same(v.mask, mask))
        or (isinstance(v, int | float) and v == 0)
        for v in (x, other)
    )
    return Payload.ZERO if zero else Payload.ANY


def masked_fill(x: Pair | Tensor, mask: Pair | Tensor, value: Pair | Tensor | float | bool | complex) -> Pair:
    """Writes ``value`` where ``mask`` is True; a masked ``value`` masks what it fills."""
    x, chosen = pair.of(x), pair.of(mask)
    valid = masks.both(x.mask, chosen.mask)
    if type(value) is Pair:
        valid = masks.both(valid, ~chosen.data | value.mask)
        value = value.data
    result = torch.masked_fill(x.data, chosen.data, value)  # type: ignore[arg-type]
    return Pair(result, masks.fit(valid, result.shape))


ROWS = [
    *(Op(f"where.{overload}", where) for overload in ("self", "ScalarSelf", "ScalarOther", "Scalar")),
    Op("masked_fill", masked_fill),
]
