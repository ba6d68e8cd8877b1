"""What was made of a mask alone is kept with it, and dropped with it.

A mask is never written once a tensor has it.  What is kept may not outlive where it was made: nothing is kept under
transforms and tracers, nor while a CUDA graph is captured, and on a GPU it serves the stream that made it.
"""

import weakref
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import settings
from ..compat import in_transform, mode_is_active
from .known import is_all_valid

#: By a mask's identity: the mask, and what is kept of it.
KEPT: dict[int, tuple[weakref.ref[Tensor], dict[Hashable, Any]]] = {}


def is_quiet() -> bool:
    """Whether nobody traces, transforms or watches: an op is what it is called."""
    return not (torch.compiler.is_dynamo_compiling() or mode_is_active() or in_transform())  # Dynamo traces no other


def derive(mask: Tensor, key: Hashable, make: Callable[..., Any], *args: Any) -> Any:
    """``make(*args)``, a tensor or several that follow from ``mask`` and ``key``, once; nobody writes to them.

    At most ``settings.KEPT`` results are kept with a mask, of at most ``settings.KEPT_SIZE`` entries in memory.
    """
    if type(mask) is not Tensor or not is_quiet():
        return make(*args)
    kept = _kept_with(mask)
    stream = stream_of(mask)
    if kept is None or stream is None:
        return make(*args)
    value = kept.get((stream, key))
    if value is None:
        value = make(*args)
        several = type(value) is tuple
        tensors = value if several else (value,)
        most = settings.FEW if is_all_valid(mask) else settings.KEPT_SIZE  # the former is there for ever
        if any(t is mask or t.is_inference() or _is_larger(t, most) for t in tensors):
            return value
        bare = tuple(t.data for t in tensors)  # a view would keep its mask alive
        value = bare if several else bare[0]
        if len(kept) >= settings.KEPT:
            kept.clear()
        kept[stream, key] = value
    return value


def with_rows_of(mask: Tensor, size: int) -> Tensor:
    """A mask that is constant along the last dimension, with another size of that; kept with it."""
    if mask.shape[-1] == size:
        return mask
    shape = (*mask.shape[:-1], size)
    wide: Tensor = derive(mask, ("rows", size), lambda: mask.narrow(-1, 0, 1).expand(shape))
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


def _kept_with(mask: Tensor) -> dict[Hashable, Any] | None:
    """What is kept with ``mask``; None if nothing can be."""
    place = id(mask)
    found = KEPT.get(place)
    if found is not None and found[0]() is mask:
        return found[1]
    if mask.is_inference():
        return None
    kept: dict[Hashable, Any] = {}
    KEPT[place] = weakref.ref(mask, partial(_drop, KEPT, place)), kept
    return kept


def _drop(every: dict[int, Any], place: int, gone: weakref.ref[Tensor]) -> None:
    """Another mask may have the place by now; of this module no name may be left, at the end of the process."""
    found = every.get(place)
    if found is not None and found[0] is gone:
        del every[place]
