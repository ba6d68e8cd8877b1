"""Operands brought to the same tokens: what an elementwise op needs before its values can meet."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from .. import shapes
from ..op import NoRule
from ..pair import Pair
from .dim_order import GRID
from .grid import Grid, same_places
from .packed import Frame, Packed, canonicalize, pack_onto, pack_values, unpack, values_at_tokens
from .views import expand


def align_operands(args: Sequence[Any]) -> tuple[Packed, list[Any]]:
    """The leading packed operand, wide enough for all, and every operand's values at its tokens.

    Numbers and 0-d tensors stay as they are, so that they promote as torch does.  A valid stored value is a plain one:
    a pair comes back only where entries within the tokens are masked.
    """
    lead = next(a for a in args if type(a) is Packed)
    others = [a for a in args if a is not lead and type(a) is Packed]
    if others:
        stored = [lead, *others]
        lead = lead_of(stored)
        others = [a for a in stored if a is not lead]
    wide = [tuple(a.data.shape if isinstance(a, Pair) else a.shape) for a in args if _dims(a)]
    if any(shape != lead.shape for shape in wide):
        lead = expand(lead, _broadcast(wide))
    elif all(o.order == lead.order and o.stored == lead.stored and same_places(o.grid, lead.grid) for o in others):
        return lead, [_values_at(a, lead) for a in args]
    if others:
        lead = canonicalize(lead)
    return lead, [_values_at(a, lead, True) for a in args]


def lead_of(operands: Sequence[Packed]) -> Packed:
    """The first operand that stores each step that exists, else the first; not one of a single step, which is repeated.

    Where two of them store other steps nobody knows which exist, in whatever order they are given.
    """
    lead = operands[0]
    if all(p.grid is lead.grid for p in operands):
        return lead
    said = [p for p in operands if p.grid.complete is not False]
    if not said:
        return operands[0]
    said = [p for p in said if p.first > GRID or p.grid.shape[1] > 1] or said
    lead = said[0]
    if all(p.grid.complete and same_places(p.grid, lead.grid) for p in said):
        return lead
    return replace(lead, grid=Grid(lead.grid.index, lead.grid.shape, None), known=[])


def _dims(a: Any) -> bool:
    return type(a) is Packed or (type(a) is Pair and a.data.dim() > 0) or (isinstance(a, Tensor) and a.dim() > 0)


def _broadcast(wide: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    shape: tuple[int, ...] = ()
    try:
        for other in wide:
            shape = shapes.broadcast_two(shape, other)
    except RuntimeError as reason:
        raise NoRule from reason  # the strided rule says it in torch's own words
    return shape


def _values_at(a: Any, lead: Packed, differs: bool = False) -> Any:
    if type(a) is Packed:
        if not differs:
            return a.operand()
        return match_grid(a, lead).operand()
    if type(a) is Pair:
        return pack_onto(a, lead).operand() if a.data.dim() > 0 else a
    return values_at_tokens(a, lead) if isinstance(a, Tensor) and a.dim() > 0 else a


def match_grid(a: Packed, lead: Packed | Frame) -> Packed:
    """A packed tensor that broadcasts to the shape of ``lead``, on its tokens and in its order."""
    if same_places(a.grid, lead.grid):
        if a.order == lead.order and a.stored == lead.stored:
            return a
        try:
            wide = canonicalize(expand(a, lead.shape))
        except NoRule:
            return pack_onto(unpack(a), lead)
        if wide.order == lead.order and wide.stored == lead.stored:
            return wide
    return pack_onto(unpack(a), lead)


def pack_like(result: Any, lead: Packed) -> Any:
    """What an op made of aligned values, as packed tensors on the tokens of ``lead``."""
    if isinstance(result, (tuple, list)):
        return tuple(pack_like(r, lead) for r in result)
    if type(result) is Pair or isinstance(result, Tensor):
        data = result.data if isinstance(result, Pair) else result
        if data.shape != lead.values.shape:
            raise NoRule
        return pack_values(result, lead)
    return result
