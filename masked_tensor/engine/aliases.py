"""Members of an alias family: how a masked tensor joins one, and how a write through any member reaches all.

alias_records.py says what they share.

A write is one step: who is interrupted in its middle, or reads in another thread, sees no value that nobody wrote.
Data and validity are two memories, so one is written first.  An entry that becomes masked keeps its value, or is masked
before it is overwritten; one that becomes valid has its value before.  What is promised of the masked-out data is taken
back before, and a family's version is raised before what it counts.
"""

import weakref
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from .. import layouts, masks, settings
from ..compat import in_transform, shares_memory
from ..layouts import meshes
from ..pair import Pair, Payload
from ..select import zero_masked
from . import graph_inputs
from .alias_records import (
    UNALIASED,
    Alias,
    Family,
    History,
    WrappedHistory,
    attend,
    family_of,
    history_of,
    outside_inference,
)
from .tensor import MaskedTensor, pair_of, set_pair
from .torch_keys import AUTOGRAD, BACKEND


def join_family(base: MaskedTensor, *views: MaskedTensor, detached: bool = False) -> None:
    """Makes ``views`` members of the alias family of ``base`` (and of its history, unless detached)."""
    family, of, dtype, exposed = family_of(base), base._alias, base._pair.data.dtype, base._exposed
    history = None if detached else history_of(base)
    if history is None and not detached:
        history = History(base)
        of.views, of.writes_seen = weakref.ref(history), 0
    for view in views:
        alias = view._alias
        if alias is UNALIASED:
            alias = view._alias = Alias()
        alias.family = family
        if exposed:
            view._exposed = True
        if of.past_autograd:
            alias.past_autograd = True
        data = view._pair.data
        # The parts of a wider element (a complex number) may differ in validity: such a view reads the family's record.
        alias.version_seen = family.version if data.dtype is dtype else -1
        if type(data) is not Tensor:
            attend(view)
            pair_of(view)  # read now: a tracer may ask for it outside its modes
        if not detached:
            alias.history = history
            alias.writes_seen = of.writes_seen


def share_family(made: MaskedTensor, base: MaskedTensor) -> MaskedTensor:
    """``made`` of ``base``, in one family with it if they share memory, as a detached alias does; else as hard."""
    if base._packed is None and meshes.shares_local_memory(made._pair.data, base._pair.data):
        join_family(base, made, detached=True)
    else:
        copy_hardness(base, made)
    return made


def write(x: MaskedTensor, new: Pair) -> None:
    """Writes ``new`` into ``x``: data, validity and what is known, seen by every member of the alias family."""
    if not torch.is_inference_mode_enabled():
        _write(x, new)
        return
    with outside_inference(x._pair.data):
        _write(x, new)
    if not x._pair.data.is_inference():
        for data in (x._pair.data, *(() if x._alias.family is None else (x._alias.family.root.data,))):
            torch.autograd.graph.increment_version(data)  # which inference mode does not do, nor share with views


def _write(x: MaskedTensor, new: Pair) -> None:
    pair = pair_of(x)
    if new.mask.is_inference() and not pair.data.is_inference():
        new = Pair(new.data, new.mask.clone(), new.payload)
    if x._alias.past_autograd and new.payload is not Payload.ZERO:  # a derivative may read it, without this mask
        new = Pair(zero_masked(new), new.mask, Payload.ZERO)
    if x._exposed and new.payload is Payload.ZERO:
        new = Pair(new.data, new.mask)
    into = graph_inputs.kind_of(x)
    if into:
        new = graph_inputs.write_input(pair, new, into)
    family = x._alias.family
    if family is None:
        known = pair.payload
    else:
        known = family.payload
        family.tell_saved()
    if new.data is not pair.data:
        if type(x._alias.history) is WrappedHistory:  # its holder reads the masked-out data: it stays
            write_valid(pair.data, new)
        elif (new.mask is pair.mask or masks.same_memory(new.mask, pair.mask)) and (
            family is None or not family.joins(pair.data)
        ):
            if known is not new.payload:  # before what is promised ends
                pair.payload = Payload.ANY
                if family is not None:
                    family.forget()
            pair.data.copy_(new.data)
        else:
            new = write_data(x, pair.data, Pair(new.data, masks.expand_to(new.mask, pair.data.shape), new.payload))
    if family is None:
        set_pair(x, Pair(pair.data, masks.expand_to(new.mask, pair.data.shape), new.payload))
        return
    set_pair(x, write_validity(pair, family, new.mask, new.payload, known))
    x._alias.version_seen = family.version
    for member in family.members:
        seen = member()
        if seen is not None:
            pair_of(seen)


def keep_hard(x: MaskedTensor, new: Pair) -> Pair:
    """What a write of ``new`` into ``x`` leaves valid: with a hard mask nothing that was not."""
    family = x._alias.family
    if family is None or not family.hard:
        return new
    pair = pair_of(x)
    mask = masks.logical_and(pair.mask, masks.expand_to(new.mask, pair.data.shape))
    same = masks.same_memory(mask, new.mask)
    return Pair(new.data, mask, new.payload if same else Payload.ANY)


