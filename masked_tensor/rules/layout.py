"""Conversions between layouts keep validity: a sparse masked tensor stores the valid entries, explicit zeros included.

Unspecified entries are masked: ``x.to_dense()`` is masked there, and ``x.to_sparse()`` stores the valid entries.
"""

from typing import Any

import torch
from torch import Tensor

from .. import errors, layouts
from ..compat import OpOverload
from ..op import ops
from ..pair import Pair, Payload
from ..select import guard
from ..sparse.rules import unchanged


def to_dense(x: Pair, dtype: torch.dtype | None = None, masked_grad: bool | None = None) -> Pair:
    """The strided form; a strided tensor is returned as it is."""
    if not layouts.is_sparse(x.data):
        return x if dtype is None else Pair(x.data.to(dtype), x.mask, x.payload)
    result = layouts.to_dense(x)
    return result if dtype is None else Pair(result.data.to(dtype), result.mask, Payload.ZERO)


def to_sparse(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """The sparse form: it stores the entries that torch's own conversion of the mask stores."""
    sparse = layouts.is_sparse(x.mask)  # torch converts COO to every layout, not each to each
    shown = layouts.specified_mask(x.mask).to_sparse_coo() if sparse else x.mask.contiguous()
    pattern = op(shown, *args, **kwargs)
    if not layouts.is_sparse(pattern):
        return to_dense(x)
    keys = layouts.keys(pattern)
    mask = layouts.with_values(pattern, layouts.values_at(x.mask, keys))
    if layouts.is_sparse(x.data):
        return Pair(layouts.with_values(pattern, layouts.values_at(x.data, keys)), mask)
    return Pair(layouts.with_values(pattern, layouts.values_at(guard(x.data, x.mask), keys)), mask)


def made(op: OpOverload, indices: Pair | Tensor, values: Pair | Tensor, *args: Any, **kwargs: Any) -> Pair:
    """Raises: a new sparse tensor needs its mask as a sparse tensor, not in its indices or values."""
    lost = [name for name, part in (("indices", indices), ("values", values)) if type(part) is Pair]
    raise errors.masked_parts(op.name(), lost)


def coalesce(op: OpOverload, x: Pair) -> Any:
    """A sparse masked tensor is always coalesced; for a strided one torch raises."""
    return x if layouts.is_sparse(x.data) else op(x.data)


def values(op: OpOverload, x: Pair) -> Any:
    """The stored values with their validity, in the shape the layout keeps them; a strided tensor has none."""
    if not layouts.is_sparse(x.data):
        return op(x.data)
    verbs = layouts.verbs_of(x.data)
    shape = verbs.stored_values(x.mask).shape
    return Pair(layouts.values(x.data).reshape(shape), layouts.values(x.mask).reshape(shape))


def index(op: OpOverload, x: Pair) -> Any:
    """A plain copy of an index tensor of the pattern, or another property of the pattern."""
    result = op(x.mask)
    return result.clone() if isinstance(result, Tensor) else result


OPS = [
    *ops("to_dense _to_dense", to_dense, sparse=unchanged),
    *ops("to_sparse to_sparse_csr to_sparse_csc", to_sparse, generic=True, sparse=unchanged),
    *ops("to_sparse_bsr to_sparse_bsc", to_sparse, generic=True, sparse=unchanged),
    *ops("_to_sparse _to_sparse_csr _to_sparse_csc", to_sparse, generic=True, sparse=unchanged),
    *ops("_to_sparse_bsr _to_sparse_bsc", to_sparse, generic=True, sparse=unchanged),
    *ops("sparse_coo_tensor.indices sparse_coo_tensor.indices_size", made, generic=True, sparse=unchanged),
    *ops("coalesce _coalesce", coalesce, generic=True, sparse=unchanged),
    *ops("values _values", values, generic=True, sparse=unchanged),
    *ops("indices _indices crow_indices col_indices", index, generic=True, sparse=unchanged),
    *ops("ccol_indices row_indices _nnz is_coalesced", index, generic=True, sparse=unchanged),
    *ops("sparse_dim dense_dim _dimI _dimV", index, generic=True, sparse=unchanged),
]
