"""Writes that reach beyond one packed tensor: a packed tensor and its views are *unpacked* before the first.

Packed values are never written, so views of a packed tensor need to share no memory as long as all of them are only
read.  Before a write that others would have to see, they become views of one padded memory, in one alias family; from
then on the ordinary rules hold.  A view holds its base, as in torch, so that the history they share is there.
"""

import weakref
from collections import deque
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor

from ...compat import schema
from ...errors import UnsupportedOpError
from ...layouts import meshes
from ...packing import Packed, unpack
from ...pair import Pair
from .. import graph_inputs, memory_families
from ..alias_records import alias_of, attend, family_of, history_of
from ..aliases import join_family, uncounted
from ..boundary.packed import wrap_packed
from ..packed_pair import PackedFamily, PackedView, ViewStep
from ..table import Entry
from ..tensor import ENGINE, LOST, NOTHING_KEPT, MaskedTensor, set_pair, wrap

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
            for other in memory_families.packed_sharers(member):
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


def replace_in_aliases(x: MaskedTensor, record: Packed) -> bool:
    """Gives ``x`` another record, and the members of its family, which see the same whole: all at once.

    False if there are none: nothing was done.
    """
    members = [] if x._view is None else x._view.family.living()
    if len(members) < 2:
        return False
    family = PackedFamily(x)
    family.record, family.members = record, [weakref.ref(member) for member in members]
    _at_once(members, [{"_packed": record, "_view": PackedView(family)} for _ in members])
    return True


def _at_once(members: list[Any], states: list[dict[str, Any]]) -> None:
    """Sets attributes of several tensors, of all or of none: inside one call of C nobody interrupts, nobody reads.

    A pair that a state does not name was none of the tensor's own.
    """
    own = [member.__dict__ for member in members]
    kept = [attributes.copy() for attributes in own]  # what is dropped ends after that call, whatever it runs then
    dropped = [a for a, state in zip(own, states, strict=True) if "_pair" not in state]
    deque(chain(map(dict.update, own, states), map(dict.pop, dropped, repeat("_pair"), repeat(None))), maxlen=0)
    del kept


def is_view(x: MaskedTensor) -> bool:
    """Whether ``x`` is a view of a packed tensor that autograd knows of, not a copy, nor a detached alias."""
    if x._view is None or x._view.base is None:
        return False
    (_, _, own), (_, _, of_base) = _places(_own_memory(x._view.family.record), [x, x._view.base])
    return own is of_base


def unpack_family(x: MaskedTensor) -> tuple[list[Any], list[dict[str, Any]]] | None:
    """Before a write: what is packed becomes strided, and what was a view of it becomes one in memory.

    Everything is made beside what is there, and takes its place at once.  Gives what was there, for ``write_unpacked``.
    """
    if x._packed is None and x._view is None:
        return None
    check_seen(x)
    record: Any = x._packed if x._view is None else x._view.family.record
    memory = _own_memory(record)
    if x._view is None:
        members, made = [x], [wrap(memory)]
    else:
        places = _places(memory, x._view.family.living())
        members, made = [member for member, _, _ in places], _in_memory(places)
    for member, new in zip(members, made, strict=True):
        was = member._alias
        if was.family is not None and was.family.hard:
            family_of(new).hard = True
        if was.past_autograd:
            alias_of(new).past_autograd = True
            set_pair(new, uncounted(new._pair))
        if _steps_of(member) is not None:
            family_of(new)  # by which ops see that it has to be packed again
    before = [NOTHING_KEPT | {k: v for k, v in member.__dict__.items() if k in ENGINE} for member in members]
    states = [_state(member, new) for member, new in zip(members, made, strict=True)]
    for member, new in zip(members, made, strict=True):
        _SET_GEOMETRY(member, new)  # torch reads of the strides whether ``contiguous`` and ``reshape`` have to copy
    _at_once(members, states)
    for member in members:
        if member._alias.family is not None:
            attend(member)
    return members, before


def _in_memory(places: list[tuple[Any, Pair, MaskedTensor]]) -> list[MaskedTensor]:
    """Tensors that are to their members what those become: of one alias family, and of one history."""
    made = {id(member): wrap(pair) for member, pair, _ in places}
    memory = {id(member): owner for member, _, owner in places}
    for member, _, owner in places:
        base = member._view.base
        shared = memory.get(id(base)) is owner
        if member._alias.past_autograd:
            family_of(owner).saved += _saved_values(member)
        join_family(made[id(base)] if shared else owner, made[id(member)], detached=not shared)
    for member, _, _ in places:
        history: Any = history_of(made[id(member)])
        if history is not None and history.base() is made[id(member)]:
            history.follow(member)
    return [made[id(member)] for member, _, _ in places]


def _state(member: MaskedTensor, new: MaskedTensor) -> dict[str, Any]:
    """What the engine keeps on ``member`` once it is ``new``."""
    entry = member._graph_entry  # its next gradient joins that of this entry
    state: dict[str, Any] = {"_packed": None, "_view": None, "_pair": new._pair, "_alias": new._alias}
    state["_graph_entry"] = entry and ((), entry[1], None)
    if (steps := _steps_of(member)) is not None:
        state["_steps"] = steps
    return state | {name: new.__dict__[name] for name in ("_parts", "_exposed") if name in new.__dict__}


def _steps_of(x: MaskedTensor) -> Any:
    """Where the sequences of a packed tensor lie, if its lengths were said."""
    if x._packed is None or x._packed.grid.complete is False:
        return None
    return x._packed.frame if x._packed.grid.complete else LOST


def write_unpacked(x: MaskedTensor, write: Callable[..., Any], *args: Any) -> Any:
    """``write(*args)``, which writes into ``x``, unpacked; where that fails everybody is packed as before."""
    before = unpack_family(x)
    if before is None:
        return write(*args)
    members, states = before
    nodes = [member._node for member in members]
    try:
        return write(*args)
    except Exception:
        if all(m._node is node for m, node in zip(members, nodes, strict=True)):  # not what autograd has recorded
            for member, state in zip(members, states, strict=True):
                packed = state["_packed"]
                _SET_GEOMETRY(member, wrap(state["_pair"]) if packed is None else wrap_packed(packed))
            _at_once(members, states)
        raise


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
