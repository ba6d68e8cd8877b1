"""One note per memory: how tensors made by code that knows only the memory find their family.

A compiled function is given the parts of its inputs, and its results are put together from the parts it returns; what
it returns may be a view of an input, or of another result.  So a tensor that is taken apart leaves a note of its family
on its memory, and one that is put together looks for it there.  Most tensors share with nobody: they have no family,
and are noted themselves.  Memory that somebody outside may hold has no note: others may wrap it, under other masks.
"""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from ..callers import first_caller
from ..pair import Payload
from . import alias_records

_PACKAGE = __name__.partition(".")[0]
_INSIDE: set[str] = set()  # modules that were found to be torch's or ours


def called_from_outside() -> bool:
    """Whether the caller's caller is neither torch, which takes tensors apart to compile, nor this package."""
    if is_dynamo_compiling():  # this very function: Dynamo cannot follow it to its caller
        return False
    frame, _ = first_caller(above=2)
    module = frame.f_globals.get("__name__", "torch") if frame is not None else "torch"
    if module in _INSIDE:  # on the way of every call of a compiled function
        return False
    inside = module.partition(".")[0] in ("torch", _PACKAGE)
    if inside:
        _INSIDE.add(module)
    return not inside


def note_family(x: Any) -> None:
    """Notes the family of ``x``, or ``x`` itself, on its memory."""
    family = x._alias.family
    if family is not None and family.noted:
        return
    storage = None if x._exposed else _storage(x)
    if storage is None:
        return
    noted = x if family is None else family
    if storage.__dict__.get("masked_family", _nobody)() is not noted:
        storage.masked_family = weakref.ref(noted)
    if family is not None:
        family.noted = True


def _noted_family(storage: Any) -> alias_records.Family | None:
    """The family that is noted on a memory; who stands for one founds it."""
    found = storage.__dict__.get("masked_family", _nobody)()
    if found is None or type(found) is alias_records.Family:
        return found
    return alias_records.family_of(found)


def join_noted_family(x: Any) -> None:
    """Makes ``x``, just put together, a member of the family whose memory it shares."""
    storage = _storage(x)
    if storage is None:
        return
    family = _noted_family(storage)
    if family is not None:
        alias = alias_records.alias_of(x)
        alias.family, alias.version_seen = family, family.version if x._pair.data.element_size() == family.unit else -1
        if x._pair.payload is Payload.ANY:
            family.forget()
        alias.history, alias.writes_seen = alias_records.ReturnedHistory(family), family.tracked
    elif x._pair.payload is Payload.ZERO:
        note_family(x)
    else:
        x._exposed = True  # perhaps an input of the compiled function that is not a masked tensor


def note_packed(x: Any) -> None:
    """Notes on the memory of the values of a packed tensor that a graph is given them, or returned them."""
    storage = x._packed.values.untyped_storage()
    known = storage.__dict__.setdefault("masked_rows", [])
    if not any(ref() is x for ref in known):
        known[:] = [ref for ref in known if ref() is not None]
        known.append(weakref.ref(x))


def packed_sharers(x: Any) -> list[Any]:
    """The packed tensors that share the values of ``x`` through a graph: how they are related is lost."""
    values = x._packed.values
    if type(values) is not Tensor:
        return []
    others = (ref() for ref in values.untyped_storage().__dict__.get("masked_rows", ()))
    return [y for y in others if y is not None and y is not x and y._packed is not None]


def _storage(x: Any) -> Any:
    data = x._pair.data
    return data.untyped_storage() if type(data) is Tensor and data.layout is torch.strided else None


def _nobody() -> None:
    return None
