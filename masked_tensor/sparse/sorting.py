"""Sorts of pairs with sparse data: the valid entries of a slice come first, in order; holes follow, so nothing does."""

from typing import Any

import torch
from torch import Tensor

from .. import shapes
from ..layouts.elements import built
from ..layouts.keys import ravel
from ..layouts.validity import valid_outputs
from ..pair import Pair
from .reduction import Outputs, check_nonempty, finished, outputs, taken
from .slices import arranged


class Sorted:
    """The valid entries of a pair by slice along ``dim`` and, inside it, by value (stable; NaN is the greatest)."""

    def __init__(self, x: Pair, dim: int | None, descending: bool = False) -> None:
        self.x = x
        self.dims = shapes.canonical_dims(dim, x.data.dim())
        t = taken(x.data, x.mask)
        self.outputs: Outputs = outputs(t, self.dims, False, False)
        s = self.outputs.slices
        if t.values.is_complex():
            raise RuntimeError(f"complex numbers have no order, got {t.values.dtype}")
        order = arranged(s.ids, t.values.detach(), descending=descending)
        along = ravel(t.coordinate, x.data.shape, self.dims)
        along = torch.zeros_like(s.ids) if along is None else along
        self.values, self.ids, self.positions = t.values[order], s.ids[order], along[order]
        self.start = s.stored.cumsum(0) - s.stored

    def first(self, number: int) -> tuple[Pair, Pair]:
        """The first entries of every slice, and where they were."""
        (dim,) = self.dims or (0,)
        rank = torch.arange(self.ids.numel(), device=self.ids.device) - self.start[self.ids]
        kept = (rank < number).nonzero().view(-1)
        shape = [number if d == dim else n for d, n in enumerate(self.x.data.shape)]
        inner = torch.Size(shape[dim + 1 :]).numel()  # how many slices lie side by side
        place = self.outputs.keys[self.ids[kept]]
        key = (place // inner * number + rank[kept]) * inner + place % inner if shape else place
        key, order = key.sort()
        return self._pair(key, self.values[kept][order], shape), self._pair(key, self.positions[kept][order], shape)

    def _pair(self, key: Tensor, new: Tensor, shape: Any) -> Pair:
        return valid_outputs(built(key, new, shape, self.x.data), None)

    def at(self, rank: Tensor, keepdim: bool, least: int = 1) -> tuple[Pair, Pair]:
        """The entry at ``rank`` of every slice that has ``least`` entries, and where it was."""
        place = (self.start + rank).clamp(0, max(self.ids.numel() - 1, 0))
        parts = []
        for column in (self.values, self.positions):
            new = column[place] if column.numel() else column.new_zeros(place.shape)
            parts.append(valid_outputs(*finished(new, self.outputs, self.x.data, self.dims, keepdim, None, least)))
        return parts[0], parts[1]


def sort(x: Pair, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> tuple[Pair, Pair]:
    """Ties keep their order, whether that is asked for or not."""
    (axis,) = shapes.canonical_dims(dim, max(x.data.dim(), 1))
    return Sorted(x, dim, descending).first(x.data.shape[axis])


def topk(x: Pair, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Pair, Pair]:
    """Beyond the valid entries: holes."""
    (axis,) = shapes.canonical_dims(dim, max(x.data.dim(), 1))
    if not 0 <= k <= x.data.shape[axis]:
        raise RuntimeError(f"topk: k must lie between 0 and {x.data.shape[axis]}, the size of dim {dim}, got {k}")
    return Sorted(x, dim, largest).first(k)


def kthvalue(x: Pair, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Pair, Pair]:
    """A hole where fewer than ``k`` entries are valid."""
    s = Sorted(x, dim)
    return s.at(torch.full_like(s.start, k - 1), keepdim, k)


def median(x: Pair, dim: int | None = None, keepdim: bool = False, *, skip_nan: bool = False) -> Any:
    """The lower median; NaN if one entry is (``skip_nan``: if all are)."""
    if dim is not None:
        check_nonempty("nanmedian" if skip_nan else "median", x.data.shape, shapes.canonical_dims(dim, x.data.dim()))
    s = Sorted(x, dim)
    stored = s.outputs.slices.stored
    nans = torch.zeros_like(s.start).index_add(0, s.ids, (s.values != s.values).to(torch.int64))
    middle = (stored - nans - 1).clamp_min(0) // 2
    rank = middle if skip_nan else torch.where(nans > 0, stored - nans, middle)
    values, positions = s.at(rank, keepdim)
    return values if dim is None else (values, positions)


def nanmedian(x: Pair, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of what is not NaN."""
    return median(x, dim, keepdim, skip_nan=True)
