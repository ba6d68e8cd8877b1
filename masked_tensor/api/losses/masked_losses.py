"""A backward pass whose roots have no valid entry computes nothing, and says so.

Nothing waits for an accelerator: whether an entry is valid is copied without blocking, and told by the first backward
pass that finds it there, at the latest when ``strict()`` ends.  A part of a ``mean_over`` is excused: the whole is
asked when it is finished.
"""

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
from torch import Tensor

from ... import compat, layouts, masks
from ...callers import line_of_user
from ...compat import mode_is_active
from ...engine.boundary import intermediates
from ...engine.boundary.autograd_queries import connect
from ...engine.tensor import MaskedTensor, pair_of
from ...engine.transforms import functions
from ...errors import NO_VALID_ROOT, MaskedLossWarning, MaskedValueError
from ...layouts import meshes
from ...patches.first_use import when_first_made
from ...patches.functions import around_backward
from ...settings import current
from ...shared.ranks import group_size, resolve_group


class Sent(NamedTuple):
    """What is on its way from an accelerator."""

    arrival: torch.Event
    some: Tensor  #: whether an entry is valid
    text: str
    strict: bool


class Excuse:
    """The hook of a loss that is a part: whether a backward pass reached it."""

    reached = False

    def __call__(self, gradient: Tensor) -> None:
        self.reached = True


SENT: deque[Sent] = deque()
EXCUSES: WeakSet[Excuse] = WeakSet()  #: those of graphs that there are


def excuse(mean: Tensor) -> None:
    """A backward pass that reaches ``mean`` is not asked for valid roots."""
    if mean.requires_grad:
        hook = Excuse()
        EXCUSES.add(hook)
        mean.register_hook(hook)


def begin(roots: Sequence[Any], inputs: Any, create_graph: bool) -> Callable[[], None] | None:
    """Before a backward pass; gives what is called after it, if only then is known whether it is excused.

    First the masked tensors take the histories of their bases.
    """
    seen = intermediates.State
    if seen.created and (MaskedTensor in map(type, inputs) or intermediates.WATCHED):
        intermediates.check(roots, inputs)
    seen.created = seen.created or create_graph
    root = None
    for root in inputs:
        if type(root) is MaskedTensor and root._alias.history is not None:
            connect(root)
    for root in roots:
        if type(root) is MaskedTensor and root._alias.history is not None:
            connect(root)
    if SENT:
        tell_sent()
    if type(root) is not MaskedTensor:
        return None
    if root._packed is None and root._alias.family is None and not mode_is_active():  # a loss: asked in few frames
        mask = root._pair.mask
        if type(mask) is Tensor and mask.is_cpu and not mask.ndim and mask:
            return None
    some = _any_valid(roots)
    if some is None:
        return None
    excuses = list(EXCUSES)
    if not excuses:
        tell(some, NO_VALID_ROOT)
        return None
    for each in excuses:
        each.reached = False

    def end() -> None:
        if not any(each.reached for each in excuses):
            tell(some, NO_VALID_ROOT)

    return end


def _any_valid(roots: Sequence[Any]) -> Tensor | None:
    """Whether an entry of ``roots`` is valid, a bool tensor; None if that is known, or cannot be."""
    if compat.current_node() is not None or mode_is_active():  # of a pass inside of another; of a tracer
        return None
    found = None
    for root in roots:
        if type(root) is not MaskedTensor:
            return None
        mask: Any = compat.unwrap_transforms(_mask(root))
        if meshes.is_distributed(mask) and all(p.is_replicate() for p in mask.placements):
            mask = meshes.local_part(mask)
        if not compat.has_real_memory(mask) or mask.is_meta or mask.numel() == 0 or masks.is_all_valid(mask):
            return None
        with compat.computed_below(mask):
            some = _any(mask if mask.layout is torch.strided else layouts.values(mask))
            if some.is_cpu:
                if some:
                    return None
                found = some if found is None else found
            else:
                found = some if found is None or found.is_cpu else found | some.to(found.device)
    return found


def _any(mask: Tensor) -> Tensor:
    """``masks.any`` in few calls."""
    return masks.any(mask) if mask.dim() == 0 or mask.numel() == 0 else masks.to_bytes(masks.compact(mask)).amax()


def _mask(root: MaskedTensor) -> Tensor:
    stored = root._packed
    if stored is None:
        return pair_of(root).mask
    return masks.full(stored.values.shape, stored.values.device) if stored.inner is None else stored.inner


def tell(some: Tensor, text: str) -> None:
    """Says ``text`` if ``some`` is False; if it lies on an accelerator, once that is known."""
    strict = current().strict and group_size(resolve_group(None)) == 1  # other ranks would wait for one that raises
    if some.is_cpu:
        _say(some, text, strict)
    elif not _is_captured(some.device):
        arrived, arrival = some.to("cpu", non_blocking=True), torch.Event(some.device)
        arrival.record()
        SENT.append(Sent(arrival, arrived, text, strict))


def _is_captured(device: torch.device | None) -> bool:
    """Whether a CUDA graph is captured, in which CUDA refuses to be asked what has arrived."""
    return device is not None and device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def tell_sent(wait: bool = False) -> None:
    """Says what has arrived from accelerators; with ``wait`` all that was sent.  Nothing is asked in a CUDA graph."""
    if SENT and _is_captured(SENT[0].arrival.device):
        return
    while SENT:
        if wait:
            SENT[0].arrival.synchronize()
        elif not SENT[0].arrival.query():
            return
        _, some, text, strict = SENT.popleft()
        _say(some, text, strict)


def _say(some: Tensor, text: str, strict: bool) -> None:
    if some:
        return
    if strict:
        raise MaskedValueError(text)
    warnings.warn(text, MaskedLossWarning, stacklevel=line_of_user())


def _before_grad(losses: Sequence[Any]) -> None:
    some = _any_valid(losses)
    if some is not None:
        tell(some, NO_VALID_ROOT)


when_first_made(lambda: around_backward(begin))
functions.BEFORE_GRAD.append(_before_grad)
