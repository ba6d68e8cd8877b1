"""Sorts of pairs with sparse data: the valid entries of a slice come first, in order."""

from typing import Any

import torch
from torch import Tensor

from .. import shapes
from ..layouts.elements import build_like, zeros_read
from ..layouts.validity import valid_outputs
from ..pair import Pair
from ..shared.too_few import TooFew
from .ranks import OrderedElements
from .reduction import assemble_result, check_nonempty, outputs, take_valid


class SortedEntries:
    """The valid entries of a pair in order along ``dim`` (None: all of them), and where they were."""

    def __init__(self, x: Pair, dim: int | None, descending: bool = False) -> None:
        self.x = x
        self.dims = shapes.canonical_dims(dim, x.data.dim())
        t = take_valid(x.data, x.mask)
        self.outputs = outputs(t, self.dims, False, False)
        self.sorted = OrderedElements(t, self.outputs, descending)
        self.positions = t.position(self.dims)[self.sorted.order]

    def first(self, number: int) -> tuple[Pair, Pair]:
        """The first entries of every slice, and where they were."""
        (dim,) = self.dims or (0,)
        ids = self.outputs.slices.ids[self.sorted.order]
        rank = torch.arange(ids.numel(), device=ids.device) - self.sorted.start[ids]
        kept = (rank < number).nonzero().view(-1)
        shape = [number if d == dim else n for d, n in enumerate(self.x.data.shape)]
        inner = torch.Size(shape[dim + 1 :]).numel()  # how many slices lie side by side
        place = self.outputs.keys[ids[kept]]
        key = (place // inner * number + rank[kept]) * inner + place % inner if shape else place
        key, order = key.sort()
        values, positions = self.sorted.values[kept][order], self.positions[kept][order]
        return self._pair(key, values, shape), self._pair(key, positions, shape)

    def _pair(self, key: Tensor, new: Tensor, shape: Any) -> Pair:
        return valid_outputs(build_like(key, new, shape, self.x.data), None)

    def at(self, rank: Tensor, keepdim: bool, least: int = 1) -> tuple[Pair, Pair]:
        """The entry at ``rank`` of every slice that has ``least`` entries, and where it was."""
        place, few = self.sorted.place(rank), TooFew(0, None, least)
        parts = []
        for column in (self.sorted.values, self.positions):
            new = column[place] if column.numel() else zeros_read(column, place.shape)
            parts.append(valid_outputs(*assemble_result(new, self.outputs, self.x.data, self.dims, keepdim, few)))
        return parts[0], parts[1]


def sort(x: Pair, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> tuple[Pair, Pair]:
    """Ties keep their order, whether that is asked for or not."""
    (axis,) = shapes.canonical_dims(dim, max(x.data.dim(), 1))
    return SortedEntries(x, dim, descending).first(x.data.shape[axis])


def topk(x: Pair, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Pair, Pair]:
    """Beyond the valid entries: masked."""
    (axis,) = shapes.canonical_dims(dim, max(x.data.dim(), 1))
    if not 0 <= k <= x.data.shape[axis]:
        raise RuntimeError(f"topk: k must lie between 0 and {x.data.shape[axis]}, the size of dim {dim}, got {k}")
    return SortedEntries(x, dim, largest).first(k)


def kthvalue(x: Pair, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Pair, Pair]:
    """Masked where fewer than ``k`` entries are valid."""
    entries = SortedEntries(x, dim)
    return entries.at(torch.full_like(entries.sorted.start, k - 1), keepdim, k)


def median(x: Pair, dim: int | None = None, keepdim: bool = False, *, skip_nan: bool = False) -> Any:
    """The lower median; NaN if one entry is (``skip_nan``: if all are)."""
    if dim is not None:
        check_nonempty("nanmedian" if skip_nan else "median", x.data.shape, shapes.canonical_dims(dim, x.data.dim()))
    entries = SortedEntries(x, dim)
    values, positions = entries.at(entries.sorted.middle(skip_nan), keepdim)
    return values if dim is None else (values, positions)


def nanmedian(x: Pair, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of what is not NaN."""
    return median(x, dim, keepdim, skip_nan=True)
