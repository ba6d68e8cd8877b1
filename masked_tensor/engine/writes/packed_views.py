"""Writes that reach further than one packed tensor: a packed tensor and its views *settle* before the first.

Packed values are never written, so views of a packed tensor need to share no memory as long as all of them are only
read.  Each remembers the steps from the root to itself.  Before a write that others would have to see, the root is
unpacked, the steps are taken again, of the unpacked root, and the views join its alias family by the ordinary rules.

A root may be gone while its views are held.  What they keep of it is its stored values and, where autograd records
them, its history: another root is made of these, so that a write through one view is seen by the others' gradients.
"""

import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...compat import in_transform, schema, shares_memory
from ...errors import UnsupportedOpError
from ...layouts import meshes
from ...packing import Frame, Packed, unpack
from ...packing.packed import values_at_tokens
from ...pair import Pair
from ...select import select
from .. import graph_inputs, storage_notes
from ..alias_family import Family
from ..alias_members import family_of, join_family, uncounted
from ..boundary.enter_leave import enter, leave
from ..boundary.packed import enter_packed
from ..table import Entry
from ..tensor import MaskedTensor, set_pair, wrap

_SET_GEOMETRY = Tensor.data.__set__  # type: ignore[attr-defined]  # size, strides and offset; there is no memory


@dataclass(frozen=True, slots=True, eq=False)
class ViewStep:
    """One view taken: result ``which`` of the entry's op."""

    entry: Entry
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    which: int | None

    def of(self, pair: Pair) -> Pair:
        """The same view of a strided pair; of a copy of it where memory has no such view, as ``reshape`` does."""
        try:
            new = self.entry.rule(pair, *self.args, **self.kwargs)
        except RuntimeError:  # nobody told a packed tensor's ``view`` apart, such as the one in ``ravel``
            new = self.entry.rule(Pair(pair.data.contiguous(), pair.mask, pair.payload), *self.args, **self.kwargs)
        result: Pair = new if self.which is None else new[self.which]
        return result


class PackedFamily:
    """A packed root and the views of it, as long as nothing is written."""

    __slots__ = ("graph_input", "kept", "members", "record")

    def __init__(self, root: MaskedTensor) -> None:
        self.graph_input = graph_inputs.kind_of(root)
        self.record: Packed | None = root._packed
        self.members = [weakref.ref(root)]
        self.kept: dict[str, Any] = {}  #: one object for all members, so that they find each other when unpickled

    def living(self) -> list[MaskedTensor]:
        """The members that somebody still holds."""
        return [x for x in (ref() for ref in self.members) if x is not None]


