"""The fill itself: ``where(mask, data, constant)``, without autograd.

On the CPU a random mask makes ``torch.where`` branch per element (38 times the cost of an unmasked sum), so large
tensors are filled on their *bits*: ``bits * m`` with m in {0, 1} fills with zero, ``(bits - f) * m + f`` with the bits
f of any constant; integers know no NaN.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from . import masks, settings, shapes
from .compat import WITHOUT_WHERE, batched_gradient, is_readable_memory, mode_is_active
from .masks.known import is_quiet, stream_of
from .masks.strides import lay_out_as

#: By type of device: ``(data, mask, fill, out)`` writes the data, with the constant under the mask, into ``out``, which
#: may be the data, and says whether it did.
FILLS: dict[str, Callable[[Tensor, Tensor, complex, Tensor], bool]] = {}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def where(data: Tensor, mask: Tensor, fill: complex) -> Tensor:
    """``torch.where(mask, data, fill)`` in the dtype of ``data``: small tensors, tracing, other devices."""
    constant = _READY.get((type(fill), fill, data.dtype)) if type(data) is Tensor and data.is_cpu else None
    if constant is None:
        if _is_float8(data.dtype):  # where() has no kernel
            bits = 0 if fill == 0 else fill_bits(fill, data.dtype)
            return where(data.view(torch.uint8), mask, bits).view(data.dtype)
        if data.dtype in WITHOUT_WHERE:
            signed = BITS[data.dtype.itemsize]
            return where(data.view(signed), mask, fill_bits(fill, data.dtype)).view(data.dtype)
        constant = _constant(fill, data)
    return where_like(mask, data, constant)


def _is_float8(dtype: torch.dtype) -> bool:
    return dtype.itemsize == 1 and dtype.is_floating_point


def where_like(mask: Tensor, data: Tensor, other: Tensor) -> Tensor:
    """``torch.where(mask, data, other)``, laid out as ``data``."""
    result = torch.where(mask, data, other)
    return result if result.stride() == data.stride() else _with_strides_of(result, data)


def _with_strides_of(result: Tensor, data: Tensor) -> Tensor:
    """``result`` with the strides of ``empty_like(data)``: torch.where takes those of the mask where it has a choice.

    A tensor that is filled in another way keeps the order of its dimensions, and so what can be viewed of it.
    """
    if result.shape != data.shape:
        return result.contiguous() if data.is_contiguous() else result
    wanted = torch.empty_like(data).stride()
    if result.stride() == wanted:
        return result
    order = shapes.memory_order(wanted)
    back = sorted(range(data.dim()), key=lambda d: order[d])
    return result.permute(order).contiguous().permute(back)


_USUAL: set[tuple[type, complex]] = {(type(fill), fill) for fill in (0, 1, torch.inf, -torch.inf)}  #: -0.0 == 0
#: The usual fills, ready made for the CPU.
_READY: dict[tuple[type, complex, torch.dtype], Tensor] = {
    (kind, fill, dtype): torch.full((), fill, dtype=dtype, device="cpu")
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for kind, fill in _USUAL
}


#: The same on other devices, each made when it is first needed on a stream: to make one is a launch.
_MADE: dict[tuple[Any, ...], Tensor] = {}


def _constant(fill: complex, data: Tensor) -> Tensor:
    """``fill`` in the dtype and on the device of ``data``, 0-d."""
    dtype, device = data.dtype, data.device
    stream = stream_of(data) if type(data) is Tensor and (type(fill), fill) in _USUAL and is_quiet() else None
    if stream is None:
        return torch.full((), fill, dtype=dtype, device=device)
    key = stream, device, type(fill), fill, dtype
    constant = _MADE.get(key)
    if constant is None:
        with torch.inference_mode(False):
            constant = _MADE[key] = torch.full((), fill, dtype=dtype, device=device)
    return constant


def can_fill_bits(data: Tensor) -> bool:
    """Whether ``data`` may be filled on its bits: real CPU memory that holds the values as they are."""
    return is_readable_memory(data) and data.dtype.itemsize <= 8 and not data.is_neg() and not data.is_conj()


def can_write(data: Tensor) -> bool:
    """Whether zeros may be written into ``data`` as values: real memory of any device, at which nobody looks."""
    if type(data) is not Tensor or data.is_meta or not is_quiet() or batched_gradient(data) or data._is_zerotensor():
        return False
    return not (data.is_neg() or data.is_conj() or data.dtype in WITHOUT_WHERE or _is_float8(data.dtype))


def fill_outside(data: Tensor, mask: Tensor, fill: complex) -> Tensor:
    """``where(mask, data, fill)``; ``mask`` broadcasts to ``data``'s shape."""
    if _small(data, mask, settings.SMALL_ZERO if fill == 0 else settings.SMALL_OTHER) or not can_fill_bits(data):
        own = FILLS.get(data.device.type) if FILLS else None
        if own is not None and can_write(data):
            out = torch.empty_like(data)
            if own(data, mask, fill, out):
                return out
        return where(data, mask, fill)
    out = torch.empty_like(data)
    fill_into(out, data, masks.expand_to(mask, data.shape), fill)
    return out


def _small(data: Tensor, mask: Tensor, few: int) -> bool:
    """Whether ``where`` costs less than bits, which take more calls: that is what a random mask is worth."""
    size = data.numel()
    if type(size) is not int:  # a graph shall serve all sizes
        return False
    return size < few or (size < settings.SMALL_ROWS and mask.dim() > 0 and masks.is_constant(mask, -1))


