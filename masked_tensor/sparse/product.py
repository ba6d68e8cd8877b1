"""Products of a sparse masked matrix with a strided one."""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..layouts.elements import build_like, is_sparse, keys, values, verbs_of
from ..layouts.positions import unravel
from ..op import NoRule
from ..pair import Pair
from ..select import guard
from ..shared import product_validity


def matmul(x: Pair | Tensor, y: Pair | Tensor) -> Pair:
    """sparse @ dense or dense @ sparse: valid where a stored pair is; cost is nnz times columns."""
    if type(x) is not Pair or not is_sparse(x.data):
        assert type(y) is Pair
        if y.data.dim() != 2:
            raise NoRule("one factor must be a sparse masked matrix")
        out = matmul(_transpose_sparse(y), _transpose_result(x))
        return Pair(out.data.movedim(0, -1), out.mask.movedim(0, -1))
    mask = y.mask if type(y) is Pair else None
    dense: Tensor = y.data if type(y) is Pair else y
    if x.data.dim() != 2 or is_sparse(dense) or dense.dim() not in (1, 2):
        raise NoRule(
            f"sparse @ dense takes a sparse matrix and a strided vector or matrix, got {tuple(x.data.shape)} "
            f"({x.data.layout}) @ {tuple(dense.shape)} ({dense.layout})"
        )
    if dense.shape[0] != x.data.shape[1]:
        raise RuntimeError(f"shapes {tuple(x.data.shape)} and {tuple(dense.shape)} cannot be multiplied")
    valid = values(x.mask).nonzero().view(-1)
    rows, columns = (verbs_of(x.mask).coordinate(x.mask, d)[valid] for d in (0, 1))
    factor = values(x.data)[valid]
    taken = dense[columns]
    pairs = torch.ones_like(taken, dtype=torch.bool) if mask is None else mask[columns]
    if mask is not None:
        taken = torch.where(pairs, taken, 0)
    products = (factor if dense.dim() == 1 else factor.unsqueeze(1)) * taken
    shape = (x.data.shape[0], *dense.shape[1:])
    data = products.new_zeros(shape).index_add(0, rows, products)
    counts = torch.zeros(shape, dtype=torch.int64, device=data.device)
    hits = counts.index_add(0, rows, pairs.to(torch.int64))
    found = hits >= min(x.data.shape[1], 1)
    if product_validity.needs_all_terms():  # neither factor has a valid entry whose partner is masked
        others = masks.full(dense.shape, data.device) if mask is None else mask
        found = found & (hits == counts.index_add(0, rows, torch.ones_like(pairs, dtype=torch.int64)))
        found = found & (hits == others.sum(0))
    return Pair(data, found)


def affine(summand: Pair | Tensor, x: Any, y: Any, *, beta: float = 1, alpha: float = 1) -> Pair:
    """addmm and addmv: ``beta * summand + alpha * (x @ y)``; with beta = 0 the summand takes no part."""
    product = matmul(x, y)
    data = product.data if alpha == 1 else alpha * product.data
    if beta == 0:
        return Pair(data, product.mask)
    summand = pair.as_pair(summand)
    mask = masks.logical_and(product.mask, masks.expand_to(summand.mask, product.mask.shape))
    added = guard(summand.data, mask)
    return Pair((added if beta == 1 else beta * added) + data, mask)


def linear(x: Any, weight: Any, bias: Any = None) -> Pair:
    """``x @ weight.T + bias``, of which either factor is sparse."""
    turned = _transpose_sparse(weight) if type(weight) is Pair and is_sparse(weight.data) else _transpose_result(weight)
    return matmul(x, turned) if bias is None else affine(bias, x, turned)


def _transpose_sparse(x: Pair) -> Pair:
    key = unravel(keys(x.mask), x.mask.shape)
    turned = key[1] * x.mask.shape[0] + key[0]
    turned, order_ = turned.sort()
    shape = (x.mask.shape[1], x.mask.shape[0])
    data, mask = (build_like(turned, values(part)[order_], shape, x.mask) for part in (x.data, x.mask))
    return Pair(data, mask)


def _transpose_result(x: Pair | Tensor) -> Pair | Tensor:
    if type(x) is Pair:
        return Pair(x.data.movedim(-1, 0), x.mask.movedim(-1, 0))
    return x.movedim(-1, 0)
