"""Softmax and its logarithm along a dimension: filled with -inf, normalized and cleared.

For the result s and its gradient g, with sums along the dimension: ``s * (g - sum(g * s))``; of the logarithm l:
``g - exp(l) * sum(g)``.  On the CPU one loop does the three steps in the cache.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, settings
from ..fill import BITS, fill_bits
from ..select import select, zero_masked_inplace
from .table import KERNELS, Kernel

INFINITY = float("inf")
CONSTANTS = {
    dtype: (torch.tensor(0.0, dtype=dtype, device="cpu"), torch.tensor(-INFINITY, dtype=dtype, device="cpu"))
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
}


def formula(data: Tensor, mask: Tensor, dim: int, log: bool) -> Tensor:
    """The weights, 0 where they are masked; their logarithms, -inf there."""
    result = normalize(select(data, mask, -INFINITY), dim, log)
    return result if log else select(result, mask, 0)


def normalize(data: Tensor, dim: int, log: bool) -> Tensor:
    """torch's own."""
    return torch.log_softmax(data, dim) if log else torch.softmax(data, dim)


def forward(data: Tensor, mask: Tensor, dim: int, log: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Only the result is kept."""
    result = _fill_and_normalize(data, mask, dim, log)
    return result, (result, mask)


def backward(saved: tuple[Tensor, ...], grad: Tensor, dim: int, log: bool) -> tuple[Tensor, None]:
    """The gradient of the data."""
    return zero_masked_inplace(_backward(saved[0], grad, dim, log), saved[1]), None


def twice(saved: tuple[Tensor, ...], grad: Tensor, dim: int, log: bool) -> tuple[Tensor, None]:
    """The same, where it is recorded."""
    return select(_backward(saved[0], grad, dim, log), saved[1], 0), None


def _backward(result: Tensor, grad: Tensor, dim: int, log: bool) -> Tensor:
    """A NaN of a valid entry is yet to be kept from its masked neighbours."""
    op: Any = torch._log_softmax_backward_data if log else torch._softmax_backward_data
    back: Tensor = op(grad, result, dim, result.dtype)
    return back


def _fill_and_normalize(data: Tensor, mask: Tensor, dim: int, log: bool) -> Tensor:
    """Step by step.  The fills work on bits: ``(bits - f) * flag + f``."""
    if data.numel() < settings.FUSED or data.dtype not in CONSTANTS or data.is_neg():
        zero, infinity = CONSTANTS.get(data.dtype, (0, -INFINITY))
        result = normalize(torch.where(mask, data, infinity), dim, log)
        return result if log else torch.where(mask, result, zero)
    result = out = torch.empty(data.shape, dtype=data.dtype)
    dim = dim % data.dim()
    if dim > 1 and data.is_contiguous() and mask.is_contiguous():
        data, mask, out = (t.flatten(0, dim - 1) for t in (data, mask, out))
        dim = 1
    rows = data.shape[0] if dim == 0 else max(1, settings.per_step(settings.PIECE) * data.shape[0] // data.numel())
    mask = masks.compact(mask).view(torch.uint8).expand(data.shape[0], *(-1 for _ in data.shape[1:]))
    integer = BITS[data.dtype.itemsize]
    infinity = torch.tensor(fill_bits(-INFINITY, data.dtype), dtype=integer)
    buffer = torch.empty((min(rows, data.shape[0]), *mask.shape[1:]), dtype=integer)
    for some, valid, target in zip(data.split(rows), mask.split(rows), out.split(rows), strict=True):
        flags, bits = buffer[: valid.shape[0]].copy_(valid), target.view(integer)
        torch.sub(some.view(integer), infinity, out=bits)
        torch.addcmul(infinity, bits, flags, out=bits)
        (torch.log_softmax if log else torch.softmax)(target, dim, out=target)
        if not log:
            bits.mul_(flags)
    return result


KERNELS["softmax", "cpu"] = Kernel(forward, backward, twice=twice)
