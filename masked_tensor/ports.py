"""Enter and leave: the two ports between masked tensors and the plain tensors rules work on.

Autograd records the rule's plain ops; the ports connect that record with the masked tensors outside.  The gradient of a
MaskedTensor is a MaskedTensor with the tensor's own mask and a ZERO payload; the gradient of a plain tensor is plain.
They are used only where a gradient is tracked.
"""

from typing import Any

import torch
from torch import Tensor

from . import masks
from .pair import Pair, Payload
from .select import select
from .tensor import MaskedTensor, pair_of, wrap, write


def enter(value: Any, recording: bool) -> Any:
    """A masked tensor as a Pair of plain tensors (also inside lists); anything else unchanged."""
    kind = type(value)
    if kind is MaskedTensor:
        pair = pair_of(value)
        if recording and value.requires_grad:
            check_fresh(value)
            return Pair(_Enter.apply(value), pair.mask, pair.payload)
        return pair
    if kind is list or kind is tuple:
        return kind([enter(v, recording) for v in value])
    return value


def leave(value: Any) -> Any:
    """A Pair (also inside tuples and lists) as a masked tensor, tracked if its data is; anything else unchanged."""
    kind = type(value)
    if kind is Pair:
        if value.data.requires_grad and torch.is_grad_enabled():
            return _Leave.apply(value.data, value.mask, value.payload)
        return wrap(value)
    if kind is tuple or kind is list:
        return kind([leave(v) for v in value])
    return value


def assign(target: MaskedTensor, new: Pair) -> MaskedTensor:
    """``target`` with ``new`` written into it, in place; recorded if autograd tracks either."""
    check_writable(target, new)
    if torch.is_grad_enabled() and (target.requires_grad or new.data.requires_grad):
        if target._family is not None:
            target._family.tracked += 1
            target._born = target._family.tracked
        return _Assign.apply(target, new.data, new.mask, new.payload)  # type: ignore[no-any-return]
    write(target, new)
    return target


def check_writable(target: MaskedTensor, new: Pair) -> None:
    """Raises, before anything is written, if ``new`` does not fit or a gradient would be lost."""
    if new.data.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(new.data.shape)}"
        )
    if not torch.can_cast(new.data.dtype, target.dtype):
        raise RuntimeError(f"result type {new.data.dtype} can't be cast to the desired output type {target.dtype}")
    if torch.is_grad_enabled():
        if target.requires_grad and target.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        view = target._family is not None and target._family.root.data is not target._pair.data
        if view and (target.requires_grad or new.data.requires_grad):
            raise RuntimeError(
                "an in-place operation on a view of a masked tensor would lose a gradient; assign through the base "
                "(base[index] = value), work on a clone, or write under torch.no_grad()"
            )


def check_fresh(value: MaskedTensor) -> None:
    """Raises if ``value`` is a view whose base was since written to under autograd: its history is stale."""
    if value._family is not None and value._born != value._family.tracked:
        raise RuntimeError(
            "this view was taken before a tracked in-place write to its base, so its gradient history is stale; "
            "take the view again after the write"
        )


def plain_gradient(grad: Tensor, mask: Tensor) -> Tensor:
    """A gradient arriving from outside as plain data that is 0 outside ``mask``."""
    if type(grad) is not MaskedTensor:
        return select(grad, mask, 0)
    pair: Pair = enter(grad, torch.is_grad_enabled())
    if masks.same(pair.mask, mask):
        return pair.data if pair.payload is Payload.ZERO else select(pair.data, mask, 0)
    return select(pair.data, masks.both(pair.mask, mask), 0)


class _Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: MaskedTensor) -> Tensor:  # type: ignore[override]
        pair = pair_of(x)
        ctx.save_for_backward(pair.mask)
        return pair.data.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        (mask,) = ctx.saved_tensors
        return leave(Pair(grad, mask, Payload.ZERO))  # the rules' gradient contract: already 0 outside the mask


class _Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, payload: Payload) -> MaskedTensor:  # type: ignore[override]
        ctx.save_for_backward(mask)
        return wrap(Pair(data.detach(), mask, payload))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (mask,) = ctx.saved_tensors
        return plain_gradient(grad, mask), None, None


class _Assign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, target: MaskedTensor, data: Tensor, mask: Tensor, payload: Payload) -> MaskedTensor:  # type: ignore[override]
        ctx.save_for_backward(mask)
        ctx.mark_dirty(target)
        ctx.dtype = data.dtype
        write(target, Pair(data.detach(), mask, payload))
        return target

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None, None]:  # type: ignore[override]
        (mask,) = ctx.saved_tensors
        return None, plain_gradient(grad, mask).to(ctx.dtype), None, None
