"""Enter and leave: the two ports between masked tensors and the plain tensors rules work on.

Autograd records the rule's plain ops; the ports connect that record with the masked tensors outside.  The gradient of a
MaskedTensor is a MaskedTensor with the tensor's own mask and a ZERO payload; the gradient of a plain tensor is plain.
They are used only where a gradient is tracked.
"""

from collections.abc import Sequence
from typing import Any, overload

import torch
from torch import Tensor

from .. import layouts, masks
from ..compat import transforming
from ..pair import Pair, Payload
from ..rows import Packed
from ..select import select
from . import aliasing, packing
from .dispatcher import nodes_of
from .foreign import Gates
from .members import restride, write
from .tensor import MaskedTensor, pair_of, wrap


@overload
def enter(value: MaskedTensor, recording: bool) -> Pair: ...
@overload
def enter(value: Any, recording: bool) -> Any: ...
def enter(value: Any, recording: bool) -> Any:
    """A masked tensor as a Pair of plain tensors (also inside lists); anything else unchanged."""
    kind = type(value)
    if kind is MaskedTensor:
        if value._packed is not None:
            return packing.spread(value, recording, enter)
        pair = pair_of(value)
        if recording:
            if value._history is not None and value._born != value._history.writes:
                renew(value)
            if not value.requires_grad:
                return pair
            return Pair(entered(value, pair), pair.mask, pair.payload)
        return pair
    if kind is list or kind is tuple:
        return kind([enter(v, recording) for v in value])
    return value


def entered(value: MaskedTensor, pair: Pair) -> Tensor:
    """The plain data of a tracked tensor.

    Where it is used several times, all uses share it: their gradients are then added as plain tensors, in place.  A
    leaf would be kept alive by its own record.
    """
    if value.is_leaf or transforming() or type(pair.data) is not Tensor:
        if not value.is_leaf and not transforming():
            known(value)
        result: Tensor = _Enter.apply(value)
        return result
    shared = value._entered
    if shared is None or shared[0] is not pair or shared[1] != value._version:
        known(value)
        shared = value._entered = (pair, value._version, _Enter.apply(value))
    data: Tensor = shared[2]
    return data


def known(value: MaskedTensor) -> None:
    """A tracked tensor that some other code computed: sees to the gradient that it will be handed."""
    if type(value.grad_fn) not in MASKED and value.grad_fn is not None and not value.is_meta:
        GATES.meet(value.grad_fn)


@overload
def leave(value: Pair | Packed) -> MaskedTensor: ...
@overload
def leave(value: Any) -> Any: ...
def leave(value: Any) -> Any:
    """A Pair (also inside tuples and lists) as a masked tensor, tracked if its data is; anything else unchanged."""
    kind = type(value)
    if kind is Pair:
        if value.data.requires_grad and torch.is_grad_enabled():
            return _Leave.apply(value.data, value.mask, value.payload)
        return wrap(value)
    if kind is tuple or kind is list:
        return kind([leave(v) for v in value])
    if kind is Packed:
        return packing.leave(value, enter)
    return value


def assign(target: MaskedTensor, new: Pair) -> MaskedTensor:
    """``target`` with ``new`` written into it, in place; recorded if autograd tracks either, or the base of a view."""
    new = aliasing.hardened(pair_of(target), target._family, new)
    history = target._history
    base = history.base() if history is not None else None
    check_writable(target, new.data.shape, new.data.dtype, base)
    tracked = target.requires_grad or new.data.requires_grad or (base is not None and base.requires_grad)
    if not (tracked and torch.is_grad_enabled()):
        write(target, new)
        return target
    through = None if base is None or base is target else written_through(base, target, new.data)
    result: MaskedTensor = _Assign.apply(target, new.data, new.mask, new.payload)
    if history is not None:
        history.writes += 1
        target._born = history.writes
        if through is not None and base is not None:
            _Rebase.apply(base, through, pair_of(base).mask)
            base._born = history.writes
    return result


