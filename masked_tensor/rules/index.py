"""Indexing: an entry taken through a masked index is masked, and the data of a masked index is never used.

No gradient reaches the row that a masked index might have named.  A masked entry of a boolean key selects nothing.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload, is_readable_memory
from ..op import Op
from ..packing import cuts as packed_places
from ..packing import per_token as packed
from ..packing.kinds import packed_rule
from ..pair import Pair, Payload
from .choose import masked_fill, without_masked

Index = Pair | Tensor | None
CONDITIONS = torch.bool, torch.uint8  #: dtypes of keys that say for each entry whether it is taken


def key(index: Pair | Tensor) -> Tensor:
    """As ``safe``; a masked condition of bytes as one of bools, which torch takes in more places."""
    safely = without_masked(index)
    return safely.bool() if type(index) is Pair and safely.dtype is torch.uint8 else safely


def index(op: OpOverload, x: Pair | Tensor, indices: Sequence[Index]) -> Pair:
    """``x[indices]``, advanced indexing."""
    x = pair.as_pair(x)
    bare, valid = plain_indices(indices)
    data = op(x.data, bare)
    mask = _mask_at(op, x.mask, bare, data)
    if valid is None:
        return Pair(data, mask, x.payload)
    return Pair(data, masks.logical_and(mask, masks.expand_to(align_validity(valid, x.data, bare), data.shape)))


def index_or(op: OpOverload, x: Pair | Tensor, mask: Pair | Tensor, indices: Sequence[Index], fill: float) -> Pair:
    """``_unsafe_masked_index``: ``x[indices]``, then ``masked_fill`` where ``mask`` is False."""
    x = pair.as_pair(x)
    if x.data.numel() == 0:  # nothing to look up: torch's own, which is ``fill`` everywhere
        given = [k.data if type(k) is Pair else k for k in indices], fill
        plain = op(x.data, mask.data if type(mask) is Pair else mask, *given)
        return masked_fill(pair.plain_pair(plain), logical_not(mask), fill) if plain.numel() else pair.plain_pair(plain)
    return masked_fill(index(torch.ops.aten.index.Tensor, x, clamp_indices(x.data, indices)), logical_not(mask), fill)


def logical_not(mask: Pair | Tensor) -> Pair | Tensor:
    """``~mask``."""
    return Pair(~mask.data, mask.mask) if type(mask) is Pair else ~mask


def clamp_indices(data: Tensor, indices: Sequence[Index]) -> list[Index]:
    """Integer indices, one for each leading dimension of ``data``, cut off to its range."""
    result = list(indices)
    for d, k in enumerate(indices):
        if k is not None:
            cut = pair.data_of(k).clamp(-data.shape[d], data.shape[d] - 1)
            result[d] = Pair(cut, k.mask) if type(k) is Pair else cut
    return result


def _mask_at(op: OpOverload, mask: Tensor, indices: Sequence[Tensor | None], data: Tensor) -> Tensor:
    """The mask of ``data``, the result: nothing is looked up where the mask is constant in all dimensions indexed."""
    where = [d for d, covered in enumerate(_indexed_dims(indices)) if covered]
    if not all(mask.stride(d) == 0 and mask.shape[d] > 0 for d in where):
        return masks.expand_to(op(narrow_mask(mask, indices), indices), data.shape)
    rest = mask
    for d in reversed(where):
        rest = rest.select(d, 0)
    place = rest.dim() - _trailing(mask, indices)
    for _ in range(data.dim() - rest.dim()):
        rest = rest.unsqueeze(place)
    return masks.expand_to(rest, data.shape)


def align_validity(valid: Tensor, data: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """The validity of the indices, broadcastable to the shape of ``data[indices]``."""
    return valid.reshape(valid.shape + (1,) * _trailing(data, indices))


def plain_indices(indices: Sequence[Index]) -> tuple[list[Tensor | None], Tensor | None]:
    """Indices without masked-out data, and the validity of their broadcast shape (None: no integer index is masked)."""
    bare = [None if k is None else key(k) for k in indices]
    if not any(type(k) is Pair and k.data.dtype not in CONDITIONS for k in indices):
        return bare, None
    spelled: list[Tensor | None] = []
    valid: list[Tensor] = []
    for k, index in zip(bare, indices, strict=True):
        if k is not None and k.dtype in CONDITIONS:
            spelled += k.nonzero(as_tuple=True)
        else:
            spelled.append(k)
            if type(index) is Pair:
                valid.append(index.mask)
    shape = torch.broadcast_shapes(*(k.shape for k in spelled if k is not None))
    result = valid[0]
    for other in valid[1:]:
        result = masks.logical_and(result, other)
    return spelled, masks.expand_to(result, shape)


def _indexed_dims(indices: Sequence[Tensor | None]) -> list[bool]:
    """For each leading dimension whether something indexes it (a boolean index of k dimensions indexes k)."""
    result: list[bool] = []
    for k in indices:
        result += [False] if k is None else [True] * (k.dim() if k.dtype in CONDITIONS else 1)
    return result


def narrow_mask(mask: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """The mask with its constant dimensions that are not indexed at size 1."""
    if 0 in mask.stride():
        covered = _indexed_dims(indices)
        for d in range(mask.dim()):
            if mask.stride(d) == 0 and mask.shape[d] > 1 and not (d < len(covered) and covered[d]):
                mask = mask.narrow(d, 0, 1)
    return mask


def _trailing(data: Tensor, indices: Sequence[Tensor | None]) -> int:
    """How many dimensions of the result follow the indices' own: torch moves these to the front if they are apart."""
    where = [d for d, covered in enumerate(_indexed_dims(indices)) if covered]
    adjacent = where[-1] - where[0] + 1 == len(where)
    return data.dim() - len(where) - (where[0] if adjacent else 0)


