"""Products of a sparse masked matrix with a strided one."""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..layouts.elements import is_sparse
from ..op import NoRule
from ..pair import Pair, Payload
from ..select import guard, zero_masked
from ..shared import product_validity
from . import csr


def matmul(x: Pair | Tensor, y: Pair | Tensor) -> Pair:
    """sparse @ dense or dense @ sparse: valid where a stored pair is; cost is nnz times columns."""
    if type(x) is not Pair or not is_sparse(x.data):
        assert type(y) is Pair
        if y.data.dim() != 2:
            raise NoRule("one factor must be a sparse masked matrix")
        return _swap_result(_times(y, _swap(x), turned=True))
    return _times(x, y)


def _times(x: Pair, y: Pair | Tensor, turned: bool = False) -> Pair:
    """``x @ y`` (``turned``: ``x.T @ y``) of a sparse matrix and a strided matrix or vector."""
    data = pair.data_of(y)
    if x.data.dim() != 2 or is_sparse(data) or data.dim() not in (1, 2):
        raise NoRule(
            f"sparse @ dense needs a sparse matrix and a strided vector or matrix, got {tuple(x.data.shape)} "
            f"({x.data.layout}) @ {tuple(data.shape)} ({data.layout})"
        )
    where = csr.parts_of(x.mask).t() if turned else csr.parts_of(x.mask)
    if data.shape[0] != where.size[1]:
        raise RuntimeError(f"shapes {where.size} and {tuple(data.shape)} cannot be multiplied")
    flat = data.dim() == 1
    dense = zero_masked(y) if type(y) is Pair else y
    stored = csr.in_order(x.mask, where)
    mask = None if bool(stored.all()) else stored
    columns = dense.unsqueeze(1) if flat else dense
    result = csr.product(where, csr.in_order(x.data, where), mask, columns, x.payload is Payload.ZERO)
    with torch.no_grad():
        found = _validity(where, mask, y.mask if type(y) is Pair else None, result.shape)
    return Pair(result.squeeze(1) if flat else result, found.squeeze(1) if flat else found)


def _validity(where: csr.Stored, mask: Tensor | None, other: Tensor | None, shape: torch.Size) -> Tensor:
    """Which entries of a product have the valid terms that they need; ``other`` is the mask of the strided factor."""
    if where.size[1] == 0:
        return masks.full(shape, where.inner.device)
    small = masks.compact(other.unsqueeze(1) if other.dim() == 1 else other) if other is not None else None
    if product_validity.needs_all_terms():  # neither factor has a valid entry whose partner is masked
        given = masks.full((where.size[1], 1), where.inner.device) if small is None else small.expand(where.size[1], -1)
        hits = csr.counts(where, mask, given)
        every = csr.counts(where, mask, masks.realize(masks.full((where.size[1], 1), where.inner.device)))
        found = (hits > 0) & (hits == every) & (hits == given.sum(0))
    elif small is None or small.shape[0] == 1:
        found = csr.rows_with_valid(where, mask).unsqueeze(1)
        found = found if small is None else found & small
    else:
        found = csr.counts(where, mask, small) > 0
    return masks.expand_to(found, shape)


def affine(summand: Pair | Tensor, x: Any, y: Any, *, beta: float = 1, alpha: float = 1) -> Pair:
    """addmm and addmv: ``beta * summand + alpha * (x @ y)``; with beta = 0 the summand takes no part."""
    return _add(summand, matmul(x, y), beta, alpha)


def linear(x: Any, weight: Any, bias: Any = None) -> Pair:
    """``x @ weight.T + bias``, of which either factor is sparse."""
    if type(weight) is Pair and is_sparse(weight.data) and not is_sparse(pair.data_of(x)):
        product = _swap_result(_times(weight, _swap(x)))
    else:
        product = matmul(x, weight if is_sparse(pair.data_of(weight)) else _swap(weight))  # it refuses two sparse ones
    return product if bias is None else _add(bias, product)


def _add(summand: Pair | Tensor, product: Pair, beta: float = 1, alpha: float = 1) -> Pair:
    data = product.data if alpha == 1 else alpha * product.data
    if beta == 0:
        return Pair(data, product.mask)
    summand = pair.as_pair(summand)
    mask = masks.logical_and(product.mask, masks.expand_to(summand.mask, product.mask.shape))
    added = guard(summand.data, mask)
    return Pair((added if beta == 1 else beta * added) + data, mask)


def _swap(x: Pair | Tensor) -> Any:
    """Its last dimension first."""
    return pair.moved(x, torch.movedim, -1, 0)


def _swap_result(x: Pair) -> Pair:
    """Its first dimension last."""
    return pair.moved(x, torch.movedim, 0, -1)
