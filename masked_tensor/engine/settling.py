"""Writes that reach further than one packed tensor: a packed tensor and its views *settle* before the first.

Packed values are never written, so views of a packed tensor need to share no memory as long as all of them are only
read.  Each remembers the steps from the root to itself.  Before a write that others would have to see, the root is
spread, the steps are taken again, of the spread root, and the views join its alias family by the ordinary rules.
"""

import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..compat import schema
from ..errors import UnsupportedOpError
from ..pair import Pair
from ..rows import Packed, spread
from . import cells, inputs
from .members import join
from .table import Entry
from .tensor import MaskedTensor, hold, wrap


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One view taken: result ``which`` of the entry's op."""

    entry: Entry
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    which: int | None
    base: MaskedTensor | None  #: kept while a graph is traced: who runs it lets go of a base that no node needs

    def of(self, pair: Pair) -> Pair:
        """The same view of a strided pair."""
        new = self.entry.rule(pair, *self.args, **self.kwargs)
        result: Pair = new if self.which is None else new[self.which]
        return result


class Kin:
    """A packed root and the views of it, as long as nothing is written."""

    __slots__ = ("graph_input", "members", "record")

    def __init__(self, root: MaskedTensor) -> None:
        self.graph_input = inputs.kind_of(root)
        self.record: Packed | None = root._packed
        self.members = [weakref.ref(root)]

    def living(self) -> list[MaskedTensor]:
        """The members that somebody still holds."""
        return [x for x in (ref() for ref in self.members) if x is not None]


def adopt(result: Any, base: MaskedTensor, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The results of a view of a packed tensor become its kin."""
    kin = base._kin
    if kin is None:
        kin = base._kin = Kin(base)
    kin.members = [ref for ref in kin.members if ref() is not None]
    several = isinstance(result, (list, tuple))
    for which, view in enumerate(result if several else (result,)):
        if type(view) is MaskedTensor and view is not base:
            view._kin = kin
            kept = base if _traced(base) else None
            view._path = (*base._path, Step(entry, args, kwargs, which if several else None, kept))
            kin.members.append(weakref.ref(view))


def check(x: MaskedTensor) -> None:
    """Before a write: raises where somebody who would have to see it cannot be told."""
    if (x._packed is not None and inputs.kind_of(x)) or (x._kin is not None and x._kin.graph_input):
        raise inputs.packed_input()
    for member in (x,) if x._kin is None else x._kin.living():
        if member._packed is not None:
            for other in cells.sharing_rows(member):
                if other._kin is None or other._kin is not x._kin:
                    raise UnsupportedOpError(
                        "this packed tensor shares its values with another one that a compiled function was given or "
                        "returned, which would not see the write: write into a clone (x = x.clone())"
                    )


def _traced(x: MaskedTensor) -> bool:
    return type(x._pair.data if x._packed is None else x._packed.values) is not Tensor


def alone(x: MaskedTensor) -> bool:
    """Whether nobody else would have to see a write into ``x``, and no hard mask forbids it.

    While a graph is traced who is still held is not who will be when it runs: then it is told by what was ever a view.
    """
    if x._kin is not None and _traced(x):
        return False
    return x._family is None and (x._kin is None or all(member is x for member in x._kin.living()))


def settle(x: MaskedTensor) -> None:
    """Before a write: what is packed becomes strided, and what was a view of it becomes one in memory."""
    check(x)
    kin = x._kin
    if kin is None:
        if x._packed is not None:
            _become(x, _owned(x._packed))
        return
    assert kin.record is not None
    pair = _owned(kin.record)
    members = kin.living()
    again = [_replayed(pair, member._path) for member in members]  # before anything changes: a view may not fit memory
    root = next((m for m in members if not m._path), None)
    if root is None:
        root = wrap(pair)
    else:
        _become(root, pair)
    for member, new in zip(members, again, strict=True):
        if member is not root:
            path = member._path
            _become(member, new)
            join(member, root, any(step.entry.op.detaches for step in path))


def before_own_writes(entry: Entry, args: tuple[Any, ...]) -> None:
    """Settles what a rule writes by itself, such as ``embedding_renorm_``: a spread copy would take the write."""
    described = schema(entry.overload)
    if described.is_mutable:
        for argument, value in zip(described.arguments, args, strict=False):
            if type(value) is MaskedTensor and argument.alias_info is not None and argument.alias_info.is_write:
                settle(value)


def _replayed(pair: Pair, path: tuple[Step, ...]) -> Pair:
    with torch.no_grad():
        for step in path:
            pair = step.of(pair)
    return pair


def _owned(p: Packed) -> Pair:
    """Memory of its own, contiguous as the strides of every packed tensor say."""
    pair = spread(p)
    data = pair.data.clone(memory_format=torch.contiguous_format) if p.rows.full else pair.data.contiguous()
    return Pair(data, pair.mask, pair.payload)


def _become(x: MaskedTensor, pair: Pair) -> None:
    hard = x._family is not None and x._family.hard
    x._packed = x._family = x._entered = x._kin = None
    x._path, x._seen = (), 0
    hold(x, pair)
    if hard:
        x.harden_mask()
