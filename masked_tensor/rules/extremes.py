"""Extremes of the valid entries, and where they are: an index never points at a masked-out entry.

The gradient goes to the entries that attain the value: in equal parts, or to the one that a returned index names.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import masks, shapes
from ..kernels import chunks, reduce
from ..kernels.identity import identity
from ..op import Op
from ..packing import reduction as packed
from ..packing.per_token import along_feature
from ..pair import Pair
from ..select import select
from ..sparse import operators
from ..sparse.rules import sparse_rule
from .reduction import Dim

EXTREMES: dict[str, Callable[..., Tensor]] = {"max": torch.amax, "min": torch.amin}
ARGUMENTS: dict[str, Callable[..., Tensor]] = {"max": torch.argmax, "min": torch.argmin}
SEARCHES: dict[str, Callable[..., Any]] = {"max": torch.max, "min": torch.min}


def extreme(x: Pair, dim: Dim = (), keepdim: bool = False, *, which: str) -> Pair:
    """amax, amin, and max, min without a dimension."""
    dims = shapes.canonical_dims(dim, x.data.dim())
    if any(x.data.shape[d] == 0 for d in dims):
        plain = EXTREMES[which](x.data, dim or (), keepdim)  # raises: an extreme of nothing has no value
        return Pair(plain, masks.any(x.mask, dims, keepdim))
    return Pair(reduce(f"a{which}", x, dims, keepdim), masks.any(x.mask, dims, keepdim))


def position(x: Pair, dim: int | None = None, keepdim: bool = False, *, which: str) -> Pair:
    """argmax, argmin: the first valid entry that attains the extreme; 0 where nothing is valid."""
    if dim is None:
        flat = Pair(x.data.reshape(-1), masks.reshape(x.mask, (x.data.numel(),)))
        found = position(flat, 0, which=which)
        shape = [1] * x.data.dim() if keepdim else []
        return Pair(found.data.reshape(shape), found.mask.reshape(shape))
    if x.data.dtype is torch.bool or x.data.numel() == 0:
        index = ARGUMENTS[which](x.data, dim, keepdim)  # raises, unless the result is empty
    else:
        index = find(Pair(x.data.detach(), x.mask, x.payload), dim, keepdim, which)
    return Pair(index, masks.any(x.mask, dim, keepdim))


def find(x: Pair, dim: int, keepdim: bool, which: str) -> Tensor:
    """Indices along ``dim``, in pieces if the data is large."""

    def whole(filled: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
        return locate(filled, x.mask, dim, keepdim, which)

    def piece(filled: Tensor, mask: Tensor, dims: tuple[int, ...]) -> Tensor:
        return locate(filled, mask, dims[0], True, which)  # dim may be another one there: data are read as they lie

    dims = shapes.canonical_dims(dim, x.data.dim())
    return chunks.reduce(whole, x, dims, keepdim, identity(which, x.data.dtype), piece, associative=False)


def locate(filled: Tensor, mask: Tensor, dim: int, keepdim: bool, which: str) -> Tensor:
    """The first valid place of the extreme of data already filled."""
    index: Tensor = SEARCHES[which](filled, dim, True).indices  # much faster than argmax
    if filled.dim() and not masks.is_constant(mask, dim):
        # Where the fill won, every valid entry equals it: the first of them is right.
        index = torch.where(mask.gather(dim, index), index, masks.to_bytes(mask).max(dim, True).indices)
    return index if keepdim or filled.dim() == 0 else index.squeeze(dim)


def with_indices(x: Pair, dim: int, keepdim: bool = False, *, which: str) -> tuple[Pair, Pair]:
    """max, min along a dimension: values and indices."""
    if x.data.numel() == 0:
        values, index = SEARCHES[which](x.data, dim, keepdim)
    else:
        data = x.data.view(torch.uint8) if x.data.dtype is torch.bool else x.data  # gather and fill as bytes
        data = select(data, x.mask, identity(which, data.dtype))
        index = locate(data.detach(), x.mask, dim, True, which)
        values = data.gather(dim, index)
        if not keepdim and data.dim():
            index, values = index.squeeze(dim), values.squeeze(dim)
        values = values.view(torch.bool) if x.data.dtype is torch.bool else values
    mask = masks.any(x.mask, dim, keepdim)
    return Pair(values, mask), Pair(index, mask)


def aminmax(x: Pair, dim: int | None = None, keepdim: bool = False) -> tuple[Pair, Pair]:
    """Both extremes."""
    dims = () if dim is None else (dim,)
    return extreme(x, dims, keepdim, which="min"), extreme(x, dims, keepdim, which="max")


OPS = [
    *(
        Op(
            name,
            extreme,
            {"which": which},
            sparse=sparse_rule(sparse),
            packed=packed.reduce_packed(1, packed.EXTREMES[name]),
        )
        for name, which, sparse in (("amax", "max", operators.amax), ("amin", "min", operators.amin))
    ),
    Op("argmax", position, {"which": "max"}, sparse=sparse_rule(operators.argmax), packed=along_feature(1, None)),
    Op("argmin", position, {"which": "min"}, sparse=sparse_rule(operators.argmin), packed=along_feature(1, None)),
    Op("max.dim", with_indices, {"which": "max"}, sparse=sparse_rule(operators.max), packed=along_feature()),
    Op("min.dim", with_indices, {"which": "min"}, sparse=sparse_rule(operators.min), packed=along_feature()),
    Op("max", extreme, {"which": "max"}, sparse=sparse_rule(operators.max), packed=packed.reduce_packed()),
    Op("min", extreme, {"which": "min"}, sparse=sparse_rule(operators.min), packed=packed.reduce_packed()),
    Op("aminmax", aminmax, sparse=sparse_rule(operators.aminmax)),
    Op("_aminmax", aminmax),
]
