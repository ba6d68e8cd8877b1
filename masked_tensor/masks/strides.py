"""How a mask lies in memory: in the order of its data, because code that reads both reads them in memory order."""

from torch import Tensor

from .. import settings, shapes
from ..compat import is_readable_memory
from . import compact
from .bits import transpose


def lay_out_as(mask: Tensor, data: Tensor) -> Tensor:
    """``mask``, or a copy whose dimensions lie in memory in the order of those of ``data``, of the same shape.

    Of ``data`` only the geometry is asked.  Dimensions along which the mask is constant lie anywhere.
    """
    stride = data.stride()
    if mask.stride() == stride or 0 in stride or not is_readable_memory(mask):
        return mask
    small = compact(mask)
    order = shapes.memory_order(stride)
    if small.numel() < settings.FEW or _falls(small.permute(order)):
        return mask
    turned = small.permute(order)
    copy = _contiguous(turned.squeeze()).view(turned.shape)
    return copy.permute([order.index(d) for d in range(mask.dim())]).expand(mask.shape)


def _falls(x: Tensor) -> bool:
    """Whether the strides of ``x`` fall from one dimension to the next."""
    strides = [stride for size, stride in zip(x.shape, x.stride(), strict=True) if size > 1]
    return strides == sorted(strides, reverse=True)


def _contiguous(x: Tensor) -> Tensor:
    """``x.contiguous()``; where two blocks of dimensions change places, by way of bits."""
    order = shapes.memory_order(x.stride())
    batch = next(d for d, place in enumerate(order) if d != place)
    first = order[batch]
    blocks = (*range(batch), *range(first, x.dim()), *range(batch, first))
    lies = x.permute(blocks)
    if x.numel() < settings.COUNTED or order != blocks or not lies.is_contiguous():
        return x.contiguous()
    matrix = lies.reshape(*x.shape[:batch], x.shape[first:].numel(), x.shape[batch:first].numel())
    return transpose(matrix).view(x.shape)
