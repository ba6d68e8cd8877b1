"""What is known about a mask without reading it, and what was computed from it alone: kept and dropped with it.

A mask that is True everywhere is, on the CPU, a view of one byte, which ``all_true`` gives.  Of a mask that was taken
in it is noted how many entries are valid, in all and at least in the slices along each dimension, so that ``any`` along
it is all valid if each has one.  Counts of its slices, and what else follows from it, are kept once an op has asked.

A mask is never written once a tensor has it.  What is kept may not outlive where it was made: nothing is kept under
transforms and tracers, nor while a CUDA graph is captured, and on a GPU it serves the stream that made it.
"""

import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import settings, shapes
from ..compat import computed_below, in_transform, is_wrapped, mode_is_active, unwrap_transforms

_TRUE = torch.ones((), dtype=torch.bool, device="cpu")  #: what all masks are views of that are known to be True
_true_address = _TRUE.data_ptr
_BY_SHAPE: dict[tuple[int, ...], Tensor] = {}  #: views of it by their shape, the last few that were asked for


@dataclass(slots=True, eq=False)
class Known:
    """What is known about one mask."""

    mask: weakref.ref[Tensor]
    made: dict[Hashable, Any]  #: what was made of it, by what it is, and on a GPU by the stream
    number: int | None = None  #: how many entries are valid
    fewest: dict[int, int] | None = None  #: how many each slice along a dimension has at least


KNOWN: dict[int, Known] = {}  #: by the mask's identity


def is_quiet() -> bool:
    """Whether nobody traces, transforms or watches: an op is what it is called."""
    return not (torch.compiler.is_dynamo_compiling() or mode_is_active() or in_transform())  # Dynamo traces no other


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
    found = _record(mask)
    found.number, found.fewest = number, fewest


def forget(mask: Tensor) -> None:
    """Takes back what is known of ``mask``."""
    KNOWN.pop(id(mask), None)


def number(mask: Tensor) -> int | None:
    """How many entries are valid, if it was noted."""
    found = KNOWN.get(id(mask))
    return found.number if found is not None and found.mask() is mask else None


def any_along(mask: Tensor, dim: int | Sequence[int] | None, keepdim: bool, more_than: float = 0) -> Tensor | None:
    """All True, if it was noted that every slice of ``mask`` along ``dim`` has ``more_than`` so many valid entries."""
    found = KNOWN.get(id(mask))
    if found is None or found.mask() is not mask:
        return None
    if found.number is None:
        return _kept_any(mask, found, dim, keepdim) if found.made and not more_than else None
    fewest: dict[int, int] = found.fewest or {}
    if type(dim) is not int:
        dims = shapes.canonical_dims(dim, mask.dim())
        least = found.number if len(dims) == mask.dim() else max((fewest.get(d, 0) for d in dims), default=0)
        return all_true(tuple(shapes.reduced_shape(mask.shape, dims, keepdim))) if least > more_than else None
    shape = list(mask.shape)
    if fewest.get(dim % len(shape), 0) <= more_than:
        return None
    if keepdim:
        shape[dim] = 1
    else:
        del shape[dim]
    return all_true(tuple(shape))


def keep_any(mask: Tensor, dims: tuple[int, ...], keepdim: bool, some: Tensor) -> None:
    """Keeps what a kernel found on its way: where a slice of ``mask`` along ``dims`` has a valid entry."""
    derive(mask, ("any", dims, keepdim), lambda: some)


def _kept_any(mask: Tensor, found: Known, dim: int | Sequence[int] | None, keepdim: bool) -> Tensor | None:
    key: Hashable = "any", shapes.canonical_dims(dim, mask.dim()), keepdim
    some: Tensor | None = found.made.get(key)
    return found.made.get((stream_of(mask), key)) if some is None else some  # the latter on a GPU


def derive(mask: Tensor, key: Hashable, make: Callable[..., Any], *args: Any) -> Any:
    """``make(*args)``, a tensor or several that follow from ``mask`` and ``key``, once; nobody writes to them.

    At most ``settings.KEPT`` results are kept with a mask, of at most ``settings.KEPT_SIZE`` entries in memory.
    """
    if not mask.is_cpu:
        stream = stream_of(mask) if type(mask) is Tensor and is_quiet() else None
        if stream is None:
            return make(*args)
        key = stream, key
    found = KNOWN.get(id(mask))
    if found is not None and found.mask() is mask:
        value = found.made.get(key)
        if value is not None:
            return value
    value = make(*args)
    if type(mask) is not Tensor or not is_quiet() or mask.is_inference():
        return value
    several = type(value) is tuple
    tensors = value if several else (value,)
    most = settings.FEW if is_all_valid(mask) else settings.KEPT_SIZE  # the former is there for ever
    if any(t is mask or t.is_inference() or _is_larger(t, most) for t in tensors):
        return value
    bare = tuple(t.data for t in tensors)  # a view would keep its mask alive
    kept = _record(mask).made
    if len(kept) >= settings.KEPT:
        kept.clear()
    kept[key] = bare if several else bare[0]
    return kept[key]


def with_rows_of(mask: Tensor, size: int, dim: int = -1) -> Tensor:
    """A mask that is constant along ``dim``, with another size of that; kept with it."""
    if mask.shape[dim] == size:
        return mask
    shape = [*mask.shape]
    shape[dim] = size
    wide: Tensor = derive(mask, ("rows", size, dim), lambda: mask.narrow(dim, 0, 1).expand(shape))
    return wide


def stream_of(x: Tensor) -> int | None:
    """By which stream what is made of ``x`` now can be read later, 0 on the CPU; None: by none that is known.

    What is made while a CUDA graph is captured lies in the memory of that graph.
    """
    if x.is_cpu:
        return 0
    if not x.is_cuda or torch.cuda.is_current_stream_capturing():
        return None
    return torch.cuda.current_stream(x.device).cuda_stream


def _is_larger(x: Tensor, most: int) -> bool:
    return x.numel() > most and x.untyped_storage().nbytes() > most * x.itemsize


def _record(mask: Tensor) -> Known:
    place = id(mask)
    found = KNOWN.get(place)
    if found is None or found.mask() is not mask:
        found = KNOWN[place] = Known(weakref.ref(mask, partial(_drop, KNOWN, place)), {})
    return found


def _drop(every: dict[int, Known], place: int, gone: weakref.ref[Tensor]) -> None:
    """Another mask may have the place by now; of this module no name may be left, at the end of the process."""
    found = every.get(place)
    if found is not None and found.mask is gone:
        del every[place]
