"""Writes that autograd records: the target gets a new history, and so does the base of a view.

What the base remembers of a write through a view is the part that was written; a loop that fills row after row keeps no
copy of the rest.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import masks
from ...layouts import meshes
from ...pair import Pair, Payload
from ...select import select
from .. import graph_inputs
from ..alias_records import UNALIASED, History, ReturnedHistory, Shared, history_of
from ..aliases import keep_hard, restride, unconnected_error, view_geometry, view_memory, write
from ..boundary.enter_leave import MASKED, leave, plain_gradient, renew_history
from ..boundary.user_functions import disconnected_error, running_function
from ..tensor import LOST, MaskedTensor, pair_of
from ..torch_keys import name_masked, node_classes


def write_recorded(target: MaskedTensor, new: Pair) -> MaskedTensor:
    """``target`` with ``new`` written into it, in place; recorded if autograd tracks either, or the base of a view."""
    history = None
    if target._alias is not UNALIASED:
        new, history = keep_hard(target, new), history_of(target)
    base = history.base() if history is not None else None
    check_writable(target, new.data.shape, new.data.dtype, base)
    recorded = target._tracks if history is None else target.requires_grad or (base is not None and base.requires_grad)
    if not (torch.is_grad_enabled() and (recorded or new.data.requires_grad)):
        if history is not None:
            note_write_in_function(history, base)
        write(target, new)
        return target
    graph_inputs.check_not_input(target)
    if type(history) is ReturnedHistory:
        raise unconnected_error("a compiled function returned it, and others hold its memory")
    owner = base if type(base) is MaskedTensor else None
    plain = base if owner is None else None
    if plain is not None and target.requires_grad and not plain.requires_grad and target.numel() < plain.numel():
        raise unconnected_error("it was wrapped inside a torch.autograd.Function, or a checkpoint that is one")
    if target._alias.family is not None:
        target._alias.family.tracked += 1
    if plain is not None:
        return _write_into_plain_base(target, new, plain)
    through = None if owner is None or owner is target else _geometry(target, owner)
    result: MaskedTensor = _Write.apply(target, new.data, new.mask, new.payload)
    if type(history) is History:
        history.writes += 1
        target._alias.writes_seen = history.writes
        if through is not None and owner is not None:
            _WriteThroughView.apply(owner, new.data, new.mask, through)
            owner._alias.writes_seen = history.writes
    return result


def _write_into_plain_base(target: MaskedTensor, new: Pair, base: Tensor) -> MaskedTensor:
    """A write into memory that a plain tensor holds: torch records it there, and ``target`` has it from there.

    Masked-out data stays as it is, and so does its gradient.
    """
    part = view_memory(base, view_geometry(target, base, base.storage_offset()))
    part.copy_(torch.where(new.mask, new.data, part))
    write(target, Pair(pair_of(target).data, new.mask))
    renew_history(target)
    return target


def note_write_in_function(history: Shared, base: Tensor | None) -> None:
    """Before an untracked write to a member: counts one that a user's Function will mark as dirty, or refuses it."""
    if base is not None and not base.requires_grad:
        return
    found = running_function(history)
    if found is None:
        return
    function, given = found
    if type(history) is not History or given is not base:
        raise disconnected_error(function, "writes in place into a view of a masked tensor, or into what was wrapped")
    history.writes += 1  # views will take the history that torch gives their base when the forward is over
    given._alias.writes_seen = history.writes


def check_writable(target: MaskedTensor, shape: Sequence[int], dtype: torch.dtype, base: Tensor | None) -> None:
    """Raises, before anything is written, if it does not fit or a leaf that requires grad would change."""
    if shape != target.shape:
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}")
    if dtype is not target.dtype and not torch.can_cast(dtype, target.dtype):
        raise RuntimeError(f"result type {dtype} can't be cast to the desired output type {target.dtype}")
    if torch.is_grad_enabled():
        if (target._tracks if target._alias.history is None else target.requires_grad) and target.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if base is not None and base is not target and base.requires_grad and base.is_leaf:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def change_geometry(target: MaskedTensor, new: Pair, name: str) -> MaskedTensor:
    """In-place change of shape (``x.t_()``)."""
    if torch.is_grad_enabled() and target.requires_grad:
        raise RuntimeError(f"{name} on a masked tensor that requires grad: use x = x.{name.rstrip('_')}(...)")
    restride(target, new)
    if target._steps is not None:
        target._steps = LOST
    return target


def _geometry(view: MaskedTensor, base: MaskedTensor) -> tuple[Any, ...]:
    """Where in the memory of ``base`` its ``view`` lies."""
    data = base._pair.data
    if meshes.is_distributed(data):
        raise unconnected_error("it lies in parts on a device mesh")
    if _overlaps_itself(data):
        raise unconnected_error("its base has several elements at one place of its memory")
    return data.stride(), view_geometry(view, base, 0)


def _overlaps_itself(data: Tensor) -> bool:
    """Whether elements may share a place, as those of an expanded tensor do; torch also loses gradients there."""
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(data.stride(), data.shape, strict=True) if n != 1):
        if stride <= reach and data.numel():
            return True
        reach += stride * (size - 1)
    return False


class _Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, target: MaskedTensor, data: Tensor, mask: Tensor, payload: Payload) -> MaskedTensor:
        ctx.save_for_backward(mask)
        ctx.mark_dirty(target)
        ctx.dtype = data.dtype
        write(target, Pair(data.detach(), mask, payload))
        return target

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return None, plain_gradient(grad, mask).to(ctx.dtype), None, None


class _WriteThroughView(torch.autograd.Function):
    """The base of a view into which ``data`` was written: the gradient of the part is that of ``data``.

    What was valid before is not kept: the gradient that goes on is valid everywhere, 0 in the part and where it is
    masked, and takes the mask of whatever it is added to or arrives at.  So a loop that fills rows keeps what it
    writes.
    """

    @staticmethod
    def forward(ctx: Any, base: MaskedTensor, data: Tensor, mask: Tensor, through: tuple[Any, ...]) -> MaskedTensor:
        ctx.save_for_backward(mask)
        ctx.mark_dirty(base)
        ctx.dtype, ctx.through = data.dtype, through
        return base

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        whole = plain_gradient(grad, None)
        stride, place = ctx.through
        rest = whole.new_empty_strided(whole.shape, stride).copy_(whole)  # with the gaps that the base has in memory
        part = rest.as_strided(*place)
        ours = select(part, mask, 0).to(ctx.dtype)
        part.zero_()
        if type(grad) is MaskedTensor:
            return leave(Pair(rest, masks.full(rest.shape, rest.device), Payload.ZERO)), ours, None, None
        return rest, ours, None, None


MASKED.update(node_classes(_Write, _WriteThroughView))
name_masked(MASKED)
