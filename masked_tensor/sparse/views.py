"""Views of pairs with sparse data: every stored entry gets a new place, and the values are copied there.

The result has the input's layout if it has two dimensions, and is COO otherwise.
"""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from .. import shapes
from ..layouts.elements import build_like, keys, values
from ..layouts.pairs import to_dense
from ..layouts.positions import pays_table, ravel, unravel
from ..op import NoRule
from ..pair import Pair, moved

Coordinates = list[Tensor]


def move_entries(x: Pair, shape: Sequence[int], places: Coordinates, kept: Tensor | None = None) -> Pair:
    """The stored entries (those ``kept``) at their new coordinates in ``shape``."""
    key = ravel(lambda d: places[d], shape, range(len(shape)))
    data, mask = values(x.data), values(x.mask)
    if key is None:  # no dimension is left, so there is one entry at most
        key = torch.zeros(data.shape[0], dtype=torch.int64, device=data.device)
    if kept is not None:
        key, data, mask = key[kept], data[kept], mask[kept]
    key, order = key.sort()
    return Pair(build_like(key, data[order], shape, x.data), build_like(key, mask[order], shape, x.mask))


def _coordinates(x: Pair) -> Coordinates:
    return unravel(keys(x.mask), x.mask.shape)


def reshape(x: Pair, shape: Sequence[int]) -> Pair:
    """Row-major positions stay what they are."""
    shape = torch.empty(x.data.shape, device="meta").reshape(tuple(shape)).shape  # torch reads -1, and has the errors
    return move_entries(x, shape, unravel(keys(x.mask), shape))


def flatten(x: Pair, start_dim: int = 0, end_dim: int = -1) -> Pair:
    return reshape(x, torch.empty(x.data.shape, device="meta").flatten(start_dim, end_dim).shape)


def permute(x: Pair, dims: Sequence[int]) -> Pair:
    shape = torch.empty(x.data.shape, device="meta").permute(tuple(dims)).shape
    places = _coordinates(x)
    return move_entries(x, shape, [places[d] for d in dims])


def transpose(x: Pair, dim0: int = 0, dim1: int = -1) -> Pair:
    dims = list(range(x.data.dim()))
    (a,), (b,) = (shapes.canonical_dims(d, len(dims)) or (0,) for d in (dim0, dim1))
    if dims:
        dims[a], dims[b] = dims[b], dims[a]
    return permute(x, dims)


def flip(x: Pair, dims: Sequence[int]) -> Pair:
    turned = shapes.canonical_dims(list(dims), x.data.dim()) if dims else ()
    places = [x.data.shape[d] - 1 - p if d in turned else p for d, p in enumerate(_coordinates(x))]
    return move_entries(x, x.data.shape, places)


def squeeze(x: Pair, dim: int | Sequence[int] | None = None) -> Pair:
    dims = () if dim == () or dim == [] else shapes.canonical_dims(dim, x.data.dim())
    return reshape(x, [n for d, n in enumerate(x.data.shape) if n != 1 or d not in dims])


def unsqueeze(x: Pair, dim: int) -> Pair:
    (dim,) = shapes.canonical_dims(dim, x.data.dim() + 1)
    return reshape(x, [*x.data.shape[:dim], 1, *x.data.shape[dim:]])


def select(x: Pair, dim: int, index: int) -> Pair:
    (dim,) = shapes.canonical_dims(dim, x.data.dim())
    size = x.data.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x.data.shape)} at dim {dim}")
    one = slice_(x, dim, index % size, index % size + 1)
    return squeeze(one, dim)


def split(x: Pair, sizes: int | Sequence[int], dim: int = 0) -> list[Pair]:
    (dim,) = shapes.canonical_dims(dim, x.data.dim())
    length = x.data.shape[dim]
    parts = torch.empty(length, device="meta").split(sizes if isinstance(sizes, int) else list(sizes))
    ends = list(itertools.accumulate(part.shape[0] for part in parts))
    return [slice_(x, dim, end - part.shape[0], end) for part, end in zip(parts, ends, strict=True)]


def expand(x: Pair, size: Sequence[int], *, implicit: bool = False) -> Pair:
    """A strided result that holds what is repeated once, if the tensor is not much larger than what it stores."""
    shape = torch.empty(x.data.shape, device="meta").expand(tuple(size)).shape
    if not pays_table(x.data.numel(), values(x.mask).shape[0]):
        raise NoRule("the result would be dense")
    return moved(to_dense(x), Tensor.expand, shape)


def unbind(x: Pair, dim: int = 0) -> list[Pair]:
    return [select(x, dim, index) for index in range(x.data.shape[dim])]


def slice_(x: Pair, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Pair:
    (dim,) = shapes.canonical_dims(dim, x.data.dim())
    chosen = range(x.data.shape[dim])[start:end:step]
    places = _coordinates(x)
    offset = places[dim] - chosen.start
    kept = (offset >= 0) & (places[dim] < chosen.stop) & (offset % step == 0)
    places[dim] = offset // step
    return move_entries(x, [len(chosen) if d == dim else n for d, n in enumerate(x.data.shape)], places, kept)
