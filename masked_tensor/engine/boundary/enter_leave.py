"""Enter and leave: the two Functions between masked tensors and the plain tensors rules work on.

Autograd records the rule's plain ops; the two connect that record with the masked tensors outside.  The gradient of a
MaskedTensor is a MaskedTensor with the tensor's own mask, 0 where it is masked; the gradient of a plain tensor is
plain. They are used only where a gradient is tracked.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, overload

import torch
from torch import Tensor

from ... import layouts, masks, settings
from ...compat import any_requires_grad, in_functorch, in_transform
from ...packing import Packed
from ...pair import Pair, Payload
from ...select import ENTER_NODES, select, zero_masked_inplace
from ..alias_records import UNALIASED
from ..aliases import are_current, unconnected_error, view_geometry, view_memory
from ..tensor import MaskedTensor, add_members, pair_of, set_pair, wrap
from ..torch_keys import (
    below_transforms,
    direct_apply,
    gradient_is_shared,
    name_masked,
    node_classes,
    owns_gradient,
)
from . import packed as packed_boundary
from .packed import SEQUENCES
from .tangents import give_tangent, take_tangent
from .user_functions import GradientHooks, disconnected_error, running_function


@overload
def enter(value: MaskedTensor, recording: bool) -> Pair: ...
@overload
def enter(value: Any, recording: bool) -> Any: ...
def enter(value: Any, recording: bool) -> Any:
    """A masked tensor as a Pair of plain tensors (also inside lists); anything else unchanged."""
    kind = type(value)
    if kind is MaskedTensor:
        if value._packed is not None:
            return packed_boundary.unpack(value, recording)
        return enter_masked(value, recording)
    if kind in SEQUENCES:
        return kind([enter(v, recording) for v in value])
    return value


def enter_masked(value: MaskedTensor, recording: bool) -> Pair:
    """As ``enter``, for a masked tensor that is not packed: this is on every op's way."""
    alias, pair = value._alias, value._pair
    if alias is not UNALIASED:
        family = alias.family
        if family is not None and alias.version_seen != family.version:
            pair = pair_of(value)
        if alias.history is not None and alias.writes_seen != alias.history.writes:
            renew_history(value, recording)
    if recording and value._tracks:
        return Pair(tracked_data(value, pair), pair.mask, pair.payload)
    return pair


def enter_each(values: Sequence[Any], recording: bool) -> list[Any] | None:
    """The elements of a list, entered, without a call for each; None if one is packed."""
    if values and type(values[0]) is MaskedTensor and {MaskedTensor}.issuperset(map(type, values)):  # at the speed of C
        if any(map(_PACKED, values)):
            return None
        if are_current(values) and not (recording and any_requires_grad(*values)):
            return list(map(_PAIR, values))
    found = []
    for v in values:
        kind = type(v)
        if kind is MaskedTensor:
            if v._packed is not None:
                return None
            v = v._pair if v._alias is UNALIASED and not (recording and v._tracks) else enter_masked(v, recording)
        elif kind in SEQUENCES:
            v = enter_each(v, recording)
            if v is None:
                return None
        found.append(v)
    return found


_PAIR, _PACKED = attrgetter("_pair"), attrgetter("_packed")


def tracked_data(value: MaskedTensor, pair: Pair) -> Any:
    """The plain data of a tracked tensor.

    Where it is used several times, all uses share it: their gradients are then added as plain tensors, in place.  A
    leaf would be kept alive by its own record.
    """
    shared = value._graph_entry
    if in_transform():
        if in_functorch():
            with below_transforms():
                return tracked_data(value, pair)
        return give_tangent(_Enter.apply(value, True), take_tangent(pair.data)[1])
    if shared is None or shared[0] is not pair or shared[1] != value._version:
        node = value._node
        if node is not None:
            watch_grad_fn(value)
        # With a version that was entered before, validity was written past autograd.
        shared = pair, value._version, record_enter(value, shared is None or shared[1] != value._version)
        if node is not None and type(pair.data) is Tensor:
            value._graph_entry = shared
    return shared[2]


def watch_grad_fn(value: MaskedTensor) -> Any:
    """The node of a tracked tensor; where some other code computed it, sees to the gradient that it will be handed."""
    node = value._node
    if type(node) not in MASKED and node is not None and not value.is_meta:
        GATES.meet(node)
    return node


def enter_to_view(x: MaskedTensor, recording: bool) -> tuple[Any, bool]:
    """As ``enter``, for a view of ``x`` to be taken; and whether its mask is *live*, not to be kept.

    A mask that was written since it was last read is not copied as a whole to see a part of it.
    """
    alias = x._alias
    family = alias.family
    if family is None or family.buffer is None or alias.version_seen == family.version:
        return enter(x, recording), False
    data = x._pair.data
    if (
        type(data) is not Tensor
        or family.joins(data)
        or (recording and x._tracks and x._node is None)
        or in_transform()
    ):
        return enter(x, recording), False
    live = family.live(data)
    if alias.is_behind:
        renew_history(x, recording)
    if recording and x._tracks:
        shared = x._graph_entry
        if shared is None or shared[0] is not None or shared[1] != x._version:
            watch_grad_fn(x)
            shared = x._graph_entry = (None, x._version, record_enter(x, False))
        data = shared[2]
    return Pair(data, live, family.payload), True


@overload
def leave(value: Pair | Packed, live: bool = False) -> MaskedTensor: ...
@overload
def leave(value: Any, live: bool = False) -> Any: ...
def leave(value: Any, live: bool = False) -> Any:
    """A Pair (also inside tuples and lists) as a masked tensor, tracked if its data is; anything else unchanged."""
    kind = type(value)
    if kind is Pair:
        if value.data.requires_grad and torch.is_grad_enabled():
            if not in_transform():
                return record_leave(value.data, value.mask, value.payload, live)
            if not in_functorch():
                return _leave_dual(value, live)
        return wrap(value)
    if kind is tuple or kind is list:
        return kind([leave(v, live) for v in value])
    if kind is Packed:
        return packed_boundary.leave_packed(value)
    return value