def check_writable(target: MaskedTensor, shape: Sequence[int], dtype: torch.dtype, base: MaskedTensor | None) -> None:
    """Raises, before anything is written, if it does not fit or a leaf that requires grad would change."""
    if shape != target.shape:
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}")
    if not torch.can_cast(dtype, target.dtype):
        raise RuntimeError(f"result type {dtype} can't be cast to the desired output type {target.dtype}")
    if torch.is_grad_enabled():
        if target.requires_grad and target.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if base is not None and base is not target and base.requires_grad and base.is_leaf:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def written_through(base: MaskedTensor, view: MaskedTensor, data: Tensor) -> Tensor:
    """What ``base`` holds after ``data`` was written into its ``view``, as a function of both."""
    old = enter(base, True).data
    copy = old.clone()
    if copy.stride() != old.stride():
        raise _unconnected("its base does not own a dense memory")
    _seen_through(copy, view, base, 0).copy_(data)
    return copy


def renew(view: MaskedTensor) -> None:
    """Gives a view the history of its base, which was written since."""
    assert view._history is not None
    base = view._history.base()
    if base is None:
        raise _unconnected("memory that it shares was written by another view of a base that is gone")
    if base.requires_grad:
        data = enter(base, True).data
        _Rebase.apply(view, _seen_through(data, view, base, data.storage_offset()), pair_of(view).mask)
    view._born = view._history.writes


def _seen_through(data: Tensor, view: MaskedTensor, base: MaskedTensor, start: int) -> Tensor:
    """``data``, which has the geometry of ``base``, seen as ``view`` sees it."""
    inner, outer = view._pair.data, base._pair.data
    if inner.dtype is not outer.dtype or inner.is_conj() != outer.is_conj() or inner.is_neg() != outer.is_neg():
        raise _unconnected("it reads its base as another dtype")
    return data.as_strided(inner.shape, inner.stride(), inner.storage_offset() - outer.storage_offset() + start)


def _unconnected(reason: str) -> RuntimeError:
    return RuntimeError(
        f"a gradient through this view of a masked tensor would be lost: {reason}; assign through the base "
        "(base[index] = value), take the view again, work on a clone, or write under torch.no_grad()"
    )


def become(target: MaskedTensor, new: Pair, name: str) -> MaskedTensor:
    """In-place change of shape (``x.t_()``)."""
    if torch.is_grad_enabled() and target.requires_grad:
        raise RuntimeError(f"{name} on a masked tensor that requires grad: use x = x.{name.rstrip('_')}(...)")
    restride(target, new)
    return target


def plain_gradient(grad: Tensor, mask: Tensor) -> Tensor:
    """A gradient arriving from outside as plain data that is 0 outside ``mask``."""
    if layouts.is_sparse(mask):
        return layouts.zeroed(grad._pair.data if type(grad) is MaskedTensor else grad, mask)
    if type(grad) is not MaskedTensor:
        return select(grad, mask, 0)
    pair: Pair = enter(grad, torch.is_grad_enabled())
    if masks.same(pair.mask, mask):
        return pair.data if pair.payload is Payload.ZERO else select(pair.data, mask, 0)
    return select(pair.data, masks.both(pair.mask, mask), 0)


# Entering and leaving save no tensors, as views do not: two losses may go back through one wrapped input, and a
# checkpoint's second run may share the first run's entry.  The masks belong to the tensors on both sides anyway.


class _Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: MaskedTensor) -> Tensor:
        pair = pair_of(x)
        ctx.mask = pair.mask
        return pair.data.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return leave(Pair(grad, ctx.mask, Payload.ZERO))  # the rules' gradient contract: already 0 outside the mask


class _Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, payload: Payload) -> MaskedTensor:
        ctx.mask = mask
        return wrap(Pair(data.detach(), mask, payload))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return plain_gradient(grad, ctx.mask), None, None


class _Assign(torch.autograd.Function):
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


class _Rebase(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, target: MaskedTensor, data: Tensor, mask: Tensor) -> MaskedTensor:
        ctx.save_for_backward(mask)
        ctx.mark_dirty(target)  # its memory was written by another member of its family
        return target

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        (mask,) = ctx.saved_tensors
        return None, plain_gradient(grad, mask), None


MASKED = nodes_of(_Leave, _Assign, _Rebase, *packing.MASKED)
GATES = Gates(enter, leave, plain_gradient, MASKED)
