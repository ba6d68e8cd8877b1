"""What aliases share: a tensor and its views have one validity, and under autograd one history.

Results share their inputs' masks, so a mask is never written in place.  The first view makes a *family*.  Until someone
writes, every member keeps the mask its rule gave it.  The first write that changes validity materialises one bool per
element of the memory the root covers; from then on the validity of each member is the view of that buffer with the
member's own size, stride and offset.  The geometry of the data is the geometry of the mask: no view chain is replayed.

The buffer is the family's own and is written in place; who reads a member gets a copy of its part, kept until the next
write.  So a write costs what it writes, a read what it reads, and threads that write disjoint parts lose nothing.

Under autograd a base and its views (not its detached aliases) share a *history*: a tracked write through any of them
gives the base a new history at once, and the other views theirs when they are next read.  A plain tensor and what was
wrapped around it share one in the same way.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter
from typing import Any, cast

import torch
from torch import Tensor

from .. import masks
from ..layouts import meshes
from ..pair import Pair, Payload

AS_IT_IS = nullcontext()
WHEN_SHARED: list[Callable[[], None]] = []  #: called once, before two tensors first share a history
LOCK = threading.Lock()  #: for what is made once, by whichever thread comes first


def outside_inference(data: Tensor) -> AbstractContextManager[None]:
    """What is made inside, for a tensor with this ``data``, is no inference tensor unless ``data`` is one.

    Such a mask could not be saved for backward when inference is over; and a write counts as a new version.
    """
    return _outside() if torch.is_inference_mode_enabled() and not data.is_inference() else AS_IT_IS


@contextmanager
def _outside() -> Iterator[None]:
    with torch.inference_mode(False), torch.no_grad():
        yield


class Family:
    """What the members of an alias family share: validity, and what is known of the masked-out data."""

    def __init__(self, root: Pair) -> None:
        self.root = root
        self.unit = root.data.element_size()  #: bytes of memory per bool of the buffer
        self.offset = meshes.local_part(root.data).storage_offset() * self.unit  #: in bytes
        self.payload = root.payload
        self.buffer: Tensor | None = None
        self.version = 0  #: counts writes to validity, and to what is known of the masked-out data
        self.tracked = 0  #: counts writes that autograd recorded, for members that no history connects
        self.hard = False  #: padding can never become data
        self.members: list[weakref.ref[Any]] = []  #: while compiling: what a write refreshes at once
        self.noted = False  #: its note lies on the memory, memory_families.py
        self.graph_input: Any = False  #: the root is the input of a graph that is being compiled
        self.kept: dict[str, Any] = {}  #: one object for all members, so that they find each other when unpickled
        self.saved: list[Tensor] = []  #: what autograd may have saved of members while they were packed

    def record(self) -> dict[str, Any]:
        """All there is to make the family again: for a pickle, which keeps the identity of what it is given."""
        root, mask = meshes.local_part(self.root.data), meshes.local_mask(self.root.mask, self.root.data)
        self.kept |= {"size": tuple(root.shape), "stride": root.stride(), "start": root.storage_offset()}
        self.kept |= {"dtype": root.dtype, "mask": masks.compact(mask), "payload": self.payload.value}
        self.kept |= {"buffer": self.buffer, "unit": self.unit, "hard": self.hard}
        return self.kept

    @staticmethod
    def of_record(kept: dict[str, Any], data: Tensor) -> "Family":
        """The family of a record, for all that were pickled with it whose ``data`` is still one memory."""
        if "family" not in kept:
            size, stride, start = kept["size"], kept["stride"], kept["start"]
            root = torch.empty(0, dtype=kept["dtype"], device="meta").as_strided(size, stride, start)
            family = Family(Pair(root, masks.expand_to(kept["mask"], size), Payload(kept["payload"])))
            family.buffer, family.unit, family.hard = kept["buffer"], kept["unit"], kept["hard"]
            kept["family"], kept["memory"] = family, data
        made: Family = kept["family"]
        if meshes.shares_local_memory(data, kept["memory"]):
            return made
        other = {k: v for k, v in kept.items() if k not in ("family", "memory")}
        if kept["buffer"] is not None:  # what is no longer one memory is written apart
            other["buffer"] = kept["buffer"].clone()
        return Family.of_record(other, data)

    def forget(self) -> None:
        """Nothing is promised of the masked-out data any more, and never will be: what is ANY stays ANY."""
        if self.payload is Payload.ZERO:
            self.payload = Payload.ANY
            self.version += 1

    def tell_saved(self) -> None:
        """Before a write: what autograd saved of members while they were packed raises when it is read."""
        for values in self.saved:
            torch.autograd.graph.increment_version(values)

    def buffer_view(self, data: Tensor) -> Tensor:
        """The bools of a member's memory; where an element is wider than the unit (complex), in one more dimension."""
        data = meshes.local_part(data)
        if self.buffer is None:
            with LOCK, outside_inference(self.root.data):
                if self.buffer is None:
                    root = self.root
                    self.buffer = masks.storage_mask(
                        meshes.local_mask(root.mask, root.data), meshes.local_part(root.data)
                    )
                    if type(root.mask) is Tensor:  # of the root only the geometry is asked from now on
                        self.root = Pair(root.data, masks.full(root.data.shape, root.mask.device, False))
        width = data.element_size()
        if width < self.unit:  # a real view of complex data: from now on each part has its own bool
            self.buffer = self.buffer.repeat_interleave(self.unit // width)
            self.unit = width
        per = width // self.unit
        start = data.storage_offset() * per - self.offset // self.unit
        if per == 1:
            return self.buffer.as_strided(data.shape, data.stride(), start)
        return self.buffer.as_strided((*data.shape, per), (*(s * per for s in data.stride()), 1), start)

    def joins(self, data: Tensor) -> bool:
        """Whether an element of ``data`` has several bools: a complex number, a wider one; they may differ."""
        return data.element_size() > self.unit

    def live(self, data: Tensor) -> Tensor:
        """The validity of a member as it is and will be: not to be kept.  It is valid where all its memory is."""
        bools = self.buffer_view(data)
        return masks.all(bools, -1) if self.joins(data) else bools

    def refresh(self, pair: Pair) -> Pair:
        """A member's pair after the validity, or what is known of the masked-out data, has changed."""
        mask = pair.mask if self.buffer is None else self.mask_of(pair.data)
        payload = Payload.ANY if self.joins(pair.data) else self.payload  # a masked entry may have a valid part
        return Pair(pair.data, mask, payload)

    def mask_of(self, data: Tensor) -> Tensor:
        """The validity of a member as it is now, for good."""
        with outside_inference(data):
            live = self.live(data)
            mask = live.clone() if 0 not in live.stride() else masks.compact(live).clone().expand(live.shape)
            return mask if type(data) is Tensor else meshes.wrap_local_mask(mask, data)

    def write(self, data: Tensor, mask: Tensor | bool) -> None:
        """Makes ``mask`` the validity of a member's memory.

        The version is raised before, since an interrupt may come right after, and once more for a thread that read
        meanwhile.
        """
        bools = self.buffer_view(data)
        self.version += 1
        if isinstance(mask, bool):
            bools.fill_(mask)
        else:
            mask = meshes.local_mask(mask, data)
            bools.copy_(mask.unsqueeze(-1) if self.joins(data) else mask)
        self.version += 1

    def narrow(self, data: Tensor, mask: Tensor) -> Tensor:
        """Before a member's data is written: valid stays what was and will be. Gives what ``restore`` takes."""
        bools = self.buffer_view(data)
        before = bools.clone()
        self.payload = Payload.ANY
        self.version += 1
        if not masks.is_all_valid(mask):
            bools.bitwise_and_(mask.unsqueeze(-1) if self.joins(data) else mask)
            self.version += 1
        return before

    def restore(self, data: Tensor, before: Tensor | None, payload: Payload) -> None:
        """After a write that failed: validity, and what is known of the masked-out data, are as before ``narrow``."""
        self.version += 1
        if before is not None:
            self.buffer_view(data).copy_(before)
        self.payload = payload
        self.version += 1


def _first() -> None:
    while WHEN_SHARED:
        WHEN_SHARED.pop()()


class History:
    """What a base and its views share under autograd: views hold it and so their base, as in torch; it weakly."""

    __slots__ = ("__weakref__", "_held", "base", "writes")

    def __init__(self, base: Any) -> None:
        if WHEN_SHARED:
            _first()
        self._held = base
        self.base = weakref.ref(base)  # torch swaps no tensor that is referred to weakly: one with views may not be
        self.writes = 0  #: counts writes that autograd recorded

    def follow(self, base: Any) -> None:
        """It is the history of ``base`` from now on, which takes the place of another."""
        self._held, self.base = base, weakref.ref(base)


class WrappedHistory:
    """A history whose base is the plain tensor that a masked one was put around: torch itself records its writes.

    A member's number of writes is the plain tensor's node of the graph, which every recorded write replaces.
    """

    __slots__ = ("plain",)

    def __init__(self, plain: Tensor) -> None:
        _first()
        self.plain = plain

    def base(self) -> Tensor:
        return self.plain

    writes: Any = property(attrgetter("plain.grad_fn"))  # read on every op's way


class ReturnedHistory:
    """Of what a compiled function returned that shares memory with others: how it came from there is not recorded."""

    __slots__ = ("family",)

    def __init__(self, family: Family) -> None:
        self.family = family

    def base(self) -> None:
        return None

    @property
    def writes(self) -> int:
        return self.family.tracked


Shared = History | WrappedHistory | ReturnedHistory


class NoAlias:
    """The record of a tensor that shares memory with no other: nothing can be kept here."""

    __slots__ = ()
    family: Family | None = None  #: set once the tensor has views
    version_seen = 0  #: the family's version that the tensor's pair reflects
    history: Shared | None = None  #: with whom autograd has to keep it connected
    views: Any = None  #: weakly, the history that its views share, while there are any
    writes_seen: Any = 0  #: the number of tracked writes that this member's own history reflects
    basis = False  #: what torch.func makes a Jacobian with: vectors that are valid in one entry at most
    past_autograd = False  #: made by ``x.data``, or a view of that: what was saved of ``x`` sees what is written

    @property
    def is_behind(self) -> bool:
        """Whether a tracked write changed the shared history since the tensor took its own from there."""
        return self.history is not None and self.writes_seen != self.history.writes


class Alias(NoAlias):
    """What a tensor knows of those it shares memory with."""


UNALIASED = cast("Alias", NoAlias())


def alias_of(x: Any) -> Alias:
    """The record of ``x``, to be written; that of a tensor that other threads see is made by :func:`family_of`."""
    if x._alias is UNALIASED:
        x._alias = Alias()
    found: Alias = x._alias
    return found


def family_of(x: Any) -> Family:
    """The alias family of ``x``, which it founds if it has none."""
    if x._alias.family is None:
        with LOCK:
            if x._alias.family is None:
                family = Family(x._pair)
                family.graph_input = x._graph_input
                alias_of(x).family = family
        attend(x)
    founded: Family = x._alias.family
    return founded


def attend(x: Any) -> None:
    """While compiling a write refreshes all members at once: a tracer reads them outside its modes."""
    if type(x._pair.data) is not Tensor:
        x._alias.family.members.append(weakref.ref(x))


def history_of(x: Any) -> Shared | None:
    """The history that ``x`` shares with others: its own as a view, or that of its views, while there are any."""
    alias = x._alias
    found: Shared | None = alias.history
    if found is None and alias.views is not None:
        found = alias.views()
    return found
