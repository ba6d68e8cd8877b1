"""Max pooling of tiles: windows side by side, so that every element has one window.

torch's kernel branches at every element of a row: where large and small values alternate at random, it guesses
wrong at each second one.  Here whole slices are compared, along one dimension after the other, the last one first; what
backward needs is one bool per comparison.  Ties as in torch: the first element of a window wins, and the last NaN.

The formula is torch's own op on data that are filled with -inf; it stands in the rule, which knows of windows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..compat import schema
from ..fill import BITS, can_fill_bits, fill_outside
from ..pair import Payload
from ..select import select, zero_masked_inplace
from .table import KERNELS, Kernel

Wins = list[Tensor]  #: of each slice but the first, where it is larger than all before it


def forward(data: Tensor, mask: Tensor, *options: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The largest valid element of each tile; -inf if there is none.  Elements that fill no tile are left out."""
    wins: Wins = []
    return _pool(data, mask, options, wins), (mask, *wins)


def inference(data: Tensor, mask: Tensor, *options: Any) -> Tensor:
    """The same, where nobody asks who won."""
    return _pool(data, mask, options, None)


def backward(saved: Sequence[Tensor], grad: Tensor, *options: Any) -> tuple[Tensor, None]:
    """The gradient of the data: 0 outside the mask."""
    grad = _scatter(_scatter_bits if can_fill_bits(grad) else _scatter_gradient, saved, grad, options)
    # A lowest value that is valid loses its tie to a masked entry before it.
    return grad if _is_whole(saved[0], options) else zero_masked_inplace(grad, saved[0]), None


def twice(saved: Sequence[Tensor], grad: Tensor, *options: Any) -> tuple[Tensor, None]:
    """The same in steps that can be recorded."""
    grad = _scatter(_scatter_gradient, saved, grad, options)
    return grad if _is_whole(saved[0], options) else select(grad, saved[0], 0), None


def _scatter(spread: Callable[..., Tensor], saved: Sequence[Tensor], grad: Tensor, options: Sequence[Any]) -> Tensor:
    mask, *wins = saved
    kernel = options[3][0]
    for dim, k in enumerate(kernel, mask.dim() - len(kernel)):
        if k > 1:
            grad = spread(grad, wins[len(wins) - k + 1 :], dim, mask.shape[dim])
            del wins[len(wins) - k + 1 :]
    return grad


def _is_whole(mask: Tensor, options: Sequence[Any]) -> bool:
    """Whether the mask is constant over each tile: then nothing is to be kept out of it."""
    return masks.is_constant(mask, range(-options[2], 0))


def _serves(
    data: Tensor, mask: Tensor, payload: Payload, op: Any, dims: int, how: Sequence[Sequence[int]], ceil: bool
) -> str | None:
    kernel = how[0]
    if (
        ceil
        or len(kernel) != dims
        or list(how) != [kernel, kernel, [0] * dims, [1] * dims]
        or len(schema(op).returns) != 1
    ):
        return "only for windows side by side, without padding, and without indices"
    if data.dtype not in (torch.float32, torch.float64) or not data.is_contiguous() or not can_fill_bits(data):
        return "only for float32 and float64 in rows of memory"
    # Where there is no such tile, torch's own op says so.
    if not dims < data.dim() <= dims + 2 or not 1 < max(kernel) <= 4:
        return "only for tiles of at most four elements along each side"
    return None if all(0 < k <= n for k, n in zip(kernel, data.shape[-dims:], strict=True)) else "there is no tile"


def _pool(data: Tensor, mask: Tensor, options: Sequence[Any], wins: Wins | None) -> Tensor:
    """The result; who won, along the last dimension first, is added to ``wins``, if requested."""
    largest = data if _is_whole(mask, options) else fill_outside(data, mask, -float("inf"))
    for back, k in enumerate(reversed(options[3][0]), 1):
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


KERNELS["max_pool", "cpu"] = Kernel(forward, backward, _serves, twice, least="RECORDED", inference=inference)
