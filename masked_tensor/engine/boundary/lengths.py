"""Lengths of a batch where a packed rule did not serve: the result of the ordinary rule gets them here, and only here.

A result that still has its batch and its time is packed again, with the lengths that ``packing/lengths_table.py``
declares; one that has lost them knows that, so that nobody reads others from its mask.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ... import packing
from ...compat import in_transform, is_readable_memory, schema
from ...op import NoRule
from ...packing import Packed
from ...packing.lengths import Call, Kind, place
from ...packing.lengths_table import WIDENS, kind_of
from ...packing.operands import lead_of
from ...packing.packed import Frame, pack_onto, pack_values
from ...pair import Pair
from ..table import Entry
from ..tensor import LOST, MaskedTensor, pair_of
from .enter_leave import enter, leave


def keep_of_op(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """The result of an op that unpacked its arguments, with their lengths."""
    arguments = schema(entry.overload).arguments
    defaults = {a.name: a.default_value for a in arguments if a.has_default_value()}
    given = dict(zip((a.name for a in arguments), args, strict=False)) | kwargs
    given |= {name: value for name, value in defaults.items() if name not in given}
    return keep(kind_of(entry.op), given, result)


def keep(kind: Kind, given: Mapping[str, Any], result: Any) -> Any:
    """``result`` of these arguments, packed with their lengths if it still has them."""
    several = list(_batches(given))
    if not several:
        return result
    try:
        lead = lead_of([p for _, p in several])
    except NoRule:
        return result
    at = next(name for name, p in several if p.grid.index is lead.grid.index)
    if isinstance(result, list | tuple):
        found = [_keep_one(kind, at, lead, given, r) for r in result]
        return result if all(a is b for a, b in zip(found, result, strict=True)) else type(result)(found)
    return _keep_one(kind, at, lead, given, result)


def _keep_one(kind: Kind, at: str, lead: Packed, given: Mapping[str, Any], result: Any) -> Any:
    if type(result) is not MaskedTensor or result._packed is not None or result.layout is not torch.strided:
        return result
    frame, had = place(kind, Call(lead, at, given, tuple(result.shape)))
    if not had or result.dim() < 2:
        return result
    if frame is None or lead.grid.complete is None or not lies_within(result, frame, kind in WIDENS):
        result._steps = LOST
        return result
    if in_transform() or 0 in frame.stored:
        result._steps = frame
        return result
    return leave(pack_again(enter(result, torch.is_grad_enabled()), frame))


def pack_arguments(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of which some were packed with their lengths, and written: packed again, where they still fit."""

    def again(x: Any) -> Any:
        if isinstance(x, list | tuple):
            return type(x)(map(again, x))
        if type(x) is not MaskedTensor or x._steps is None or x._stays_padded:
            return x
        if not knows_steps(x) or 0 in x._steps.stored:
            return x
        return leave(pack_again(enter(x, torch.is_grad_enabled()), x._steps))

    return tuple(map(again, args))


def knows_steps(x: MaskedTensor) -> bool:
    """Whether what was packed with its lengths still has nothing valid beside them: it may have been written."""
    steps = x._steps
    return type(steps) is Frame and steps.shape == tuple(x.shape) and lies_within(x, steps, False)


def note_views(entry: Entry, base: MaskedTensor, rest: Any, kwargs: dict[str, Any], views: Any) -> None:
    """Views of what was packed with its lengths: where their sequences lie, as the packed rule has it."""
    if base._steps is LOST:
        found: Any = None
    else:
        frame = base._steps
        try:
            found = entry.packed[0](
                Packed(torch.empty(()).expand(frame.stored), frame.grid, frame.order), *rest, **kwargs
            )
        except (NoRule, IndexError):
            found = None
    for k, view in enumerate(views):
        one = found[k] if isinstance(found, list | tuple) else found
        view._stays_padded = base._stays_padded
        view._steps = one.frame if type(one) is Packed else LOST if view.dim() > 1 and one is None else None


def pack_again(pair: Pair, frame: Frame) -> Packed:
    """The strided pair on the tokens of ``frame``, within which all that is valid in it lies."""
    found = pack_onto(pair, frame)
    return pack_values(found.operand(), found)


def lies_within(x: MaskedTensor, frame: Frame, may_widen: bool) -> bool:
    """Whether all that is valid lies in steps that exist; where looking is not free: what the op is known to do."""
    mask = pair_of(x).mask
    if not is_readable_memory(mask) or not frame.grid.host:
        return not may_widen
    exists = packing.logical_mask(Packed(mask.new_empty(()).expand(frame.stored), frame.grid, frame.order))
    return not bool((mask & ~exists).any())


def _batches(given: Mapping[str, Any]) -> Iterator[tuple[str, Packed]]:
    """The arguments, also in lists, that are batches whose lengths were said."""
    for name, value in given.items():
        for v in value if isinstance(value, list | tuple) else (value,):
            if type(v) is MaskedTensor and v._packed is not None and v._packed.grid.complete is not False:
                yield name, v._packed
