"""Decompositions of matrices: a fully valid matrix has the plain result, and one with a masked entry is masked.

Where rows and columns are masked alike (a set with missing members, such as padding), determinants, inverses,
factorisations, functions and symmetric eigenvalues of a matrix are computed from its valid block.  Missing members
count as the identity, which is exact.  The eigenvalues of such a block come first, followed by masked ones.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload
from ..op import Op, ops
from ..pair import Pair
from ..shared import matrices
from .matmul import product

Operand = Pair | Tensor


def on_square(op: OpOverload, x: Pair, *args: Any, gives: str = "M", fill: float = 1, **kwargs: Any) -> Any:
    """Ops on one matrix; ``gives`` says what each result has a value for: E(ach matrix), M(atrix), V(ector)."""
    m = matrices.square_sets(x, fill)
    masks_of = {"E": m.entry, "M": m.matrix, "V": m.vector}
    results = op(m.data, *args, **kwargs)
    if isinstance(results, Tensor):
        return Pair(results, masks_of[gives](results.shape))
    return tuple(Pair(r, masks_of[kind](r.shape)) for r, kind in zip(results, gives, strict=True))


def on_whole(op: OpOverload, *operands: Any, cores: tuple[int, ...] = (2,), **kwargs: Any) -> Any:
    """Slices along the last dims of each operand (``cores`` says how many): valid if all of them are fully valid."""
    judged = []

    def use(value: Any, core: int) -> Any:
        if type(value) is not Pair:
            if core and isinstance(value, Tensor):  # a tolerance broadcasts to its batch
                judged.append(masks.full(value.shape[:-core], value.device))
            return value
        data, usable = matrices.whole_slices(value, core)
        judged.append(usable)
        return data

    data = [use(x, core) for x, core in zip(operands, (*cores, *(0,) * len(operands)), strict=False)]
    results = op(*data, **{name: use(x, 0) for name, x in kwargs.items()})
    usable = judged[0]
    for other in judged[1:]:
        usable = masks.logical_and(usable, other)
    if isinstance(results, Tensor):
        return Pair(results, matrices.expand_per_entry(usable, results.shape))
    return tuple(Pair(r, matrices.expand_per_entry(usable, r.shape)) for r in results)


def power(op: OpOverload, x: Pair, n: int) -> Pair:
    """``n`` products of the matrix, or of its inverse; the identity is valid everywhere."""
    if n == 0 or x.data.dim() < 2 or x.data.shape[-1] != x.data.shape[-2]:  # or torch's own error
        return pair.plain_pair(op(torch.where(x.mask, x.data, 0), n))
    if n == 1:
        return Pair(x.data.clone(), x.mask, x.payload)
    if n < 0:
        x, n = on_square(torch.ops.aten.linalg_inv.default, x), -n
    result, square = None, x
    while True:
        if n % 2:
            result = square if result is None else product(torch.ops.aten.matmul.default, result, square)
        n //= 2
        if n == 0:
            assert result is not None
            return result
        square = product(torch.ops.aten.matmul.default, square, square)


def rank(op: OpOverload, x: Operand, *tolerance: Any, **named: Any) -> Pair:
    """The rank of the valid block: a missing member is a row and a column of zeros."""
    m = matrices.square_sets(pair.as_pair(x), 0)
    result: Pair = on_whole(op, pair.plain_pair(m.data), *tolerance, **named)
    return Pair(result.data, masks.logical_and(result.mask, m.entry(result.data.shape)))


def eigh(op: OpOverload, x: Pair, UPLO: str = "L", compute_v: bool = True) -> tuple[Pair, Pair]:
    """Eigenvalues of each set in ascending order, then masked ones; eigenvectors in that order, valid at members."""
    if x.data.dim() < 2 or x.data.shape[-1] != x.data.shape[-2]:
        op(x.data, UPLO, compute_v)  # raises
    members = matrices.members(x.mask)
    fill = _above_eigenvalues(x, members, UPLO)
    values, vectors = op(
        torch.where(matrices.pairs_of_members(members), x.data, torch.diag_embed(fill)), UPLO, compute_v
    )
    number = masks.count(members, -1, keepdim=True)
    first = masks.expand_to(torch.arange(x.data.shape[-1], device=number.device) < number, values.shape)
    both = masks.logical_and(members.unsqueeze(-1), first.unsqueeze(-2))
    return Pair(values, first), Pair(
        vectors, both if compute_v else matrices.expand_per_entry(number > 0, vectors.shape)
    )


def _above_eigenvalues(x: Pair, members: Tensor, UPLO: str) -> Tensor:
    """Numbers ``(*batch, n)`` above all eigenvalues of the block, and all different: eigh's derivative divides."""
    half = torch.tril if UPLO.upper() == "L" else torch.triu  # the other one is not read
    block = torch.where(matrices.pairs_of_members(members), x.data.detach(), 0)
    size: Tensor = 2 * torch.linalg.matrix_norm(half(block)) + 1
    return (size.unsqueeze(-1) * matrices.different_numbers(x.data.shape[-1], size)).to(x.data.dtype)


