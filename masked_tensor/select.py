"""Select and guard: the two differentiable fills every rule is made of.

``select(data, mask, fill)`` is ``where(mask, data, fill)``.  On the CPU a random mask makes ``torch.where`` branch per
element (38 times the cost of an unmasked sum), so large tensors are selected on their *bits*: ``bits * m`` with m in
{0, 1} fills with zero, ``(bits - f) * m + f`` with the bits f of any constant; integers know no NaN.
"""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from . import masks
from .masks import transforming as transforming  # rules take it from here, beside tracked
from .pair import Pair, Payload

# Below these sizes the fewer calls of ``where`` win (a static fact: the number of elements).
SMALL_ZERO = 512
SMALL_OTHER = 2048
CHUNK = 1 << 17  # elements per step: the working set of a step stays in cache

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def tracked(data: Tensor) -> bool:
    """Whether autograd records what is done with ``data``."""
    return data.requires_grad and torch.is_grad_enabled()


def select(data: Tensor, mask: Tensor, fill: float | bool = 0, *, owned: bool = False) -> Tensor:
    """``data`` where ``mask`` is True, the constant ``fill`` elsewhere; the gradient is 0 elsewhere.

    ``mask`` is bool and broadcasts to ``data``'s shape.  ``owned``: the result goes into one op only, whose backward
    makes the gradient afresh (a product, a norm), so that the zeros may be written into that gradient.
    """
    if transforming():
        return _where(data, mask, fill)
    if tracked(data):
        return _Select.apply(data, mask, fill, owned)  # type: ignore[no-any-return]
    return _fill_outside(data, mask, fill)


def guard(data: Tensor, mask: Tensor, *, owned: bool = False) -> Tensor:
    """``data`` itself, expanded to ``mask``'s shape; its gradient is set to 0 where ``mask`` is False, whatever it was.

    Needed wherever a local derivative depends on the payload, because 0 times NaN is NaN.  A broadcast operand is
    expanded first, so that the zero lands before autograd sums the broadcast entries.
    """
    if transforming():
        return torch.where(mask, data, data.detach())
    if tracked(data):
        wide = data if data.shape == mask.shape else data.expand(mask.shape)
        return _Guard.apply(wide, mask, owned)  # type: ignore[no-any-return]
    return data


def zeroed(x: Pair, *, owned: bool = False) -> Tensor:
    """The pair's data with 0 under the mask, forward and backward: what a mixing op may consume."""
    if x.payload is Payload.ZERO:
        return guard(x.data, x.mask, owned=owned)
    return select(x.data, x.mask, 0, owned=owned)


def filled(x: Pair, fill: float | bool) -> Tensor:
    """The pair's data with ``fill`` under the mask."""
    if fill == 0 and x.payload is Payload.ZERO:
        return guard(x.data, x.mask)
    return select(x.data, x.mask, fill)


def cleared(data: Tensor, mask: Tensor) -> Tensor:
    """A fresh result of the caller's own with 0 written under the mask, in place where that is possible.

    By the gradient contract nothing arrives there backward, so autograd need not know: this is the cheap way to hand on
    ``Payload.ZERO``.  ``data`` must not be saved for its own backward (products and affine maps save their inputs).
    """
    if not bitwise(data):
        return select(data, mask, 0)
    bits = data.data.view(_BITS[data.dtype.itemsize])  # .data: the write is no new version, which a view would notice
    bits.mul_(masks.compact(mask).view(torch.uint8).to(bits.dtype))
    return data


def fill_into(out: Tensor, data: Tensor, mask: Tensor, fill: float) -> None:
    """Writes ``select(data, mask, fill)`` into ``out``, of the same shape: for fused loops over real CPU tensors."""
    wide = _BITS[data.dtype.itemsize]
    _select_bits(data.view(wide), mask, fill_bits(fill, data.dtype), out.view(wide))


def finished(data: Tensor, mask: Tensor) -> Pair:
    """The pair of a fresh result.  With a gradient to come the next op needs zeros: writing them here is cheapest."""
    if tracked(data):
        return Pair(cleared(data, mask), mask, Payload.ZERO)
    return Pair(data, mask)


class _Select(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, fill: float, owned: bool) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.owned = owned
        return _fill_outside(data, mask, fill)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (mask,) = ctx.saved_tensors
        return _outside(grad, mask, ctx.owned), None, None, None


class _Guard(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, owned: bool) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.owned = owned
        return data.view_as(data)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return _outside(grad, mask, ctx.owned), None, None


