"""Select and guard: the two differentiable fills that every rule is built from.

``select(data, mask, fill)`` is ``where(mask, data, fill)``: data that masked-out values cannot leave.  ``guard(data,
mask)`` is ``data`` itself: a gradient that masked-out values cannot enter.

===============================  =========================================  ==========================================
``select(d, m, fill)``           ``fill`` outside the mask                  0 outside, backward
``guard(d, m)``                  the data as it is                          0 outside, backward
``zero_masked(x)``               0 outside, if that is not promised         0 outside, backward
``fill_masked(x, fill)``         ``fill`` outside                           0 outside, backward
``zero_masked_inplace(d, m)``    0 outside, written into one's own result   nothing: by contract nothing arrives there
``zeroed_result(d, m)``          a result's pair, zeroed if tracked         as ``zero_masked_inplace``
===============================  =========================================  ==========================================
"""

from typing import Any

import torch
from torch import Tensor

from . import masks, settings
from .compat import (
    checkpoint_will_recompute,
    get_unwrapped,
    in_dual_level,
    in_transform,
    is_tracked,
    is_wrapped,
    mode_is_active,
)
from .fill import can_fill_bits, can_write, fill_outside, where, where_like, write_constant_, zero_outside_
from .pair import Pair, Payload


def select(data: Tensor, mask: Tensor, fill: complex = 0, *, owned: bool = False) -> Tensor:
    """``data`` where ``mask`` is True, the constant ``fill`` elsewhere; the gradient is 0 elsewhere.

    ``mask`` is bool and broadcasts to ``data``'s shape.  ``owned``: the result goes into one op only, whose backward
    makes the gradient afresh (a product, a norm), so that the zeros may be written into that gradient.
    """
    if in_transform():
        return where(data, mask, fill)
    if is_tracked(data):
        if _small(data):
            return where(data, mask, fill)
        result: Tensor = _Select.apply(data, mask, fill, owned)
        return result
    return fill_outside(data, mask, fill)


#: The nodes that hand a gradient on to a masked tensor, and clear it outside of what they are told to.  They know its
#: ``mask``, and whether it is a ``leaf``: then no other op uses what they made.
ENTER_NODES: set[type] = set()


def guard(data: Tensor, mask: Tensor, *, owned: bool = False, inside: bool = False, once: bool = False) -> Tensor:
    """``data`` itself, expanded to ``mask``'s shape; its gradient is set to 0 where ``mask`` is False, whatever it was.

    Needed wherever a local derivative depends on masked-out data, because 0 times NaN is NaN.  A broadcast operand is
    expanded first, so that the zero lands before autograd sums the broadcast entries.  ``inside``, as ``owned``: the
    result goes into ops only, so that it may be ``data`` itself, whose gradient is cleared where it leaves.  ``once``:
    into one op that broadcasts, and so does nothing else that is made of ``data`` in this rule.
    """
    if in_transform():
        if not _is_differentiated(data):
            return data if _has_shape_of(data, mask) else data.expand(mask.shape)
        return torch.where(mask, data, _without_tangent(data) if in_dual_level() else data.detach())
    if is_tracked(data):
        if 0 in mask.stride() and masks.is_all_valid(mask):  # below, shapes are compared as in _has_shape_of
            return data if data.dim() == mask.dim() and data.shape == mask.shape else data.expand(mask.shape)
        node: Any = data.grad_fn
        if type(node) in ENTER_NODES:
            if (inside or owned or once) and node.mask is mask:
                node.clears = mask
                return data
            if once and (own := _clears_by(node, data, mask)) is not None:
                node.clears = own
                return data
        if owned and _small(mask) and _small(data):  # a copy: without ``owned`` the memory of the data may be asked for
            return where_like(mask, data, data.detach())
        wide = data if data.dim() == mask.dim() and data.shape == mask.shape else data.expand(mask.shape)
        result: Tensor = _Guard.apply(wide, mask, owned)
        return result
    return data


def _clears_by(node: Any, data: Tensor, mask: Tensor) -> Tensor | None:
    """Where the gradient has to be 0 that a masked tensor is handed for an op under ``mask``; None: not known there.

    An operand that ``mask`` repeats along constant dimensions is cleared after the gradients of those are added up.
    """
    if node.mask is not None and masks.same_rows(node.mask, mask):
        own: Tensor = node.mask
        return own
    return mask if node.leaf and _has_shape_of(data, mask) else None