def _leave_dual(value: Pair, live: bool) -> MaskedTensor:
    data, tangent = take_tangent(value.data)
    result: MaskedTensor = _Leave.apply(data, value.mask, value.payload, live)
    if tangent is not None:
        set_pair(result, Pair(give_tangent(pair_of(result).data, tangent), value.mask, value.payload))
    return result


def renew_history(view: MaskedTensor, recording: bool = True) -> None:
    """Gives a view the history of its base, which was written since."""
    alias = view._alias
    assert alias.history is not None
    base = alias.history.base()
    if not recording:  # nobody asks for its history, unless torch took the old one into a user's Function
        found = running_function(alias.history) if base is None or base.requires_grad else None
        if found is not None and found[1] is view:
            raise disconnected_error(found[0], "reads a view whose base was written since it was taken")
        return
    if base is None:
        raise unconnected_error("memory that it shares was written by another, and its base is not known")
    if base.requires_grad:
        data = enter_to_view(base, True)[0].data if type(base) is MaskedTensor else base
        (_Renew.apply if in_transform() else record_renew)(
            view, view_memory(data, view_geometry(view, base, data.storage_offset())), pair_of(view).mask
        )
    alias.writes_seen = alias.history.writes


def connect_view(view: MaskedTensor) -> None:
    """Before a compiled function is given ``view``: nobody looks at its history after."""
    if view._alias.is_behind and torch.is_grad_enabled() and type(view._pair.data) is Tensor:
        renew_history(view)


def plain_gradient(grad: Tensor, mask: Tensor | None) -> Tensor:
    """A gradient arriving from outside as plain data that is 0 outside ``mask``; without one, outside its own."""
    if mask is None:
        if type(grad) is not MaskedTensor:
            return grad
        mask = pair_of(grad).mask
    if type(grad) is MaskedTensor and grad._packed is None and grad._alias is UNALIASED:
        found = grad._pair
        if found.mask is mask and found.payload is Payload.ZERO and not (grad._tracks and torch.is_grad_enabled()):
            return found.data
    if mask.layout is not torch.strided:
        return layouts.zero_masked_values(grad._pair.data if type(grad) is MaskedTensor else grad, mask)
    if type(grad) is not MaskedTensor:
        return select(grad, mask, 0)
    pair: Pair = enter(grad, torch.is_grad_enabled())
    if masks.same_memory(pair.mask, mask):
        return pair.data if pair.payload is Payload.ZERO else select(pair.data, mask, 0)
    return select(pair.data, masks.logical_and(pair.mask, mask), 0)


# Entering and leaving save no tensors, as views do not: two losses may go back through one wrapped input, and a
# checkpoint's second run may share the first run's entry.  The masks belong to the tensors on both sides anyway.


class _Enter(torch.autograd.Function):
    """With ``settled`` the mask is known, and is the gradient's; else the gradient is valid everywhere, with zeros."""

    @staticmethod
    def forward(ctx: Any, x: MaskedTensor, settled: bool) -> Tensor:
        pair = pair_of(x) if settled else x._pair
        ctx.mask = pair.mask if settled else None
        ctx.leaf = x._node is None
        ctx.clears = None  # see ``guard``, by which a rule asks for it
        return pair.data.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        if ctx.mask is None:  # cleared where it arrives: somebody may have given it to a view as plain data
            return leave(Pair(grad, masks.full(grad.shape, grad.device))), None
        if ctx.clears is not None:
            own = type(size := grad.numel()) is int and size >= settings.RECORDED and owns_gradient(grad)
            grad = zero_masked_inplace(grad, ctx.clears) if own else select(grad, ctx.clears, 0)
        elif ctx.leaf and gradient_is_shared(grad):  # a new tensor around it would be kept as .grad, its memory shared
            grad = masks.compact(grad).clone().expand(grad.shape)
        return leave(Pair(grad, ctx.mask, Payload.ZERO)), None  # the rules' contract: already 0 outside the mask


class _Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, payload: Payload, live: bool) -> MaskedTensor:
        ctx.mask = None if live else mask
        return wrap(Pair(data.detach(), mask, payload))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return plain_gradient(grad, ctx.mask), None, None, None


class _LeaveClosed(torch.autograd.Function):
    """As ``_Leave``, of a result whose rule knows the gradient of ``data``: see ``Op.closed``."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, pair: Pair, back: Callable[[Tensor], Tensor]) -> MaskedTensor:
        ctx.mask, ctx.back = pair.mask, back
        return wrap(pair)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(plain_gradient(grad, ctx.mask)), None, None


class _Renew(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, target: MaskedTensor, data: Tensor, mask: Tensor) -> MaskedTensor:
        ctx.save_for_backward(mask)
        ctx.mark_dirty(target)  # its memory was written by another member of its family
        return target

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        (mask,) = ctx.saved_tensors
        return None, plain_gradient(grad, mask), None


record_enter, record_leave, record_renew = direct_apply(_Enter), direct_apply(_Leave), direct_apply(_Renew)
record_closed = direct_apply(_LeaveClosed)
ENTER_NODES.update(node_classes(_Enter))
MASKED = set(
    node_classes(_Leave, _LeaveClosed, _Renew, *packed_boundary.MASKED)
)  #: nodes whose tensors are masked; writes/recorded.py has more
name_masked(MASKED)
add_members(_connect=connect_view, _enter=enter)
GATES = GradientHooks(enter, leave, plain_gradient, MASKED)
