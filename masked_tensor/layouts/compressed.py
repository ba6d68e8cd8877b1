"""CSR, CSC, BSR and BSC tensors, batched and hybrid ones included: one of two dimensions is held as offsets."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .keys import unravel

_BY_ROWS = (torch.sparse_csr, torch.sparse_bsr)


def canonical(x: Tensor) -> Tensor:
    """``x`` with every position stored at most once."""
    return x


def stored(x: Tensor) -> Tensor:
    """The stored values as they lie in ``x``."""
    return x.values()


def indices(x: Tensor) -> tuple[Tensor, ...]:
    """The index tensors that make up the pattern: here the offsets and the plain indices."""
    if x.layout in _BY_ROWS:
        return x.crow_indices(), x.col_indices()
    return x.ccol_indices(), x.row_indices()


def assemble(x: Tensor, values: Tensor) -> Tensor:
    """A tensor with the pattern of ``x`` and other values, given in the shape of ``stored(x)``."""
    offsets, plain = indices(x)
    return torch.sparse_compressed_tensor(
        offsets, plain, values, tuple(x.shape), layout=x.layout, check_invariants=False
    )


def coordinate(x: Tensor, dim: int) -> Tensor:
    """The position along ``dim`` of every stored value, in the order of ``stored(x).reshape(-1)``."""
    offsets, plain = indices(x)
    batch, values = offsets.dim() - 1, x.values()
    block = values.shape[batch + 1 : batch + 3] if x.layout in (torch.sparse_bsr, torch.sparse_bsc) else ()
    if dim < batch or dim >= batch + 2:
        axis = dim if dim < batch else dim - 1 + len(block)
        position = torch.arange(x.shape[dim], device=x.device)
        return position.view(-1, *[1] * (values.dim() - axis - 1)).expand(values.shape).reshape(-1)
    held_as_offsets = (dim == batch) == (x.layout in _BY_ROWS)
    position = (_opened(offsets, plain) if held_as_offsets else plain).to(torch.int64)
    if block:
        side = dim - batch
        inner = torch.arange(block[side], device=x.device).view(*([-1, 1] if side == 0 else [1, -1]))
        position = position[..., None, None] * block[side] + inner
        position = position.expand(*position.shape[:-2], *block)
    dense = values.dim() - position.dim()
    return position.reshape(*position.shape, *[1] * dense).expand(values.shape).reshape(-1)


def runs(x: Tensor, dims: Sequence[int]) -> Tensor | None:
    """Offsets of the slices along ``dims`` if each is one run of the stored values, else None."""
    along = {torch.sparse_csr: (1,), torch.sparse_csc: (0,)}.get(x.layout)
    return indices(x)[0] if tuple(dims) == along and x.dim() == 2 else None


def build(keys: Tensor, values: Tensor, shape: Sequence[int], like: Tensor) -> Tensor:
    """A tensor of this layout with ``values`` at the row-major positions ``keys`` (sorted, distinct)."""
    rows, columns = unravel(keys, shape)
    by_rows = like.layout in _BY_ROWS
    outer, inner, size = (rows, columns, shape[0]) if by_rows else (columns, rows, shape[1])
    if not by_rows:
        outer, order = torch.sort(outer, stable=True)
        inner, values = inner[order], values[order]
    offsets = torch.zeros(size + 1, dtype=torch.int64, device=keys.device)
    torch.cumsum(torch.bincount(outer, minlength=size), 0, out=offsets[1:])
    if like.layout in (torch.sparse_bsr, torch.sparse_bsc):
        values = values.view(-1, 1, 1)
    return torch.sparse_compressed_tensor(
        offsets, inner, values, tuple(shape), layout=like.layout, check_invariants=False
    )


def _opened(offsets: Tensor, plain: Tensor) -> Tensor:
    """The compressed index of every stored value or block: the inverse of compression."""
    size = offsets.shape[-1] - 1
    numbers = torch.arange(size, device=offsets.device).expand(*offsets.shape[:-1], size)
    return numbers.reshape(-1).repeat_interleave(offsets.diff(dim=-1).reshape(-1)).view(plain.shape)
