"""CSR, CSC, BSR and BSC tensors, batched and hybrid ones included: one of two dimensions is held as offsets."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .positions import unravel

_BY_ROWS = (torch.sparse_csr, torch.sparse_bsr)


def canonical(x: Tensor) -> Tensor:
    """``x`` with every position stored at most once."""
    return x


def validate(x: Tensor) -> None:
    """Raises RuntimeError if the pattern breaks the rules of the layout."""
    offsets, plain = indices(x)
    torch._validate_sparse_compressed_tensor_args(offsets, plain, x.values(), x.shape, x.layout)


def stored_values(x: Tensor) -> Tensor:
    """The stored values as they lie in ``x``."""
    return x.values()


def indices(x: Tensor) -> tuple[Tensor, ...]:
    """The index tensors that make up the pattern: here the offsets and the plain indices."""
    if x.layout in _BY_ROWS:
        return x.crow_indices(), x.col_indices()
    return x.ccol_indices(), x.row_indices()


def assemble(x: Tensor, values: Tensor) -> Tensor:
    """A tensor with the pattern of ``x`` and other values, given in the shape of ``stored_values(x)``."""
    offsets, plain = indices(x)
    return torch.sparse_compressed_tensor(
        offsets, plain, values, tuple(x.shape), layout=x.layout, check_invariants=False
    )


def coordinate(x: Tensor, dim: int) -> Tensor:
    """The position along ``dim`` of every stored value, in the order of ``stored_values(x).reshape(-1)``."""
    offsets, plain = indices(x)
    batch, values = offsets.dim() - 1, x.values()
    if values.dim() == 1:  # one plain matrix: the common case, at the least cost
        return _coordinates(x, offsets, plain, dim == 0)
    block = values.shape[batch + 1 : batch + 3] if x.layout in (torch.sparse_bsr, torch.sparse_bsc) else ()
    if dim < batch or dim >= batch + 2:
        axis = dim if dim < batch else dim - 1 + len(block)
        position = torch.arange(x.shape[dim], device=x.device)
        return position.view(-1, *[1] * (values.dim() - axis - 1)).expand(values.shape).reshape(-1)
    position = _coordinates(x, offsets, plain, dim == batch)
    if block:
        side = dim - batch
        inner = torch.arange(block[side], device=x.device).view(*([-1, 1] if side == 0 else [1, -1]))
        position = position[..., None, None] * block[side] + inner
        position = position.expand(*position.shape[:-2], *block)
    dense = values.dim() - position.dim()
    return position.reshape(*position.shape, *[1] * dense).expand(values.shape).reshape(-1)


def _coordinates(x: Tensor, offsets: Tensor, plain: Tensor, row: bool) -> Tensor:
    """The row or column of every stored value or block."""
    return (_expand_offsets(offsets, plain) if row == (x.layout in _BY_ROWS) else plain).to(torch.int64)


def runs(x: Tensor, dims: Sequence[int]) -> Tensor | None:
    """Offsets of the slices along ``dims`` if each is one run of the stored values, else None."""
    within = {torch.sparse_csr: (1,), torch.sparse_csc: (0,)}.get(x.layout)
    return _check_rising(*indices(x)) if tuple(dims) == within and x.dim() == 2 else None


def build(keys: Tensor, values: Tensor, shape: Sequence[int], like: Tensor) -> Tensor:
    """A tensor of this layout with ``values`` at the row-major positions ``keys`` (sorted, distinct)."""
    by_rows = like.layout in _BY_ROWS
    size, width = (shape[0], shape[1]) if by_rows else (shape[1], shape[0])
    if size == 1:  # a row (a column of CSC): the keys are the plain indices
        offsets, inner = torch.arange(2, device=keys.device) * keys.shape[0], keys
    elif width == 1 and keys.shape[0] == size:  # a full column
        offsets, inner = torch.arange(size + 1, device=keys.device), torch.zeros_like(keys)
    else:
        rows, columns = unravel(keys, shape)
        outer, inner = (rows, columns) if by_rows else (columns, rows)
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


def _check_rising(offsets: Tensor, plain: Tensor) -> Tensor:
    """``offsets``; raises for those that would lead a kernel out of the values, which torch does not check."""
    first, last, number = offsets[..., 0], offsets[..., -1], plain.shape[-1]
    if bool((offsets[..., 1:] < offsets[..., :-1]).any() | (first != 0).any() | (last != number).any()):
        lead = f"from {int(first.min())} to {int(last.max())}"
        raise ValueError(
            f"compressed indices must rise from 0 to the {number} stored values; these lead {lead}, or fall"
        )
    return offsets


def _expand_offsets(offsets: Tensor, plain: Tensor) -> Tensor:
    """The compressed index of every stored value or block: the inverse of compression."""
    offsets = _check_rising(offsets, plain)
    number = torch.repeat_interleave(offsets.diff(dim=-1).reshape(-1).to(torch.int64), output_size=plain.numel())
    return number if offsets.dim() == 1 else (number % (offsets.shape[-1] - 1)).view(plain.shape)
