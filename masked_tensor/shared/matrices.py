"""Matrices with masked entries, one per entry of a batch: which can be used, and what replaces those that cannot.

A matrix is *usable* if it is whole, or if its rows and columns are masked alike: the matrix of a set of which some
members are missing, such as a kernel matrix over a padded batch.  On the missing rows and columns the identity (or what
a rule asks for) stands in; it meets only zeros, so that what is computed on the members is exact.  For a matrix that
is not usable another one stands in, so that no kernel sees masked-out data.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .. import masks
from ..pair import Pair


@dataclass(frozen=True, slots=True)
class Matrices:
    """``(*batch, m, n)``; ``rows`` are the members of each set, ``(*batch, m)``, and none where it is not usable."""

    data: Tensor
    rows: Tensor
    usable: Tensor

    def entry(self, shape: torch.Size) -> Tensor:
        """The mask of a result with one value, or one whole slice, for each matrix."""
        return expand_per_entry(self.usable, shape)

    def vector(self, shape: torch.Size) -> Tensor:
        """The mask of a result with one value for each member."""
        return masks.expand_to(self.rows, shape) if self._square else self.entry(shape)

    def matrix(self, shape: torch.Size) -> Tensor:
        """The mask of a result with one value for every two members."""
        return masks.expand_to(pairs_of_members(self.rows), shape) if self._square else self.entry(shape)

    @property
    def _square(self) -> bool:
        return self.data.shape[-1] == self.data.shape[-2]


def square_sets(x: Pair, fill: float = 1) -> Matrices:
    """Square matrices: ``fill`` on the diagonal of what is missing.  Others must be whole."""
    if x.data.dim() < 2 or x.data.shape[-1] != x.data.shape[-2]:
        data, usable = whole_slices(x, 2)
        rows = usable.unsqueeze(-1) if x.data.dim() > 1 else usable
        return Matrices(data, masks.expand_to(rows, x.data.shape[:-1]), usable)
    rows = members(x.mask)
    pairs, unit, usable = pairs_of_members(rows), fill * eye(x.data), is_nonempty(rows)
    if x.data.stride(-2) < x.data.stride(-1):  # column by column, as LAPACK's factors lie: its solvers round by that
        return Matrices(torch.where(pairs, x.data.mT, unit).mT, rows, usable)
    return Matrices(torch.where(pairs, x.data, unit), rows, usable)


def members(mask: Tensor) -> Tensor:
    """The rows ``(*batch, n)`` of square masks ``(*batch, n, n)`` that are masked as the columns are; else none."""
    size = mask.shape[-1]
    small = masks.compact(mask)
    if small.shape[-2:] == (1, 1):
        return masks.expand_to(small.squeeze(-1), mask.shape[:-1])
    wide = small.expand(*small.shape[:-2], size, size)
    rows = wide.diagonal(dim1=-2, dim2=-1)
    alike = masks.all(wide == pairs_of_members(rows), (-2, -1))
    return masks.expand_to(rows & alike.unsqueeze(-1), mask.shape[:-1])


def is_nonempty(rows: Tensor) -> Tensor:
    """Whether a set has a member (a matrix of size 0 is whole)."""
    return masks.any(rows, -1) if rows.shape[-1] else masks.full(rows.shape[:-1], rows.device)


def pairs_of_members(rows: Tensor) -> Tensor:
    """Every two members of a set."""
    return masks.logical_and(rows.unsqueeze(-1), rows.unsqueeze(-2))


def whole_slices(x: Pair, dims: int) -> tuple[Tensor, Tensor]:
    """The slices along the last ``dims`` dims, a harmless one for each with a masked entry; and which are whole.

    What stands in: of matrices different singular values, of vectors 0, of pivots no exchange, of numbers 0.
    """
    dims = min(dims, x.data.dim())
    usable = masks.all(x.mask, tuple(range(-dims, 0))) if dims else x.mask
    if dims == 2:
        fill = eye(x.data) * different_numbers(x.data.shape[-1], x.data)
    elif dims == 1 and not x.data.is_floating_point() and not x.data.is_complex():
        fill = identity_pivots(x.data)
    else:
        fill = torch.zeros((), dtype=x.data.dtype, device=x.data.device)
    return torch.where(expand_per_entry(usable, x.data.shape), x.data, fill), usable


def different_numbers(size: int, like: Tensor) -> Tensor:
    """So many numbers from 1 to 2, all different, of the precision of ``like``; linspace would fix a traced size."""
    dtype = like.dtype.to_real() if like.is_complex() else like.dtype
    return torch.arange(size, 2 * size, dtype=dtype, device=like.device) / max(size, 1)


def expand_per_entry(usable: Tensor, shape: torch.Size) -> Tensor:
    """What is known of each entry of a batch, for all of its result (which may be empty, whatever the batch)."""
    if 0 in shape:
        return masks.full(shape, usable.device)
    return masks.expand_to(usable[(...,) + (None,) * (len(shape) - usable.dim())], shape)


def eye(like: Tensor) -> Tensor:
    """The identity, of the size and kind of ``like``."""
    return torch.eye(*like.shape[-2:], dtype=like.dtype, device=like.device)


def identity_pivots(pivots: Tensor) -> Tensor:
    """The pivots that exchange nothing."""
    return torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
