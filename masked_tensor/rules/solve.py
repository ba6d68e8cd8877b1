"""Linear systems: a column of the right-hand side is solved if it and the matrix are fully valid, else masked.

Where the rows and columns of the matrix are masked alike (a set with missing members, such as padding), the system of
its members is solved; the right-hand side must be valid only for them.  The identity replaces missing members.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload
from ..errors import expect_shape
from ..op import Op
from ..pair import Pair
from ..shared.matrices import Matrices, square_sets
from .linalg import with_pivots

Operand = Pair | Tensor


@dataclass(frozen=True, slots=True)
class Side:
    """A right-hand side with zeros where nothing is solved, and the mask of the solution."""

    data: Tensor
    mask: Tensor


def right_hand_side(b: Pair, a: Matrices, left: bool = True, vector: bool = False) -> Side:
    """``b`` is ``(*batch, n, k)``, ``(*batch, k, n)`` if not ``left``, or ``(*batch, n)``."""
    if min(b.data.dim() + vector, a.data.dim()) < 2:
        return Side(b.data, b.mask)  # torch's own error follows
    mask = b.mask.unsqueeze(-1) if vector else b.mask if left else b.mask.mT
    members = a.rows.unsqueeze(-1)
    if mask.shape[-2] != members.shape[-2]:
        return Side(b.data, b.mask)
    lost = masks.any(masks.logical_and(members, masks.complement(mask)), -2, keepdim=True)
    solved = masks.logical_and(members, masks.logical_and(masks.complement(lost), a.usable[..., None, None]))
    solved = solved.squeeze(-1) if vector else solved if left else solved.mT
    return Side(torch.where(solved, b.data, 0), solved)


def solve_ex(op: OpOverload, a: Operand, b: Operand, *, left: bool = True, check_errors: bool = False) -> Any:
    """``A X = B``, or ``X A = B``; also the factors and LAPACK's status for each matrix."""
    m, known = square_sets(pair.as_pair(a)), pair.as_pair(b)
    vector = known.data.dim() == 1 or known.data.shape == m.data.shape[:-1]
    side = right_hand_side(known, m, left, vector)
    x, lu, pivots, info = op(m.data, side.data, left=left, check_errors=check_errors)
    factors = Pair(lu, m.matrix(lu.shape)), Pair(pivots, m.vector(pivots.shape))
    return Pair(x, masks.expand_to(side.mask, x.shape)), *factors, Pair(info, m.entry(info.shape))


def solve_triangular(a: Operand, b: Operand, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Pair:
    """``torch.linalg.solve_triangular``."""
    m = square_sets(pair.as_pair(a))
    side = right_hand_side(pair.as_pair(b), m, left)
    x = torch.linalg.solve_triangular(m.data, side.data, upper=upper, left=left, unitriangular=unitriangular)
    return Pair(x, masks.expand_to(side.mask, x.shape))


def triangular_solve(b: Operand, a: Operand, *how: bool, **kwargs: bool) -> tuple[Pair, Pair]:
    """The older form, which also returns a copy of the matrix."""
    m = square_sets(pair.as_pair(a))
    side = right_hand_side(pair.as_pair(b), m)
    x, copy = torch.ops.aten.triangular_solve.default(side.data, m.data, *how, **kwargs)
    return Pair(x, masks.expand_to(side.mask, x.shape)), Pair(copy, m.matrix(copy.shape))


def cholesky_solve(op: OpOverload, b: Operand, factor: Operand, upper: bool = False) -> Pair:
    """Solves with the factor that ``cholesky`` returned."""
    m = square_sets(pair.as_pair(factor))
    side = right_hand_side(pair.as_pair(b), m)
    x = op(side.data, m.data, upper)
    return Pair(x, masks.expand_to(side.mask, x.shape))


def lu_solve(lu: Operand, pivots: Operand, b: Operand, *, left: bool = True, adjoint: bool = False) -> Pair:
    """Solves with the factors and pivots that ``lu_factor`` returned."""
    expect_shape("pivots", pair.data_of(pivots), pair.data_of(lu).shape[:-1])
    m, exchanged = with_pivots(lu, pivots)
    side = right_hand_side(pair.as_pair(b), m, left)
    x = torch.linalg.lu_solve(m.data, exchanged, side.data, left=left, adjoint=adjoint)
    return Pair(x, masks.expand_to(side.mask, x.shape))


def older_lu_solve(b: Operand, lu: Operand, pivots: Operand) -> Pair:
    """``torch.lu_solve``."""
    return lu_solve(lu, pivots, b)


OPS = [
    Op("_linalg_solve_ex", solve_ex, generic=True),
    Op("linalg_solve_triangular", solve_triangular),
    Op("triangular_solve", triangular_solve),
    Op("cholesky_solve", cholesky_solve, generic=True),
    Op("linalg_lu_solve", lu_solve),
    Op("lu_solve", older_lu_solve),
]
