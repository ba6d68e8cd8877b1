"""Calls whose results arrive later: a collective writes into its tensors once it is waited for."""

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed

from ... import errors, layouts
from ...compat import schema, tree_leaves
from ...pair import Pair
from ..boundary.enter_leave import enter
from ..table import Entry
from ..tensor import MaskedTensor, pair_of
from .packed_views import unpack_family
from .recorded import write_recorded

Base: Any = distributed.Work if distributed.is_available() else object


class AsynchronousWork(Base):  # type: ignore[misc]  # a class of torch's own, if torch has it
    """What a caller waits for: all of several works, after which ``write`` is called once."""

    def __init__(self, works: list[Any], write: Callable[[], None]) -> None:
        super().__init__()
        self.works, self.write = works, write
        WAITED_FOR.add(self)  # torch holds only its own half of this object

    def wait(self, *timeout: Any) -> bool:
        """Until the tensors hold what was sent."""
        for work in self.works:
            work.wait(*timeout)
        if self in WAITED_FOR:
            WAITED_FOR.remove(self)
            self.write()
        return True

    def is_completed(self) -> bool:
        """Whether everything is here; it is written by :meth:`wait`."""
        return all(work.is_completed() for work in self.works)

    def is_success(self) -> bool:
        """Whether everything is here, without an error."""
        return all(work.is_success() for work in self.works)

    def _source_rank(self) -> int:
        rank: int = self.works[0]._source_rank()
        return rank

    source_rank = _source_rank


WAITED_FOR: set[AsynchronousWork] = set()


def receive(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``c10d::op_(tensors, ...)``: starts it, and if the call is not asynchronous, waits."""
    names = [a.name for a in schema(entry.overload).arguments]
    args = (*args, *(kwargs[name] for name in names[len(args) :] if name in kwargs))
    sparse = next((x for x in tree_leaves(args) if type(x) is MaskedTensor and layouts.is_sparse(x)), None)
    if sparse is not None:
        raise errors.no_sparse_rule(entry.overload.name(), sparse.layout)
    targets = tree_leaves(args[0])
    if any(type(x) is not MaskedTensor for x in targets):
        raise errors.plain_target(entry.overload.name())
    for x in targets:
        unpack_family(x)
    arrival = entry.rule(*(enter(a, False) for a in args))

    def write() -> None:
        with torch.no_grad():
            for x, new in zip(targets, tree_leaves(arrival.pairs()), strict=True):
                if x._exposed:  # somebody else may see valid values where entries are masked here
                    new = Pair(torch.where(new.mask, new.data, pair_of(x).data), new.mask)
                write_recorded(x, new)

    work: Any = AsynchronousWork([distributed.Work.unbox(work) for work in arrival.works], write)
    if not dict(zip(names, args, strict=False)).get("async_op", True):
        work.wait()
        boxed = arrival.works[-1]
    else:
        boxed = work.boxed()
    return (args[0], boxed) if len(schema(entry.overload).returns) > 1 else boxed