def gather(x: Pair | Tensor, dim: int, index: Pair | Tensor, *, sparse_grad: bool = False) -> Pair:
    """``torch.gather``."""
    x, at = pair.as_pair(x), without_masked(index)
    data = torch.gather(x.data, dim, at, sparse_grad=sparse_grad)
    alike = 0 < x.mask.dim() == at.dim()
    if alike and x.mask.stride(dim) == 0 and x.mask.shape[dim] > 0:  # constant along dim: nothing to gather
        shape = [at.shape[d] if d == dim % at.dim() else n for d, n in enumerate(x.mask.shape)]
        mask = x.mask.narrow(dim, 0, 1).expand(shape)[tuple(slice(n) for n in at.shape)]
    else:
        mask = _look_up_mask(x.mask, dim, at)
    return _take_through(data, mask, index, x.payload)


def _look_up_mask(mask: Tensor, dim: int, at: Tensor) -> Tensor:
    if not is_readable_memory(mask):
        return torch.gather(mask, dim, at)
    return torch.gather(mask.view(torch.uint8), dim, at).view(torch.bool)  # bytes are gathered faster than bools


def index_select(x: Pair | Tensor, dim: int, index: Pair | Tensor) -> Pair:
    """``torch.index_select``."""
    x, at = pair.as_pair(x), without_masked(index)
    data = torch.index_select(x.data, dim, at)
    if x.mask.dim() and x.mask.stride(dim) == 0 and x.mask.shape[dim] > 0:
        mask = masks.expand_to(x.mask.narrow(dim, 0, 1), data.shape)
    else:
        mask = masks.expand_to(torch.index_select(masks.compact_others(x.mask, dim), dim, at), data.shape)
    if type(index) is not Pair:
        return Pair(data, mask, x.payload)
    shape = [1] * data.dim()
    if shape:
        shape[dim] = at.numel()
    return _take_through(data, mask, Pair(at, masks.expand_to(index.mask.reshape(shape), data.shape)), Payload.ANY)


def take(x: Pair | Tensor, index: Pair | Tensor) -> Pair:
    """``torch.take``: the entries of the flattened tensor."""
    x, at = pair.as_pair(x), without_masked(index)
    return _take_through(torch.take(x.data, at), torch.take(x.mask, at), index, x.payload)


def _take_through(data: Tensor, mask: Tensor, index: Pair | Tensor, payload: Payload) -> Pair:
    """What was taken through ``index``: masked where the index is."""
    if type(index) is not Pair:
        return Pair(data, mask, payload)
    return Pair(data, masks.logical_and(mask, index.mask))


def masked_select(x: Pair | Tensor, mask: Pair | Tensor) -> Pair:
    """``torch.masked_select``: 1-D, with a length that depends on the data."""
    x, key = pair.as_pair(x), without_masked(mask)
    data = torch.masked_select(x.data, key)
    return Pair(data, torch.masked_select(x.mask, key), x.payload)


def positions(op: OpOverload, x: Pair, **kwargs: Any) -> Pair:
    """nonzero: the positions of the valid entries that are not zero."""
    return pair.plain_pair(op(without_masked(x), **kwargs))


OPS = [
    Op("index", index, generic=True, packed=packed_rule(packed_places.index)),
    Op("_unsafe_index", index, generic=True),
    Op("_unsafe_masked_index", index_or, generic=True),
    Op("gather", gather, packed=packed_rule(packed.gather, whole=("self", "index"), within="index")),
    Op("index_select", index_select),
    Op("take", take),
    Op("masked_select", masked_select),
    Op("nonzero", positions, generic=True),
    Op("nonzero_static", positions, generic=True),
]
