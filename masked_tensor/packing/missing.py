"""Stored steps that are missing: they exist, but some of their entries are masked.

A rule for whole tokens is given those that are valid, and what it makes of them lies in their places again.  Where a
token is masked in part, or places count, the ordinary rule runs on the padded tensors, and its result is packed again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import is_readable_memory
from ..op import NoRule, Rule
from ..pair import Payload
from . import dim_order as orders
from .dim_order import GRID
from .grid import Grid
from .packed import Frame, Packed, pack_onto, pack_values, unpack
from .scatter_gather import gather_tokens, scatter_mask, scatter_tokens


def run_over_missing(
    rule: Rule, strided: Rule, args: Sequence[Any], kwargs: Mapping[str, Any], lead: int | None, mixes: bool
) -> Any:
    """What a packed rule for whole tokens gives of tensors of which some are masked.

    ``lead``: the argument within whose stored steps all lies that is valid in the (first) result; if the last
    dimension is mixed, only where that is one of features.
    """
    try:
        return lift(rule(*map(leave_out, args), **{k: leave_out(v) for k, v in kwargs.items()}))
    except NoRule:
        if lead is None or lead >= len(args):
            raise
    like = args[lead]
    if mixes and not orders.is_feature(like.order[-1], like.first):
        raise NoRule
    result = strided(*map(_padded, args), **{k: _padded(v) for k, v in kwargs.items()})
    several = type(result) in (tuple, list)
    first, *rest = result if several else (result,)
    found = pack_onto(pair.as_pair(first), _frame(like, pair.data_of(first)))
    first = pack_values(found.operand(), found)
    return (first, *rest) if several else first


def _padded(value: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)([_padded(v) for v in value])
    return unpack(value) if type(value) is Packed else value


def _frame(like: Packed, result: Tensor) -> Frame:
    """The steps of ``like``, for a result that may have other features."""
    if tuple(result.shape) == like.shape:
        return like.frame
    if result.dim() != len(like.order) or like.first != GRID:
        raise NoRule
    rest = iter(range(GRID, result.dim()))
    order = tuple(dim if min(dim, default=GRID) < GRID else (next(rest),) for dim in like.order)
    frame = Frame(torch.Size((like.stored[0], *_features(order, result))), like.grid, order, None)
    if any(len(dim) != 1 for dim in order) or frame.shape != tuple(result.shape):
        raise NoRule
    return frame


def _features(order: orders.Order, result: Tensor) -> list[int]:
    return [n for n, dim in zip(result.shape, order, strict=True) if min(dim) >= GRID]


def leave_out(value: Any) -> Any:
    """An argument without its missing steps, also in a list.  Raises NoRule where a step is masked in part."""
    if type(value) in (tuple, list):
        return type(value)([leave_out(v) for v in value])
    if type(value) is not Packed or value.inner is None:
        return value
    small = masks.compact(value.inner)
    if any(n != 1 for n in small.shape[1:]) or not is_readable_memory(small) or not value.grid.host:
        raise NoRule
    valid = small.flatten().expand(value.stored[0])
    known: list[Grid] = value.grid.known.setdefault("missing", [])
    grid = next((g for g in known if g.part and (masks.same_memory(g.part[1], valid) or g.part[1].equal(valid))), None)
    if grid is None:
        kept = valid.nonzero().squeeze(1)
        grid = Grid(value.grid.index.index_select(0, kept), value.grid.shape)
        grid.part = value.grid, valid, Grid(kept, (1, len(valid)))
        known[:] = [grid, *known[:3]]
    assert grid.part is not None
    return Packed(gather_tokens(value.values, grid.part[2]), grid, value.order)


def lift(x: Any) -> Any:
    """A result on some tokens of a grid, also in a tuple, on all of them."""
    if type(x) in (tuple, list):
        return type(x)([lift(v) for v in x])
    if type(x) is not Packed or x.grid.part is None:
        return x
    grid, valid, places = x.grid.part
    values, payload = scatter_tokens(x.values, places), Payload.ZERO
    inner = valid.view(-1, *(1,) * (values.dim() - 1))
    if x.inner is not None:
        inner, payload = scatter_mask(x.inner, places), x.payload
    return Packed(values, grid, x.order, masks.expand_to(inner, values.shape), payload)