def _has_shape_of(data: Tensor, mask: Tensor) -> bool:
    """By dimensions first: a tuple is compared from its left, and a traced size would be held against another one."""
    return data.dim() == mask.dim() and data.shape == mask.shape


def _is_differentiated(data: Tensor) -> bool:
    """Whether a transform, or autograd outside of all of them, may differentiate along ``data``."""
    if torch.compiler.is_dynamo_compiling() or in_dual_level():  # Dynamo cannot ask what follows
        return True
    while is_wrapped(data):
        if data.requires_grad:
            return True
        data = get_unwrapped(data)
    return data.requires_grad


def _without_tangent(data: Tensor) -> Tensor:
    """Data that are masked out, as a constant in both modes.

    ``detach`` is none in forward mode, which differentiates through it.  ``round`` has the derivative 0 everywhere, so
    it takes the tangent away; it changes the values, which may be anything there.
    """
    if data.is_complex():
        return torch.view_as_complex(torch.view_as_real(data).round())
    return data.round()


def zero_masked(x: Pair, *, owned: bool = False, inside: bool = False) -> Tensor:
    """The pair's data with 0 under the mask, forward and backward: what a mixing op may consume."""
    if x.payload is Payload.ZERO or (0 in x.mask.stride() and masks.is_all_valid(x.mask)):
        return guard(x.data, x.mask, owned=owned, inside=inside)
    return select(x.data, x.mask, 0, owned=owned)


def fill_masked(x: Pair, fill: complex) -> Tensor:
    """The pair's data with ``fill`` under the mask."""
    if fill == 0 and x.payload is Payload.ZERO:
        return guard(x.data, x.mask)
    return select(x.data, x.mask, fill)


def zero_masked_inplace(data: Tensor, mask: Tensor) -> Tensor:
    """A fresh result of the caller's own with 0 written under the mask, in place where that is possible.

    By the gradient contract nothing arrives there backward, so autograd need not know: this is the cheap way to hand on
    ``Payload.ZERO``.  ``data`` must not be saved for its own backward (products and affine maps save their inputs).
    """
    if 0 in mask.stride() and masks.is_all_valid(mask):
        return data
    # A selective checkpoint may keep what an op makes: then it is not to be written into.
    if not torch.compiler.is_dynamo_compiling() and mode_is_active() and checkpoint_will_recompute():
        return select(data, mask, 0)
    if can_fill_bits(data):
        zero_outside_(data, mask)
    elif can_write(data):
        write_constant_(data, mask)
    else:
        return select(data, mask, 0)
    return data


def zeroed_result(data: Tensor, mask: Tensor) -> Pair:
    """The pair of a fresh result, to whose shape ``mask`` broadcasts.

    With a gradient to come the next op needs zeros: writing them here is cheapest, unless a transform forbids to write.
    """
    if masks.is_all_valid(mask):
        return Pair(data, masks.expand_to(mask, data.shape), Payload.ZERO)
    if is_tracked(data) and not in_transform():
        return Pair(zero_masked_inplace(data, mask), masks.expand_to(mask, data.shape), Payload.ZERO)
    return Pair(data, masks.expand_to(mask, data.shape))


def _small(x: Tensor) -> bool:
    """Whether torch's own ``where``, which autograd records in C++, costs less than a Function; of memory only.

    Its derivative is the same: ``where(mask, gradient, 0)``.
    """
    return (type(x) is Tensor or type(x) is torch.nn.Parameter) and x.numel() < settings.RECORDED


class _Select(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, fill: complex, owned: bool) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.set_materialize_grads(False)  # no gradient stays none, as with torch's own where
        ctx.owned = owned
        return fill_outside(data, mask, fill)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        (mask,) = ctx.saved_tensors
        return None if grad is None else _outside(grad, mask, ctx.owned), None, None, None


class _Guard(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, owned: bool) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.set_materialize_grads(False)  # no gradient stays none, as with torch's own where
        ctx.owned = owned
        return data.view_as(data)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, None, None]:
        (mask,) = ctx.saved_tensors
        return None if grad is None else _outside(grad, mask, ctx.owned), None, None


def _outside(grad: Tensor, mask: Tensor, owned: bool) -> Tensor:
    return zero_masked_inplace(grad, mask) if owned and not is_tracked(grad) else select(grad, mask, 0)