def add_view(result: Any, base: MaskedTensor, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The results of a view of a packed tensor become its group."""
    group = base._view_group
    if group is None:
        group = base._view_group = PackedFamily(base)
    group.members = [ref for ref in group.members if ref() is not None]
    several = isinstance(result, (list, tuple))
    traced = _is_traced(base)
    held = () if entry.op.detaches and not traced else (*base._held, base if traced else _history_of(base))
    for which, view in enumerate(result if several else (result,)):
        if type(view) is MaskedTensor and view is not base:
            view._view_group = group
            view._path = (*base._path, ViewStep(entry, args, kwargs, which if several else None))
            view._held = held
            view._past_autograd = base._past_autograd
            group.members.append(weakref.ref(view))


def _history_of(base: MaskedTensor) -> Any:
    """The inside of ``base`` as autograd tracks it, which lives as long as its views do, as in torch.

    A leaf lives as long as its graph does.
    """
    if not (torch.is_grad_enabled() and base._tracks) or base._node is None or in_transform():
        return None
    return enter(base, True) if base._packed is None else enter_packed(base, True, enter)


def check_seen(x: MaskedTensor) -> None:
    """Before a write: raises where somebody who would have to see it cannot be told."""
    if (x._packed is not None and graph_inputs.kind_of(x)) or (x._view_group is not None and x._view_group.graph_input):
        raise graph_inputs.packed_input_error()
    for member in (x,) if x._view_group is None else x._view_group.living():
        if member._packed is not None:
            for other in storage_notes.packed_sharers(member):
                if other._view_group is None or other._view_group is not x._view_group:
                    raise UnsupportedOpError(
                        "this packed tensor shares its values with another one that a compiled function was given or "
                        "returned, which would not see the write: write into a clone (x = x.clone())"
                    )


def _is_traced(x: MaskedTensor) -> bool:
    return type(x._pair.data if x._packed is None else x._packed.values) is not Tensor


def is_unshared(x: MaskedTensor) -> bool:
    """Whether nobody else would have to see a write into ``x``, and no hard mask forbids it.

    While a graph is traced who is still held is not who will be when it runs: then it is told by what was ever a view.
    A write past autograd is seen by what autograd saved.
    """
    if x._past_autograd:
        return False
    if x._view_group is not None and _is_traced(x):
        return False
    return x._family is None and (x._view_group is None or all(member is x for member in x._view_group.living()))


def is_view(x: MaskedTensor) -> bool:
    """Whether ``x`` is a view of a packed tensor that autograd knows of, not a copy, nor a detached alias."""
    if x._view_group is None or not x._path:
        return False
    (found,) = _replay(_own_memory(x._view_group.record), [x])
    return len(found.base.path) < len(x._path)


def unpack_family(x: MaskedTensor) -> None:
    """Before a write: what is packed becomes strided, and what was a view of it becomes one in memory."""
    check_seen(x)
    group = x._view_group
    if group is None:
        if x._packed is not None:
            _become(x, _own_memory(x._packed))
        return
    assert group.record is not None
    again = _replay(_own_memory(group.record), group.living())
    made = {found.base: found.member for found in again if found.member._path[-1:] == found.base.path[-1:]}
    for found in again:
        for base in (found.base.owner, found.base):
            if base is not None and base not in made:
                made[base] = _stand_in(base.pair, [f.history for f in again if f.base is base])
    saved = _saved_values(group.record, again) if x._past_autograd else []
    for found in again:
        _become(found.member, found.pair)
    for base, x in made.items():
        if base.owner is not None:
            join_family(x, made[base.owner], detached=True)
    for found in again:
        if made[found.base] is not found.member:
            join_family(found.member, made[found.base])
    for base, values in saved:
        family_of(made[base]).saved.append(values)
    for found in again:
        if found.member._past_autograd:
            set_pair(found.member, uncounted(found.member._pair))


def unpack_before_write(entry: Entry, args: tuple[Any, ...]) -> None:
    """Settles what a rule writes by itself, such as ``embedding_renorm_``: an unpacked copy would take the write."""
    described = schema(entry.overload)
    if described.is_mutable:
        for argument, value in zip(described.arguments, args, strict=False):
            if type(value) is MaskedTensor and argument.alias_info is not None and argument.alias_info.is_write:
                unpack_family(value)


@dataclass(frozen=True, slots=True, eq=False)
class SavedValues:
    """What autograd may have saved of a packed tensor: its values, and where they lie since it was unpacked."""

    data: Tensor
    values: Tensor
    frame: Frame | None  #: None: the values have the padding, as a graph was given them

    def follow(self, family: Family) -> None:
        """Takes what was written past autograd: the derivative reads what is there then, as in torch.

        What was masked stays as it was.  Values of which several lie in one place cannot take it: there torch raises.
        """
        if any(s == 0 and n > 1 for s, n in zip(self.values.stride(), self.values.shape, strict=True)):
            torch.autograd.graph.increment_version(self.values)
            return
        with torch.no_grad():
            new = self.data if family.buffer is None else select(self.data, family.live(self.data), 0)
            if self.frame is not None:
                new = values_at_tokens(new, self.frame)
                if self.frame.inner is not None:
                    new = torch.where(self.frame.inner, new, self.values)
            self.values.data.copy_(new)


def _saved_values(record: Packed, again: list["Found"]) -> list[tuple["Base", SavedValues]]:
    """What autograd may have saved of these members and their root, by base."""
    result: list[tuple[Base, SavedValues]] = []
    if type(record.values) is not Tensor or record.values.is_inference():
        return result
    for base in {found.base.owner or found.base for found in again}:
        if not base.path:
            result.append((base, SavedValues(base.pair.data, record.values, record.frame)))
    for found in again:
        p, parts = found.member._packed, found.member._parts
        if p is not None and not shares_memory(p.values, record.values):
            result.append((found.base, SavedValues(found.pair.data, p.values, p.frame)))
        if p is not None and parts is not None and parts[0] is p:
            result.append((found.base, SavedValues(found.pair.data, parts[1], None)))
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """What views have as their base to autograd: a root, or a detached alias of one."""

    path: tuple[ViewStep, ...]
    pair: Pair
    owner: "Base | None"  #: the root whose memory a detached alias shares


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A member, its place in memory, and what it keeps of its base as autograd tracks it, if it does."""

    member: MaskedTensor
    pair: Pair
    base: Base
    history: Any


def _replay(pair: Pair, members: list[MaskedTensor]) -> list[Found]:
    """The members as views of ``pair``; one that memory has no view for is a copy, and the root of its own views."""
    root, result = Base((), pair, None), []
    taken: dict[ViewStep, tuple[Pair, Base]] = {}
    with torch.no_grad():
        for member in members:
            seen, base = pair, root
            for k, step in enumerate(member._path):
                if step not in taken:
                    path, new = member._path[: k + 1], step.of(seen)
                    if new.data is seen.data:  # a pickle tells tensors apart by the objects that they are
                        new = Pair(seen.data.detach(), new.mask, new.payload)
                    if not meshes.shares_local_memory(new.data, seen.data):
                        base = Base(path, new, None)
                    elif step.entry.op.detaches:
                        base = Base(path, new, base.owner or base)
                    taken[step] = new, base
                seen, base = taken[step]
            history = member._held[len(base.path)] if len(member._held) > len(base.path) else None
            result.append(Found(member, seen, base, history))
    return result


def _stand_in(memory: Pair, histories: list[Any]) -> MaskedTensor:
    """A base in place of one that nobody holds any more, with the history that its views have kept of it."""
    history = next((h for h in histories if h is not None), None)
    if history is None:
        return wrap(memory)
    with torch.inference_mode(False), torch.enable_grad():
        root: MaskedTensor = leave(history)
    _become(root, memory)
    return root


def _own_memory(p: Packed) -> Pair:
    """Memory of its own, contiguous as the strides of every packed tensor say."""
    pair = unpack(p)
    data = pair.data.clone(memory_format=torch.contiguous_format) if p.grid.full else pair.data.contiguous()
    return Pair(data, pair.mask, pair.payload)


def _become(x: MaskedTensor, pair: Pair) -> None:
    hard = x._family is not None and x._family.hard
    x._graph_entry = x._graph_entry and ((), x._graph_entry[1], None)  # its next gradient joins that of this entry
    x._packed = x._family = x._view_group = None
    x._path, x._held, x._version_seen = (), (), 0
    set_pair(x, pair)
    _SET_GEOMETRY(x, wrap(pair))  # torch reads of the strides whether ``contiguous`` and ``reshape`` have to copy
    if hard:
        x.harden_mask()
