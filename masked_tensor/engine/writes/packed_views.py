"""Writes that reach further than one packed tensor: a packed tensor and its views are *unpacked* before the first.

Packed values are never written, so views of a packed tensor need to share no memory as long as all of them are only
read.  Before a write that others would have to see, they become views of one padded memory, in one alias family; from
then on the ordinary rules hold.  A view holds its base, as in torch, so that the history they share is there.
"""

from typing import Any

import torch
from torch import Tensor

from ...compat import schema
from ...errors import UnsupportedOpError
from ...layouts import meshes
from ...packing import Packed, unpack
from ...pair import Pair
from .. import graph_inputs, storage_notes
from ..alias_records import UNALIASED, alias_of, family_of
from ..aliases import join_family, uncounted
from ..boundary.packed import set_packed
from ..packed_parts import PackedFamily, PackedView, ViewStep
from ..table import Entry
from ..tensor import LOST, MaskedTensor, set_pair, wrap

_SET_GEOMETRY = Tensor.data.__set__  # type: ignore[attr-defined]  # size, strides and offset; there is no memory


def add_view(result: Any, base: MaskedTensor, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The results of a view of a packed tensor become members of its family."""
    of = base._view
    if of is None:
        of = base._view = PackedView(PackedFamily(base))
    several = isinstance(result, (list, tuple))
    for which, view in enumerate(result if several else (result,)):
        if type(view) is MaskedTensor and view is not base:
            if entry.op.detaches:  # the same place; it keeps no graph alive
                view._view = PackedView(of.family, of.path)
            else:
                step = ViewStep(entry, args, kwargs, which if several else None)
                view._view = PackedView(of.family, (*of.path, step), base)
            if base._alias.past_autograd:
                alias_of(view).past_autograd = True
            of.family.add(view)


def check_seen(x: MaskedTensor) -> None:
    """Before a write: raises where somebody who would have to see it cannot be told."""
    if (x._packed is not None and graph_inputs.kind_of(x)) or (x._view is not None and x._view.family.graph_input):
        raise graph_inputs.packed_input_error()
    for member in (x,) if x._view is None else x._view.family.living():
        if member._packed is not None:
            for other in storage_notes.packed_sharers(member):
                if x._view is None or other._view is None or other._view.family is not x._view.family:
                    raise UnsupportedOpError(
                        "this packed tensor shares its values with another one that a compiled function was given or "
                        "returned, which would not see the write: write into a clone (x = x.clone())"
                    )


def _is_traced(x: MaskedTensor) -> bool:
    return type(x._pair.data if x._packed is None else x._packed.values) is not Tensor


def can_replace(x: MaskedTensor, recording: bool, args: tuple[Any, ...]) -> bool:
    """Whether a write may give ``x`` another record: nobody sees a part of it, and no hard mask forbids the write.

    Detached aliases see the whole, and take the record of a write that autograd does not record.  While a graph is
    traced who is still held is not who will be when it runs: then it is told by what was ever a view.  A write past
    autograd is seen by what autograd saved.
    """
    if x._alias.past_autograd or x._alias.family is not None:
        return False
    if x._view is None:
        return True
    others = [member for member in x._view.family.living() if member is not x]
    if _is_traced(x) or any(member._packed is None or member._view.path for member in others):
        return False
    tracked = recording and any(isinstance(a, Tensor) and a.requires_grad for a in args)
    return not others or not (x._view.path or tracked)


def replace_in_aliases(x: MaskedTensor, before: PackedView | None) -> None:
    """After ``x`` took a new record: the members of its family ``before``, which see the same whole, take it, too."""
    others = [] if before is None else [member for member in before.family.living() if member is not x]
    if not others:
        return
    record: Any = x._packed
    x._view = PackedView(PackedFamily(x))
    for member in others:
        set_packed(member, record)
        member._view = PackedView(x._view.family)
        x._view.family.add(member)


def is_view(x: MaskedTensor) -> bool:
    """Whether ``x`` is a view of a packed tensor that autograd knows of, not a copy, nor a detached alias."""
    if x._view is None or x._view.base is None:
        return False
    (_, _, own), (_, _, of_base) = _places(_own_memory(x._view.family.record), [x, x._view.base])
    return own is of_base


def unpack_family(x: MaskedTensor) -> None:
    """Before a write: what is packed becomes strided, and what was a view of it becomes one in memory."""
    check_seen(x)
    view, past_autograd = x._view, x._alias.past_autograd
    if view is None:
        if x._packed is not None:
            _become(x, _own_memory(x._packed))
        return
    places = _places(_own_memory(view.family.record), view.family.living())
    memory = {id(member): owner for member, _, owner in places}
    for member, pair, owner in places:
        base = member._view.base
        shared = memory.get(id(base)) is owner
        family_of(owner).saved += _saved_values(member) if past_autograd else []
        _become(member, pair, base if shared else owner, detached=not shared)


def unpack_before_write(entry: Entry, args: tuple[Any, ...]) -> None:
    """Unpacks what a rule writes by itself, such as ``embedding_renorm_``: an unpacked copy would take the write."""
    described = schema(entry.overload)
    if described.is_mutable:
        for argument, value in zip(described.arguments, args, strict=False):
            if type(value) is MaskedTensor and argument.alias_info is not None and argument.alias_info.is_write:
                unpack_family(value)


def _saved_values(x: MaskedTensor) -> list[Tensor]:
    """What autograd may have saved of a packed tensor: it raises when that is read, since it cannot take the write."""
    if x._packed is None:
        return []
    values = x._packed.values, *(x._parts[1:2] if x._parts is not None and x._parts[0] is x._packed else ())
    return [t for t in values if type(t) is Tensor and not t.is_inference()]


def _places(memory: Pair, members: list[Any]) -> list[tuple[Any, Pair, MaskedTensor]]:
    """The members as views of ``memory``, each with the owner of its memory: of a copy, where there is no such view."""
    found = []
    taken: dict[ViewStep | None, tuple[Pair, MaskedTensor]] = {None: (memory, wrap(memory))}
    with torch.no_grad():
        for member in members:
            pair, owner = taken[None]
            for step in member._view.path:
                if step not in taken:
                    new = step.of(pair)
                    taken[step] = new, owner if meshes.shares_local_memory(new.data, pair.data) else wrap(new)
                pair, owner = taken[step]
            found.append((member, Pair(pair.data.detach(), pair.mask, pair.payload), owner))
    return found


def _own_memory(p: Packed) -> Pair:
    """Memory of its own; of a full grid ``unpack`` may give the stored values themselves."""
    pair = unpack(p)
    return Pair(pair.data.clone(), pair.mask, pair.payload) if p.grid.full else pair


def _become(x: MaskedTensor, pair: Pair, base: MaskedTensor | None = None, detached: bool = False) -> None:
    if x._packed is not None and x._packed.grid.complete is not False:
        x._steps = x._packed.frame if x._packed.grid.complete else LOST
    alias, x._packed, x._view, x._alias = x._alias, None, None, UNALIASED
    x._graph_entry = x._graph_entry and ((), x._graph_entry[1], None)  # its next gradient joins that of this entry
    set_pair(x, pair)
    if x._steps is not None:
        family_of(x)  # by which ops see that it has to be packed again
    _SET_GEOMETRY(x, wrap(pair))  # torch reads of the strides whether ``contiguous`` and ``reshape`` have to copy
    if base is not None:
        join_family(base, x, detached=detached)
    if alias.family is not None and alias.family.hard:
        family_of(x).hard = True
    if alias.past_autograd:
        alias_of(x).past_autograd = True
        set_pair(x, uncounted(x._pair))