def fill_into(out: Tensor, data: Tensor, mask: Tensor, fill: complex, spare: Tensor | None = None) -> None:
    """Writes ``data`` filled outside ``mask`` into ``out``, of the same shape: ``data`` itself, or other memory.

    ``spare``: memory of as many integers of the same width, for a loop to use again; fresh memory costs most.
    """
    wide = BITS[data.dtype.itemsize]
    bits = data.view(wide)
    _select_bits(bits, mask, fill_bits(fill, data.dtype), bits if out is data else out.view(wide), spare)


def zero_outside_(data: Tensor, mask: Tensor) -> None:
    """Writes 0 outside ``mask``, which broadcasts, into ``data``, if ``can_fill_bits``; autograd is not told."""
    data = data.data  # the write is no new version, which a view would notice
    small = (
        _small(data, mask, settings.SMALL_ZERO) and not mode_is_active()
    )  # out= has no derivative in a tracer's graph
    zero = _READY.get((int, 0, data.dtype)) if small else None
    if zero is not None:
        torch.where(mask, data, zero, out=data)
        return
    bits = data.view(BITS[data.dtype.itemsize])
    _select_bits(bits, mask, 0, bits)


def write_constant_(data: Tensor, mask: Tensor, fill: complex = 0) -> None:
    """The same of any constant, if ``can_write``: one launch on any device, without a tensor for the constant."""
    data = data.data
    own = FILLS.get(data.device.type) if FILLS else None
    if own is None or not own(data, mask, fill, data):
        torch.where(mask, data, _constant(fill, data), out=data)


def fill_bits(fill: complex, dtype: torch.dtype) -> int:
    """The bits of the constant ``fill`` in ``dtype``, as the integer of its width."""
    if fill == 0:
        return 0 if str(fill) != "-0.0" else _bits_of("-0.0", dtype)
    return _bits_of(torch.nan if fill != fill else fill, dtype)  # one NaN: another would not be found in the cache


@lru_cache(maxsize=256)
def _bits_of(fill: complex | str, dtype: torch.dtype) -> int:
    value = float(fill) if isinstance(fill, str) else fill
    if _is_float8(dtype):  # fill_() has no kernel
        constant = torch.full((1,), value, dtype=torch.float32).to(dtype)
    else:
        constant = torch.full((1,), value, dtype=dtype)
    return int(constant.view(BITS[dtype.itemsize]).item())


def _select_bits(bits: Tensor, mask: Tensor, fill: int, out: Tensor, spare: Tensor | None = None) -> None:
    """``out = where(mask, bits, fill)`` for integers, without a branch; in chunks when mask and data are large."""
    apart = out is not bits
    if not out.is_contiguous():  # along the memory: a table may lie column by column
        order = shapes.memory_order(out.stride())
        bits, mask, out = (t.permute(order) for t in (bits, masks.expand_to(mask, out.shape), out))
    small = masks.compact(mask).view(torch.uint8)
    if small.numel() <= settings.CHUNK or small.numel() <= settings.per_step(settings.CHUNK):
        _select_chunk(bits, small, fill, out, apart, spare)
        return
    fit = settings.per_step(settings.CHUNK)
    small = masks.compact(lay_out_as(masks.expand_to(mask, bits.shape), bits)).view(torch.uint8)
    if bits.is_contiguous() and out.is_contiguous() and small.is_contiguous() and small.shape == bits.shape:
        bits, small, out, step = bits.view(-1), small.view(-1), out.view(-1), fit
    else:
        step = max(1, fit * bits.shape[0] // max(1, bits.numel()))
        small = small.expand(bits.shape[0], *small.shape[1:])
    if spare is None and fill != 0:
        spare = torch.empty(bits[:step].numel(), dtype=bits.dtype)
    for b, m, o in zip(bits.split(step), small.split(step), out.split(step), strict=True):
        _select_chunk(b, m, fill, o, apart, spare)


def _select_chunk(bits: Tensor, mask: Tensor, fill: int, out: Tensor, apart: bool, spare: Tensor | None) -> None:
    """``mask`` is 0 or 1, in bytes; in the ways that cost least.  ``apart``: ``out`` is other memory than ``bits``."""
    if fill == 0 and apart and mask.numel() == bits.numel():  # in one buffer: it stays nearest
        out.copy_(mask)
        out.neg_().bitwise_and_(bits) if bits.dtype is torch.int64 else out.mul_(bits)
    elif bits.dtype is torch.int64:
        if spare is None or mask.numel() < bits.numel():
            mask = mask.to(torch.int64).neg()
        else:
            mask = spare[: mask.numel()].view(mask.shape).copy_(mask).neg_()
        if fill == 0:
            torch.bitwise_and(bits, mask, out=out)
        else:
            torch.bitwise_xor(bits, fill, out=out)
            out.bitwise_and_(mask).bitwise_xor_(fill)
    elif fill == 0:
        torch.mul(bits, mask, out=out)
    elif mask.numel() < bits.numel():  # broadcast, addcmul is up to seven times slower
        torch.sub(bits, fill, out=out).mul_(mask).add_(fill)
    else:
        wide = mask.to(bits.dtype) if spare is None else spare[: mask.numel()].view(mask.shape).copy_(mask)
        torch.sub(bits, fill, out=out)
        torch.addcmul(torch.full((), fill, dtype=bits.dtype, device=bits.device), wide, out, out=out)