def _outside(grad: Tensor, mask: Tensor, owned: bool) -> Tensor:
    return cleared(grad, mask) if owned and not tracked(grad) else select(grad, mask, 0)


def _where(data: Tensor, mask: Tensor, fill: float) -> Tensor:
    if data.dtype.itemsize == 1 and data.dtype.is_floating_point:  # float8: where() has no kernel
        bits = 0 if fill == 0 else fill_bits(fill, data.dtype)
        return torch.where(mask, data.view(torch.uint8), bits).view(data.dtype)
    if type(data) is Tensor and data.device.type == "cpu":
        constant = _READY.get((type(fill), fill, data.dtype))
        if constant is not None:
            return torch.where(mask, data, constant)
    return torch.where(mask, data, _constant(fill, data.dtype, data.device))


# The usual fills, ready made; keyed by type, too, because -0.0 == 0.
_READY = {
    (type(fill), fill, dtype): torch.full((), fill, dtype=dtype, device="cpu")
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for fill in (0, 1, float("inf"), -float("inf"))
}


def _constant(fill: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full((), fill, dtype=dtype, device=device)


def bitwise(data: Tensor) -> bool:
    """Whether ``data`` may be filled on its bits: real CPU memory that holds the values as they are."""
    return masks.real(data) and data.dtype.itemsize <= 8 and not data.is_neg() and not data.is_conj()


def _fill_outside(data: Tensor, mask: Tensor, fill: float) -> Tensor:
    if data.numel() < (SMALL_ZERO if fill == 0 else SMALL_OTHER) or not bitwise(data):
        return _where(data, mask, fill)
    out = torch.empty_like(data)
    fill_into(out, data, masks.fit(mask, data.shape), fill)
    return out


def fill_bits(fill: float, dtype: torch.dtype) -> int:
    """The bits of the constant ``fill`` in ``dtype``, as the integer of its width."""
    if fill == 0:
        return 0 if str(fill) != "-0.0" else _bits_of("-0.0", dtype)
    return _bits_of(fill, dtype)


@lru_cache(maxsize=256)
def _bits_of(fill: float | str, dtype: torch.dtype) -> int:
    if dtype.itemsize == 1 and dtype.is_floating_point:  # float8: fill_() has no kernel
        constant = torch.full((1,), float(fill)).to(dtype)
    else:
        constant = torch.full((1,), float(fill) if isinstance(fill, str) else fill, dtype=dtype)
    return int(constant.view(_BITS[dtype.itemsize]).item())


def _select_bits(bits: Tensor, mask: Tensor, fill: int, out: Tensor) -> None:
    """``out = where(mask, bits, fill)`` for integers, without a branch; in chunks when mask and data are large."""
    small = masks.compact(mask).view(torch.uint8)
    if small.numel() <= CHUNK:
        _select_chunk(bits, small.to(bits.dtype), fill, out)
        return
    if bits.is_contiguous() and out.is_contiguous() and small.is_contiguous() and small.shape == bits.shape:
        bits, small, out = bits.view(-1), small.view(-1), out.view(-1)
        buffer = torch.empty(CHUNK, dtype=bits.dtype)
        for b, m, o in zip(bits.split(CHUNK), small.split(CHUNK), out.split(CHUNK), strict=True):
            _select_chunk(b, buffer[: m.numel()].copy_(m), fill, o)
        return
    rows = max(1, CHUNK * bits.shape[0] // max(1, bits.numel()))
    parts = zip(
        bits.split(rows), small.expand(bits.shape[0], *small.shape[1:]).split(rows), out.split(rows), strict=True
    )
    for b, m, o in parts:
        _select_chunk(b, m.to(bits.dtype), fill, o)


def _select_chunk(bits: Tensor, mask: Tensor, fill: int, out: Tensor) -> None:
    """``mask`` is 0 or 1 in the dtype of ``bits``, and ours to overwrite."""
    if bits.dtype is torch.int64:
        mask = mask.neg()
        if fill == 0:
            torch.bitwise_and(bits, mask, out=out)
        else:
            torch.bitwise_xor(bits, fill, out=out)
            out.bitwise_and_(mask).bitwise_xor_(fill)
    elif fill == 0:
        torch.mul(bits, mask, out=out)
    else:
        torch.sub(bits, fill, out=out)
        torch.addcmul(_constant(fill, bits.dtype, bits.device), mask, out, out=out)
