"""COO tensors, hybrid ones included: one column of indices per stored value or block of dense dimensions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .positions import unravel


def canonical(x: Tensor) -> Tensor:
    """``x`` with every position stored at most once."""
    return x.coalesce()


def validate(x: Tensor) -> None:
    """Raises RuntimeError if the pattern breaks the rules of the layout."""
    torch._validate_sparse_coo_tensor_args(x._indices(), x._values(), x.shape, x.is_coalesced())


def stored_values(x: Tensor) -> Tensor:
    """The stored values as they lie in ``x``."""
    return x._values()


def indices(x: Tensor) -> tuple[Tensor, ...]:
    """The index tensors that make up the pattern: here one."""
    return (x._indices(),)


def assemble(x: Tensor, values: Tensor) -> Tensor:
    """A tensor with the pattern of ``x`` and other values, given in the shape of ``stored_values(x)``."""
    return torch.sparse_coo_tensor(
        x._indices(), values, x.shape, check_invariants=False, is_coalesced=x.is_coalesced() or None
    )


def coordinate(x: Tensor, dim: int) -> Tensor:
    """The position along ``dim`` of every stored value, in the order of ``stored_values(x).reshape(-1)``."""
    values = x._values()
    if dim < x.sparse_dim():
        position, axis = x._indices()[dim], 0
    else:
        position, axis = torch.arange(x.shape[dim], device=x.device), dim - x.sparse_dim() + 1
    if values.dim() == 1:
        return position
    return position.view(-1, *[1] * (values.dim() - axis - 1)).expand(values.shape).reshape(-1)


def runs(x: Tensor, dims: Sequence[int]) -> Tensor | None:
    """Offsets of the slices along ``dims`` if each is one run of the stored values, else None."""
    return None


def build(keys: Tensor, values: Tensor, shape: Sequence[int], like: Tensor) -> Tensor:
    """A tensor of this layout with ``values`` at the row-major positions ``keys`` (sorted, distinct)."""
    indices = torch.stack(unravel(keys, shape))
    return torch.sparse_coo_tensor(indices, values, tuple(shape), check_invariants=False, is_coalesced=True)
