"""accelerate: the batches that the first rank reads are sent to the others as data and masks; means over ranks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor

from .. import MaskedTensor, as_masked_tensor
from ..extend.libraries import replace
from .places import DISPATCH, RECEIVE, REDUCE
from .wrapping import Function, ratio, sum_and_count


class Sent(NamedTuple):
    """A masked tensor on its way: what accelerate joins, sends and cuts as a tuple of two tensors."""

    data: Tensor
    mask: Tensor


def _taken_apart(x: MaskedTensor) -> Sent:
    return Sent(x.filled(0), x.get_mask())


def _joined(sent: Sent) -> Tensor:
    return as_masked_tensor(sent.data, sent.mask)


def _change(batch: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """``batch`` with each ``kind`` in it changed; itself if there is none."""
    if isinstance(batch, kind):
        return change(batch)
    if isinstance(batch, Mapping):
        values = {key: _change(x, kind, change) for key, x in batch.items()}
        make: Any = type(batch)
        return batch if all(x is batch[key] for key, x in values.items()) else make(values)
    if isinstance(batch, list | tuple):
        items = [_change(x, kind, change) for x in batch]
        if all(x is y for x, y in zip(items, batch, strict=True)):
            return batch
        return type(batch)(*items) if hasattr(batch, "_fields") else type(batch)(items)
    return batch


def _send(fetch: Function) -> Function:
    def fetched(loader: Any, iterator: Iterator[Any]) -> Any:
        return fetch(loader, (_change(batch, MaskedTensor, _taken_apart) for batch in iterator))

    return fetched


def _receive(iterate: Function) -> Function:
    def received(loader: Any) -> Iterator[Any]:
        for batch in iterate(loader):
            yield _change(batch, Sent, _joined)

    return received


class Counted(NamedTuple):
    """The sum of what is valid, and how many those are: both are divided by the number of ranks."""

    sums: Tensor


def _mean(reduce: Function) -> Function:
    def reduced(tensor: Any, reduction: str = "mean", scale: float = 1.0) -> Any:
        if reduction != "mean":
            return reduce(tensor, reduction, scale)
        sent = _change(tensor, MaskedTensor, lambda x: Counted(sum_and_count(x)))
        return _change(reduce(sent, reduction, scale), Counted, lambda counted: ratio(counted.sums))

    return reduced


replace(DISPATCH, _send)
replace(RECEIVE, _receive)
replace(REDUCE, _mean)
