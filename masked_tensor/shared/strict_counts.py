"""Inside of ``strict()``: results of ``x.new_ones(n)`` and ``x.new_full`` of a masked tensor must not be counted.

It is valid everywhere, also where ``x`` is masked, so a number of entries that is made of it is too large.  Such a
tensor is known by the memory of its mask, which views, conversions and products with numbers share with it.  A rule
that counts asks :data:`KNOWN` first, which is empty while nobody uses ``strict()``.
"""

from collections.abc import Sequence

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from .. import errors, masks
from ..pair import Pair
from ..settings import current

KNOWN: set[StorageWeakRef] = set()  #: the memory of their masks, weakly


def remember(x: Pair, made: Pair) -> None:
    """``made`` came of ``x``, which has masked entries along the dimensions that they share."""
    if (
        not current().strict
        or type(x.mask) is not Tensor
        or x.mask.is_meta
        or not _along(made.data.shape, x.mask.shape)
    ):
        return
    if bool(masks.compact(x.mask).all()):  # reads the mask, as all of strict() does
        return
    _forget()
    KNOWN.add(_memory(made))


def refuse(op: str, value: object) -> None:
    """Raises if ``op`` would count such a tensor."""
    if not current().strict:
        _forget()
    elif type(value) is Pair and type(value.mask) is Tensor and _memory(value) in KNOWN:
        raise errors.counts_made(op)


def _memory(x: Pair) -> StorageWeakRef:
    return StorageWeakRef(x.mask.untyped_storage())


def _forget() -> None:
    """What is gone is known no longer."""
    KNOWN.difference_update([known for known in KNOWN if known.expired()])


def _along(made: Sequence[int], size: Sequence[int]) -> bool:
    """Whether the dimensions of ``made``, those of size 1 left out, are dimensions of ``size``, in this order."""
    rest, wide = iter(size), [n for n in made if n != 1]
    return bool(wide) and all(n in rest for n in wide)