def lstsq(a: Operand, b: Operand, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Least squares, if both sides are fully valid; rank and singular values need only a valid matrix."""
    left, right = pair.as_pair(a), pair.as_pair(b)
    vector = right.data.dim() == 1 or right.data.shape == left.data.shape[:-1]
    matrix, whole = matrices.whole_slices(left, 2)
    side, sides = matrices.whole_slices(right, 1 if vector else 2)
    results = torch.ops.aten.linalg_lstsq.default(matrix, side, rcond, driver=driver)
    both = masks.logical_and(whole, sides)  # batches may broadcast
    return tuple(
        Pair(r, matrices.expand_per_entry(valid, r.shape))
        for r, valid in zip(results, (both, both, whole, whole), strict=True)
    )


def lu_unpack(lu: Operand, pivots: Operand, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """The factors P, L and U from the result of ``lu_factor``."""
    m, exchanged = with_pivots(lu, pivots)
    results = torch.lu_unpack(m.data, exchanged, unpack_data, unpack_pivots)
    return tuple(Pair(r, m.matrix(r.shape) if r.dim() > 1 else m.entry(r.shape)) for r in results)


def with_pivots(lu: Operand, pivots: Operand) -> tuple[matrices.Matrices, Tensor]:
    """Factors with their pivots, which must be valid for every member."""
    m, p = matrices.square_sets(pair.as_pair(lu)), pair.as_pair(pivots)
    needed = m.rows[..., : p.data.shape[-1]]
    lost = masks.any(masks.logical_and(needed, masks.complement(p.mask)), -1)
    members = masks.logical_and(m.rows, masks.complement(lost).unsqueeze(-1))
    usable = masks.logical_and(m.usable, masks.complement(lost))
    exchanged = torch.where(members[..., : p.data.shape[-1]], p.data, matrices.identity_pivots(p.data))
    return matrices.Matrices(m.data, members, usable), exchanged


def check_errors(op: OpOverload, info: Pair, api_name: str, *, is_matrix: bool) -> None:
    """Raises for a valid matrix that has no such decomposition."""
    op(torch.where(info.mask, info.data, 0), api_name, is_matrix=is_matrix)


OPS = [
    Op("linalg_cholesky_ex", on_square, {"gives": "ME"}, generic=True),
    Op("cholesky", on_square, generic=True, optional=True),  # torch 2.15 has it no more
    Op("cholesky_inverse", on_square, generic=True),
    Op("linalg_inv_ex", on_square, {"gives": "ME"}, generic=True),
    Op("_linalg_det", on_square, {"gives": "EMV"}, generic=True),
    Op("_linalg_slogdet", on_square, {"gives": "EEMV"}, generic=True),
    Op("linalg_lu_factor_ex", on_square, {"gives": "MVE"}, generic=True),
    Op("linalg_lu", on_square, {"gives": "MMM"}, generic=True),
    Op("linalg_matrix_exp", on_square, {"fill": 0}, generic=True),
    Op("linalg_matrix_sqrth", on_square, generic=True, optional=True),  # from torch 2.15 on
    Op("lu_unpack", lu_unpack),
    Op("_linalg_eigh", eigh, generic=True),
    *ops("_linalg_svd linalg_qr geqrf linalg_eig _linalg_eigvals linalg_ldl_factor_ex", on_whole, generic=True),
    Op("linalg_polar", on_whole, generic=True, optional=True),  # from torch 2.15 on
    Op("linalg_pinv.atol_rtol_tensor", on_whole, generic=True),
    # Of these torch would make others itself, with numbers and identities of the layout of x.
    Op("linalg_matrix_rank", rank, generic=True),
    *ops("pinverse linalg_pinv.atol_rtol_float", on_whole, generic=True),
    *ops("matrix_power linalg_matrix_power", power, generic=True),
    Op("linalg_householder_product", on_whole, {"cores": (2, 1)}, generic=True),
    Op("ormqr", on_whole, {"cores": (2, 1, 2)}, generic=True),
    Op("linalg_ldl_solve", on_whole, {"cores": (2, 1, 2)}, generic=True),
    Op("linalg_lstsq", lstsq),
    Op("_linalg_check_errors", check_errors, generic=True),
]
