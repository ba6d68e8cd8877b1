"""Packed tensors at the boundary: the op's packed rule, or the ordinary rule on the unpacked pair.

The inside of a packed masked tensor is a ``Packed`` record.  Whatever asks for its pair gets the unpacked one, so that
what knows nothing of packing is right by default.  Here is what does know: calls of ops with a packed rule, the two
Functions that carry stored values through autograd (the gradient of a packed tensor is packed, as the tensor itself),
and writes that take a new record instead of touching the old one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from ... import masks, packing
from ...compat import in_transform
from ...op import NoRule
from ...packing import Frame, Packed
from ...packing.operands import match_grid
from ...pair import Pair, Payload, plain_pair
from ...select import select
from ...settings import DEFAULT, current
from ...shared.feature_joins import note_features
from .. import tensor
from ..dynamo import told_settings
from ..table import Entry
from ..tensor import MaskedTensor, pair_of, set_pair
from ..torch_keys import KEYS, direct_apply, gradient_is_shared

SEQUENCES = frozenset((list, tuple))  #: arguments that may hold masked tensors


def without_history(p: Packed, dtype: torch.dtype) -> Packed:
    """The record without its history, in a tensor's own dtype."""
    return p.holding(p.values.detach().to(dtype))


def wrap_packed(p: Packed) -> MaskedTensor:
    """An untracked MaskedTensor around a packed batch; its strides are always contiguous ones."""
    values = p.values
    if values.requires_grad:
        values = values.detach()
        p = p.holding(values)
    # By position, as in ``wrap``.
    # fmt: off
    result = tensor.make(
        MaskedTensor, p.frame.shape, None, None, None, values.dtype, torch.strided, values.device,
        False, False, None, False, False, KEYS,
    )
    # fmt: on
    set_packed(result, p)
    return result


def set_packed(x: MaskedTensor, p: Packed) -> None:
    """Makes ``p`` the inside of ``x``, which has no views."""
    x._packed = p
    x._view = None
    if type(p.values) is not Tensor:
        told_settings()
        if p.is_plain_grid:
            x.__dict__.pop("_pair", None)
            if p.inner is not None:
                x._parts = p.inner, masks.to_bytes(masks.compact_others(p.inner, 0).contiguous())
        else:  # a tracer may ask for the parts outside its modes
            set_pair(x, packing.unpack(p))


def mask_of(x: MaskedTensor) -> Tensor:
    """The validity of ``x``, without spreading its values."""
    return pair_of(x).mask if x._packed is None else packing.logical_mask(x._packed)


def any_packed(values: Iterable[Any]) -> bool:
    """Whether a packed tensor is among the arguments, also inside lists."""
    for v in values:
        kind = type(v)
        if kind is MaskedTensor:
            if v._packed is not None:
                return True
        elif kind in SEQUENCES and any_packed(v):
            return True
    return False


def run_packed_rule(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any], recording: bool) -> Any:
    """The result of the first of the entry's packed rules that serves the call.  Raises NoRule where none does.

    Of a rule that does nothing, such as dropout in evaluation, it is the tensor itself, as in torch.
    """
    # packed rules know the default meanings only, which of views are all
    if not entry.packed or in_transform() or (current() is not DEFAULT and not entry.view):
        raise NoRule
    given: list[Any] = []
    for a in args:
        kind = type(a)
        if kind is MaskedTensor:
            if a._packed is None:
                a = a._enter(recording)
            elif 0 in a.shape:
                raise NoRule
            else:
                a = enter_packed(a, recording)
        elif kind in SEQUENCES:
            a = _enter_any(a, recording)
        given.append(a)
    named = {k: _enter_any(v, recording) for k, v in kwargs.items()} if kwargs else kwargs
    for rule in entry.packed:
        try:
            result = rule(*given, **named)
        except NoRule:
            continue
        unchanged = type(result) is Packed and result is given[0] and not entry.view  # a view is another tensor
        return args[0] if unchanged else result
    raise NoRule


