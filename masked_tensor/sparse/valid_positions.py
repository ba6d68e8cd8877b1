"""The valid positions of every slice in row-major order: how many come before one, and which comes n-th.

Nothing is spelled out.  The mask is asked for its True entries only; along dimensions in which it does not vary,
positions are counted.  A question costs one or two binary searches per dimension.
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from .. import masks
from ..layouts.elements import is_sparse
from ..layouts.positions import Coordinate, ravel, unravel
from ..layouts.validity import true_keys
from .reduction import Outputs, StoredValid
from .slices import sort_into_slices


class ValidPositions:
    """The valid positions along ``dims`` of a tensor of ``shape``, under a mask that broadcasts to it (None: all).

    ``own`` are the dimensions in which the mask varies; ``table`` holds the sorted keys of its True entries, first by
    the slice they are in, then by their position.
    """

    def __init__(self, mask: Tensor | None, shape: Sequence[int], dims: Sequence[int], device: torch.device) -> None:
        self.shape, self.dims = shape, dims
        self.own: list[int] = []
        self.table = torch.zeros(1, dtype=torch.int64, device=device)
        if mask is not None:
            mask = mask if is_sparse(mask) else masks.compact(mask)
            lead = len(shape) - mask.dim()
            self.own = [d + lead for d, size in enumerate(mask.shape) if size != 1]
            true = true_keys(mask)
            coordinates, number = unravel(true, mask.shape), true.shape[0]
            nested = [d for d in self.own if d not in dims] + [d for d in self.own if d in dims]
            self.table = self._key(lambda d: coordinates[d - lead], nested).expand(number).sort().values

    def before(self, coordinate: Coordinate) -> Tensor:
        """How many valid positions of its slice come before each of the given elements."""
        if self.table.numel() == 0:
            return self.table.new_zeros(())
        width = prod(self.shape[d] for d in self.dims if d in self.own)
        prefix = self._key(coordinate, [d for d in self.own if d not in self.dims])
        low, number = self._first(prefix, width), torch.zeros_like(prefix)
        for i, d in enumerate(self.dims):
            repeats = self._repeats(i)
            if d in self.own:
                width //= self.shape[d]
                prefix = prefix * self.shape[d] + coordinate(d)
                start, low = low, self._first(prefix, width)
                number = number + (low - start) * repeats
            else:
                number = number + coordinate(d) * (self._first(prefix + 1, width) - low) * repeats
        return number

    def nth(self, coordinate: Coordinate, rank: Tensor) -> Tensor:
        """The position of the valid element that ``rank`` others of its slice precede; the slice must have that many.

        ``coordinate`` says where the slices are; the position is row-major along ``dims``.
        """
        if self.table.numel() == 0:
            return torch.zeros_like(rank)
        width = prod(self.shape[d] for d in self.dims if d in self.own)
        prefix = self._key(coordinate, [d for d in self.own if d not in self.dims])
        low, position = self._first(prefix, width), torch.zeros_like(rank)
        for i, d in enumerate(self.dims):
            repeats = self._repeats(i)
            if d in self.own:
                width //= self.shape[d]
                entry = self.table[(low + rank // repeats).clamp_max(self.table.numel() - 1)]
                here = entry // width % self.shape[d]
                prefix = prefix * self.shape[d] + here
                start, low = low, self._first(prefix, width)
                rank = rank - (low - start) * repeats
            else:
                each = (self._first(prefix + 1, width) - low).clamp_min(1) * repeats
                here = rank // each
                rank = rank - here * each
            position = position * self.shape[d] + here
        return position

    def _key(self, coordinate: Coordinate, dims: Sequence[int]) -> Tensor:
        key = ravel(coordinate, self.shape, dims)
        return self.table.new_zeros(()) if key is None else key

    def _repeats(self, i: int) -> int:
        """How often the dimensions after the i-th repeat each entry of the mask."""
        return prod(self.shape[d] for d in self.dims[i + 1 :] if d not in self.own)

    def _first(self, prefix: Tensor, width: int) -> Tensor:
        """Where the entries of the table that begin with ``prefix`` start."""
        return torch.searchsorted(self.table, prefix * width)


def first_unstored(t: StoredValid, o: Outputs, dims: Sequence[int], last: bool = False) -> Tensor:
    """The first (last) valid position of each slice that the input does not store; -1 where there is none."""
    s = o.slices
    places = ValidPositions(t.mask, t.x.shape, dims, s.ids.device)
    rank = places.before(t.coordinate).expand(s.ids.shape)
    if last:
        rank = s.to_values(s.count) - 1 - rank
    order = sort_into_slices(s.ids, rank)
    ids = s.ids[order]
    within = torch.arange(ids.numel(), device=ids.device) - (s.stored.cumsum(0) - s.stored)[ids]
    gap = rank[order] != within
    number = s.stored.scatter_reduce(0, ids[gap], within[gap], "amin")
    some = number < s.count
    number = torch.where(some, s.count - 1 - number if last else number, 0)
    kept = [d for d in range(t.x.dim()) if d not in dims]
    coordinates = dict(zip(kept, unravel(o.keys, o.shape), strict=True))
    return torch.where(some, places.nth(lambda d: coordinates[d], number), -1)