def write_validity(pair: Pair, family: Family, mask: Tensor, payload: Payload, known: Payload) -> Pair:
    """The member's pair after its validity became ``mask`` (its data was already written).

    ``known`` is what the family knew of the masked-out data before the write.
    """
    mask = masks.expand_to(mask, pair.data.shape)
    changed = not masks.same_memory(mask, pair.mask) or family.joins(
        pair.data
    )  # the valid part of a masked entry was overwritten
    if not changed and payload is family.payload:
        return Pair(pair.data, mask, payload)
    if changed:
        family.write(pair.data, mask)
    family.payload = payload if payload is known else Payload.ANY  # other members may hold either
    family.version += 1
    return family.refresh(pair) if family.joins(pair.data) else Pair(pair.data, mask, family.payload)


def uncounted(pair: Pair) -> Pair:
    """The same memory with a count of versions of its own: autograd does not see a write into it."""
    return Pair(pair.data.data, pair.mask, pair.payload)


def copy_hardness(x: MaskedTensor, copy: MaskedTensor) -> None:
    """Makes the mask of ``copy`` as hard as that of ``x``."""
    if x._alias.family is not None and x._alias.family.hard:
        family_of(copy).hard = True


def detach(x: MaskedTensor, view_of_packed: bool) -> MaskedTensor:
    """``x.detach_()``: ``x`` leaves the graph; a view cannot, as in torch."""
    base = x if x._alias.history is None else x._alias.history.base()
    if view_of_packed or (base is not x and (type(base) is MaskedTensor or base is None or base.requires_grad)):
        raise RuntimeError("a view of a masked tensor cannot be detached in place; use x = x.detach()")
    if x.requires_grad:
        torch.ops.aten.detach_.default.redispatch(AUTOGRAD, x)
        x._graph_entry = None  # it would keep the graph alive
    return x


def restride(x: MaskedTensor, new: Pair) -> None:
    """``x`` becomes another view of its own memory (``x.t_()``, ``x.unsqueeze_(0)``)."""
    family = family_of(x)  # its memory keeps the geometry it was made with
    x._pair = new
    x._alias.version_seen = family.version
    geometry = new.data.shape, new.data.stride(), new.data.storage_offset()
    torch.ops.aten.as_strided_.default.redispatch(BACKEND, x, *geometry)


def view_memory(data: Tensor, place: tuple[Any, ...]) -> Tensor:
    """``data`` at a place of its memory: itself, where that is all of it."""
    if place == (data.shape, data.stride(), data.storage_offset()):
        return data
    if meshes.is_distributed(data):
        raise unconnected_error("it lies in parts on a device mesh")
    return data.as_strided(*place)


def view_geometry(view: MaskedTensor, base: Tensor, start: Any) -> tuple[Any, ...]:
    """Size, strides and offset by which data with the geometry of ``base`` is seen as ``view`` sees it."""
    inner, outer = view._pair.data, base._pair.data if type(base) is MaskedTensor else base
    if layouts.is_sparse(outer):
        raise unconnected_error("it was put around sparse data, which was written since")
    if inner.dtype is not outer.dtype or inner.is_conj() != outer.is_conj() or inner.is_neg() != outer.is_neg():
        raise unconnected_error("it reads its base as another dtype")
    return inner.shape, inner.stride(), inner.storage_offset() - outer.storage_offset() + start


def unconnected_error(reason: str) -> RuntimeError:
    """A view and its base could not be kept in one history."""
    return RuntimeError(
        f"a gradient through this view of a masked tensor would be lost: {reason}; assign through the base "
        "(base[index] = value), take the view again, work on a clone, or write under torch.no_grad()"
    )


def write_data(x: MaskedTensor, part: Tensor, new: Pair) -> Pair:
    """Writes the data of ``new`` into ``part`` of that of ``x``, before validity is written. Gives what is to be there.

    A write that fails has changed nothing.
    """
    if type(part) is not Tensor or 0 in part.stride() or in_transform():  # traced; torch refuses; one of many
        part.copy_(new.data)
        return new
    # A thread may read under a mask of long ago: of few entries only the valid ones are written.  Of many that would
    # cost twenty times the copy; and a derivative may read what lies under the mask.
    few = part.numel() < settings.FEW and not x._alias.past_autograd
    pair, family, before = x._pair, x._alias.family, None
    known = Payload.ANY if family is None else family.payload
    if family is None:
        set_pair(x, Pair(part, pair.mask if few else masks.logical_and(pair.mask, new.mask)))
    elif few:
        family.forget()
    else:
        before = family.narrow(part, new.mask)
    try:
        if few:
            write_valid(part, new)
        else:
            part.copy_(new.data)
    except Exception:
        if family is None:
            set_pair(x, pair)
        else:
            family.restore(part, before, known)
        raise
    return Pair(new.data, new.mask) if few else new


def write_valid(data: Tensor, new: Pair) -> None:
    """Writes the valid entries of ``new`` into ``data``."""
    if data.dtype is new.data.dtype and type(data) is Tensor and not (in_transform() or shares_memory(data, new.data)):
        torch.where(new.mask, new.data, data, out=data)
    else:
        data.copy_(torch.where(new.mask, new.data, data))


def are_current(values: Sequence[Any]) -> bool:
    """Whether no tensor is behind what was written through others; views of one tensor are asked once."""
    family: Any = None
    history: Any = None
    version: Any = 0
    writes: Any = 0
    for alias in map(attrgetter("_alias"), values):
        if alias is UNALIASED:
            continue
        if alias.family is not family or alias.history is not history:
            family, history = alias.family, alias.history
            version, writes = 0 if family is None else family.version, 0 if history is None else history.writes
        if family is not None and alias.version_seen != version:
            return False
        if history is not None and alias.writes_seen != writes:
            return False
    return True