def _enter_any(value: Any, recording: bool) -> Any:
    """A masked tensor as its record, also inside lists, or as a pair if it is not packed; anything else unchanged."""
    if type(value) is MaskedTensor:
        return value._enter(recording) if value._packed is None else enter_packed(value, recording)
    if type(value) in SEQUENCES:
        return type(value)([_enter_any(v, recording) for v in value])
    return value


def enter_packed(x: MaskedTensor, recording: bool | None = None) -> Packed:
    """The record inside ``x``, its values connected with ``x`` where autograd records."""
    p = x._packed
    assert p is not None
    if not x._tracks or not (torch.is_grad_enabled() if recording is None else recording):
        return p
    if in_transform():
        return p.holding(_EnterPacked.apply(x, p.inner))
    if x._node is None:
        return p.holding(record_enter(x, p.inner))
    known = x._graph_entry  # as for a pair: all uses share one, so that their gradients are added as plain tensors
    if known is None or known[0] is not p or known[1] != x._version:
        inner = p.inner if known is None or known[1] != x._version else None  # else it was written past autograd
        whole = p.holding(record_enter(x, inner))
        known = x._graph_entry = (p, x._version, whole)
    shared: Packed = known[2]
    return shared


def unpack(x: MaskedTensor, recording: bool) -> Pair:
    """The strided pair of a packed tensor, connected with it where autograd records."""
    p = enter_packed(x, recording)
    made = packing.unpack(p)
    note_features(made.mask, tuple(d for d, atoms in enumerate(p.order) if not atoms or min(atoms) >= p.first))
    return made


def leave_packed(p: Packed) -> MaskedTensor:
    """A record as a masked tensor, tracked if its values are."""
    if p.values.requires_grad and torch.is_grad_enabled():
        result: MaskedTensor = (_LeavePacked.apply if in_transform() else record_leave)(p.values, p)
        return result
    return wrap_packed(p)


def packed_gradient(grad: Tensor, frame: Frame) -> Tensor:
    """A gradient that arrives from outside, of any kind, as values of the tokens of ``frame``, 0 where it is masked."""
    recording = torch.is_grad_enabled()
    if type(grad) is MaskedTensor and grad._packed is not None:
        new = match_grid(enter_packed(grad, recording), frame)
    else:
        new = packing.pack_onto(grad._enter(recording) if type(grad) is MaskedTensor else plain_pair(grad), frame)
    values = new.values
    if new.inner is not None and new.payload is not Payload.ZERO:
        values = select(values, new.inner, 0)
    if frame.inner is not None and frame.inner is not new.inner:
        values = select(values, frame.inner, 0)
    return values


def rebind(target: MaskedTensor, new: Packed) -> MaskedTensor:
    """An in-place op on a packed tensor that shares with nobody: it takes a new record."""
    if torch.is_grad_enabled() and (target._tracks or new.values.requires_grad):
        result: MaskedTensor = _Rebind.apply(target, new.values, new)
        return result
    set_packed(target, without_history(new, target.dtype))
    return target


class _EnterPacked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: MaskedTensor, inner: Tensor | None) -> Tensor:
        p: Any = x._packed
        ctx.frame = p.frame if inner is p.inner else Frame(p.stored, p.grid, p.order, inner)
        ctx.leaf = x._node is None
        result: Tensor = p.values.detach()
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        if ctx.leaf and gradient_is_shared(grad):  # as of a strided leaf: ``.grad.data`` may be written
            grad = grad.clone()
        frame = ctx.frame
        return leave_packed(Packed(grad, frame.grid, frame.order, frame.inner, known=[frame])), None


class _LeavePacked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, p: Packed) -> MaskedTensor:
        ctx.frame = p.frame
        return wrap_packed(p)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return packed_gradient(grad, ctx.frame), None


class _Rebind(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, target: MaskedTensor, values: Tensor, p: Packed) -> MaskedTensor:
        ctx.mark_dirty(target)
        ctx.dtype, ctx.frame = values.dtype, p.frame
        set_packed(target, without_history(p, target.dtype))
        return target

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        return None, packed_gradient(grad, ctx.frame).to(ctx.dtype), None


record_enter, record_leave = direct_apply(_EnterPacked), direct_apply(_LeavePacked)
MASKED = (_LeavePacked, _Rebind)  #: the nodes whose tensors are masked
