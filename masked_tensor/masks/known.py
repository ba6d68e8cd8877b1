"""What is known of masks on the CPU without a look at them.

A mask that is True everywhere is a view of one byte, which ``all_true`` gives.  And of a mask that was taken in it is
noted how many entries are valid, in all and at least in the slices along each dimension, so that ``any`` along it is
all valid if each has one.  Counts of its slices are kept, once an op has asked for them.  What cannot know (tracing,
torch.func, a GPU) treats such masks as any other.
"""

import weakref
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from .. import settings, shapes
from ..compat import computed_below, is_wrapped, unwrap_transforms

_TRUE = torch.ones((), dtype=torch.bool, device="cpu")  #: what all masks are views of that are known to be True
_true_address = _TRUE.data_ptr
_BY_SHAPE: dict[tuple[int, ...], Tensor] = {}  #: views of it by their shape, the last few that were asked for
Kept = tuple[Tensor, ...]
#: By the mask's identity: how many valid entries each slice along a dimension has at least, how many there are in all,
#: and what is kept.
PRESENT: dict[int, tuple[weakref.ref[Tensor], dict[int, int], int, dict[Hashable, Kept]]] = {}


def all_true(shape: tuple[int, ...]) -> Tensor:
    """The mask of ``shape`` that is known to be True everywhere; nobody writes to it."""
    found = _BY_SHAPE.get(shape)
    if found is None:
        if len(_BY_SHAPE) >= settings.SHAPES:
            _BY_SHAPE.clear()
        with computed_below(_TRUE):
            found = _BY_SHAPE[shape] = _TRUE.expand(shape)
    return found


def is_all_valid(mask: Tensor) -> bool:
    """Whether ``mask`` is known to be True everywhere, by where it lies; False says nothing."""
    if type(mask) is not Tensor or torch.compiler.is_dynamo_compiling():
        return False
    if is_wrapped(mask):  # then it has no address, and to ask for it costs an exception: 150 us
        mask = unwrap_transforms(mask)
    try:
        return mask.data_ptr() == _true_address()
    except RuntimeError:  # sparse
        return False


def note(mask: Tensor, fewest: dict[int, int], number: int) -> None:
    """Notes that ``number`` entries are valid, and how many each slice along a dimension has at least."""
    place = id(mask)
    PRESENT[place] = weakref.ref(mask, lambda _: PRESENT.pop(place, None)), fewest, number, {}


def forget(mask: Tensor) -> None:
    """Takes back what was noted of ``mask``."""
    PRESENT.pop(id(mask), None)


def number(mask: Tensor) -> int | None:
    """How many entries are valid, if it was noted."""
    found = PRESENT.get(id(mask))
    return found[2] if found is not None and found[0]() is mask else None


def keep(mask: Tensor, key: Hashable, make: Callable[[], Kept]) -> Kept:
    """What ``make`` computes of ``mask``, once for each ``key`` if something was noted of it; nobody writes to it."""
    found = PRESENT.get(id(mask))
    if found is None or found[0]() is not mask:
        return make()
    value = found[3].get(key)
    if value is None:
        with computed_below(mask):
            value = make()
        if len(found[3]) >= settings.KEPT:
            found[3].clear()
        if all(type(t) is Tensor and not t.is_inference() for t in value):  # which no graph could save
            value = found[3][key] = tuple(t.data for t in value)  # a view would keep its mask alive
    return value


def any_along(mask: Tensor, dim: int | Sequence[int] | None, keepdim: bool, more_than: float = 0) -> Tensor | None:
    """All True, if it was noted that every slice of ``mask`` along ``dim`` has ``more_than`` so many valid entries."""
    found = PRESENT.get(id(mask))
    if found is None or found[0]() is not mask:
        return None
    fewest = found[1]
    if type(dim) is not int:
        dims = shapes.canonical_dims(dim, mask.dim())
        least = found[2] if len(dims) == mask.dim() else max((fewest.get(d, 0) for d in dims), default=0)
        return all_true(tuple(shapes.reduced_shape(mask.shape, dims, keepdim))) if least > more_than else None
    shape = list(mask.shape)
    if fewest.get(dim % len(shape), 0) <= more_than:
        return None
    if keepdim:
        shape[dim] = 1
    else:
        del shape[dim]
    return all_true(tuple(shape))
