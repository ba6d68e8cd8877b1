"""Max pooling of tiles: windows side by side, so that every element has one window.

torch's kernel branches at every element of a row: where large and small values alternate at random, it guesses
wrong at each second one.  Here whole slices are compared, along one dimension after the other, the last one first; what
backward needs is one bool per comparison.  Ties as in torch: the first element of a window wins, and the last NaN.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import settings
from ..compat import in_transform, is_tracked
from ..fill import BITS, can_fill_bits, fill_outside
from ..select import select, zero_masked_inplace

Wins = list[Tensor]  #: of each slice but the first, where it is larger than all before it


def is_worthwhile(data: Tensor, kernel: Sequence[int], dims: int) -> bool:
    """Whether it is worth while for tiles of ``dims`` dimensions: CPU memory in rows, and few elements along each side.

    Where there is no such tile, torch's own op says so.
    """
    return (
        can_fill_bits(data)
        and data.dtype in (torch.float32, torch.float64)
        and data.numel() >= settings.RECORDED
        and data.is_contiguous()
        and not in_transform()
        and len(kernel) == dims
        and dims < data.dim() <= dims + 2
        and 1 < max(kernel) <= 4
        and all(0 < k <= size for k, size in zip(kernel, data.shape[-dims:], strict=True))
    )


def max_pool(data: Tensor, mask: Tensor | None, kernel: Sequence[int]) -> Tensor:
    """The largest element of each tile of the last dimensions, where ``mask`` is True; -inf if there is none.

    The gradient is 0 outside ``mask``.  Elements that fill no tile are left out.
    """
    if is_tracked(data):
        result: Tensor = _MaxPool.apply(data, mask, kernel)
        return result
    return _pool(data, mask, kernel, None)


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor | None, kernel: Sequence[int]) -> Tensor:
        wins: Wins = []
        result = _pool(data, mask, kernel, wins)
        ctx.save_for_backward(mask, *wins)
        ctx.set_materialize_grads(False)
        ctx.kernel, ctx.shape = kernel, data.shape
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, None, None]:
        if grad is None:
            return None, None, None
        mask, *wins = ctx.saved_tensors
        spread = _scatter_bits if can_fill_bits(grad) and not is_tracked(grad) else _scatter_gradient
        first = len(ctx.shape) - len(ctx.kernel)
        for dim, k in enumerate(ctx.kernel, first):
            if k > 1:
                grad = spread(grad, wins[len(wins) - k + 1 :], dim, ctx.shape[dim])
                del wins[len(wins) - k + 1 :]
        if mask is not None:  # a lowest value that is valid loses its tie to a masked entry before it
            grad = select(grad, mask, 0) if is_tracked(grad) else zero_masked_inplace(grad, mask)
        return grad, None, None


def _pool(data: Tensor, mask: Tensor | None, kernel: Sequence[int], wins: Wins | None) -> Tensor:
    """The result; who won, along the last dimension first, is added to ``wins``, if somebody asks."""
    largest = data if mask is None else fill_outside(data, mask, -float("inf"))
    for back, k in enumerate(reversed(kernel), 1):
        slices = _slices(largest, data.dim() - back, k)
        largest, *others = slices if wins is None else (s.contiguous() for s in slices)
        for s in others:
            if wins is not None:
                wins.append(_is_greater(s, largest))
            largest = torch.maximum(largest, s)
    return largest


def _is_greater(x: Tensor, y: Tensor) -> Tensor:
    """``(x > y) | isnan(x)``; comparisons are vectorised where they give the dtype of what they compare."""
    larger, missing = torch.empty_like(x), torch.empty_like(x)
    return torch.gt(x, y, out=larger).add_(torch.ne(x, x, out=missing)).to(torch.bool)


def _slices(x: Tensor, dim: int, k: int) -> list[Tensor]:
    """The first elements of all tiles along ``dim``, the second, and so on: views."""
    size = x.shape[dim] // k * k
    index = [slice(None)] * dim
    return [x] if k == 1 else [x[(*index, slice(j, size, k))] for j in range(k)]


def _scatter_bits(grad: Tensor, wins: Wins, dim: int, size: int) -> Tensor:
    """The gradient of the largest to the slice that it came from, 0 to the others; on bits, as 0 times inf is NaN."""
    k = len(wins) + 1
    shape = (*grad.shape[:dim], size, *grad.shape[dim + 1 :])
    result = torch.zeros(shape, dtype=grad.dtype) if size % k else torch.empty(shape, dtype=grad.dtype)
    wide = BITS[grad.dtype.itemsize]
    slices = _slices(result.view(wide), dim, k)
    rest = grad.view(wide)
    for target, won in zip(slices[:0:-1], reversed(wins), strict=True):
        part = won.view(torch.int8).to(wide)
        part = part.neg_().bitwise_and_(rest) if wide is torch.int64 else part.mul_(rest)
        target.copy_(part)
        rest = part.bitwise_xor_(rest)
    slices[0].copy_(rest)
    return result


def _scatter_gradient(grad: Tensor, wins: Wins, dim: int, size: int) -> Tensor:
    """The same in steps that can be recorded."""
    parts = []
    for won in reversed(wins):
        parts.append(select(grad, won, 0))
        grad = select(grad, ~won, 0)
    wide = torch.stack([grad, *reversed(parts)], dim + 1).flatten(dim, dim + 1)
    short = size - wide.shape[dim]
    return torch.nn.functional.pad(wide, [0, 0] * (wide.dim() - 1 - dim) + [0, short]) if short else wide
