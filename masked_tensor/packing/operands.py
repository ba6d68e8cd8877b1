"""Operands brought to the same rows: what an elementwise op needs before its values can meet."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..op import NoForm
from ..pair import Pair
from .grid import same
from .packed import Frame, Packed, at_rows, canonical, gathered, made, spread
from .views import expand


def aligned(args: Sequence[Any]) -> tuple[Packed, list[Any]]:
    """The leading packed operand, wide enough for all, and every operand's values at its rows.

    Numbers and 0-d tensors stay as they are, so that they promote as torch does.  A valid stored value is a plain one:
    a pair comes back only for what has holes within the rows.
    """
    lead = next(a for a in args if type(a) is Packed)
    others = [a for a in args if a is not lead and type(a) is Packed]
    wide = [tuple(a.data.shape if isinstance(a, Pair) else a.shape) for a in args if _dims(a)]
    if any(shape != lead.shape for shape in wide):
        lead = expand(lead, _broadcast(wide))
    elif all(o.order == lead.order and o.stored == lead.stored and same(o.rows, lead.rows) for o in others):
        return lead, [_at(a, lead) for a in args]
    if others:
        lead = canonical(lead)
    return lead, [_at(a, lead, True) for a in args]


def _dims(a: Any) -> bool:
    return type(a) is Packed or (type(a) is Pair and a.data.dim() > 0) or (isinstance(a, Tensor) and a.dim() > 0)


def _broadcast(wide: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return tuple(torch.broadcast_shapes(*wide))
    except RuntimeError as reason:
        raise NoForm from reason  # the strided rule says it in torch's own words


def _at(a: Any, lead: Packed, differs: bool = False) -> Any:
    if type(a) is Packed:
        if not differs:
            return a.operand()
        return matched(a, lead).operand()
    if type(a) is Pair:
        return gathered(a, lead).operand() if a.data.dim() > 0 else a
    return at_rows(a, lead) if isinstance(a, Tensor) and a.dim() > 0 else a


def matched(a: Packed, lead: Packed | Frame) -> Packed:
    """A packed tensor that broadcasts to the shape of ``lead``, on its rows and in its order."""
    if same(a.rows, lead.rows):
        if a.order == lead.order and a.stored == lead.stored:
            return a
        try:
            wide = canonical(expand(a, lead.shape))
        except NoForm:
            return gathered(spread(a), lead)
        if wide.order == lead.order and wide.stored == lead.stored:
            return wide
    return gathered(spread(a), lead)


def like(result: Any, lead: Packed) -> Any:
    """What an op made of aligned values, as packed tensors on the rows of ``lead``."""
    if isinstance(result, (tuple, list)):
        return tuple(like(r, lead) for r in result)
    if type(result) is Pair or isinstance(result, Tensor):
        data = result.data if isinstance(result, Pair) else result
        if data.shape != lead.values.shape:
            raise NoForm
        return made(result, lead)
    return result
