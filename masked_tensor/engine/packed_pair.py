"""The pair of a packed tensor, made anew whenever it is read; what a graph receives from it; what its views are."""

import enum
import weakref
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import errors, packing
from ..compat import mode_is_active, without_modes
from ..pair import Pair, Payload
from ..select import select


class UnpackedCopy(enum.Enum):
    """What a graph is told of a packed input in place of a ``Payload``: it is 0 where masked, and writes there are
    lost."""

    COPY = "copy"


UNPACKED_COPY = UnpackedCopy.COPY
_AS_IT_IS = nullcontext()


def outside_tracers() -> AbstractContextManager[Any]:
    """No mode that sees every op, for a moment; where there is none, which is on each call of a graph, at no cost."""
    return without_modes() if mode_is_active() else _AS_IT_IS


def unpacked_parts(x: Any) -> tuple[Tensor, Tensor]:
    """Data and bytes of the mask of a packed tensor, as a graph takes them.

    They are kept while the tensor is: guards tell the parts of inputs apart by identity, and two that are made only
    for a moment may come to lie at one address.  Not if somebody wrote into them, such as through a graph's output.
    """
    kept = x._parts
    if kept is None or kept[0] is not x._packed or kept[1]._version != kept[3]:
        with outside_tracers():
            pair = packing.unpack(x._packed)
            data = pair.data if pair.payload is Payload.ZERO else select(pair.data, pair.mask, 0)
            data = data.contiguous()  # as the strides of a packed tensor say
            kept = x._parts = x._packed, data, pair.mask.view(torch.uint8), data._version
    return kept[1], kept[2]


class PairOfPacked:
    """``x._pair`` of a packed tensor: not kept, so that what is stored is stored once (a pair shadows this)."""

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is None:
            return self
        if x._packed is None:
            raise errors.not_made()
        if type(x._packed.values) is not Tensor:
            return packing.unpack(x._packed)
        with outside_tracers():  # a tracer reads it under its own modes
            return packing.unpack(x._packed)


@dataclass(frozen=True, slots=True, eq=False)
class ViewStep:
    """One view taken: result ``which`` of the entry's op."""

    entry: Any
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
    """A packed tensor and the views of it, as long as nothing is written."""

    __slots__ = ("graph_input", "kept", "members", "record")

    def __init__(self, root: Any) -> None:
        self.graph_input = root._graph_input
        self.record: packing.Packed = root._packed
        self.members = [weakref.ref(root)]
        self.kept: dict[str, Any] = {}  #: one object for all members, so that they find each other when unpickled

    def living(self) -> list[Any]:
        """The members that somebody still holds, each after its base."""
        return [x for x in (ref() for ref in self.members) if x is not None]

    def add(self, view: Any) -> None:
        """``view`` becomes a member."""
        self.members = [ref for ref in self.members if ref() is not None]
        self.members.append(weakref.ref(view))


@dataclass(frozen=True, slots=True, eq=False)
class PackedView:
    """What a packed tensor that has views, or a view of one, knows of the others."""

    family: PackedFamily
    path: tuple[ViewStep, ...] = ()  #: the views that lead to it
    base: Any = None  #: what it is a view of to autograd; a detached alias of none
