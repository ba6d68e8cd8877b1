"""The entrance of functions along time: which dimension that is, and which steps of a padded batch exist.

A mask says what is valid.  It does not say whether another step is missing, which can be filled, or padding, which is
nothing.  The caller says so, and whether it must be said is told by the call alone, not by the data.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ... import layouts, masks, packing, shapes
from ...compat import in_transform
from ...engine.boundary.enter_leave import leave
from ...engine.boundary.packed import enter_packed
from ...engine.tensor import MaskedTensor
from ...packing import Packed
from ...packing.dim_order import GRID
from ...packing.grid import grid_of_mask
from ...packing.packed import Frame, values_at_tokens
from ...pair import Pair, Payload
from ...select import select
from ...shared.rows.lengths import check_side, steps_that_exist
from ..entrance import Input, Number, as_pair, check_fill, check_mask, enter_input, refuse_sparse, with_gaps
from ..registry import check_dim
from . import times, tokens


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """What a function along time is given."""

    given: Input
    x: Pair  #: with a mask of its shape, False past the ends; of what is stored packed, its tokens
    dim: int  #: time
    exists: Tensor | None = None  #: which steps exist, broadcast to the data; None: all of them
    unsaid: bool = False  #: whether there may be padding, of which nothing is said
    stored: Packed | None = None  #: what ``x`` has the tokens of
    within: tuple[Tensor, Tensor] | None = None  #: of each token, where its sequence begins and ends

    def leave(self, name: str, result: Pair, fill_value: Number | None, step: int = 1) -> Any:
        """What the caller gets of a result with one entry for each ``step``-th of time."""
        if self.stored is not None:
            result = result if fill_value is None else _fill(result, fill_value)
            return leave(tokens.stored(self.stored, result, step if self.within else 1))
        if self.exists is None:
            return with_gaps(name, result, self.given, fill_value)
        exists = masks.expand_to(self.each(self.exists, step), result.data.shape)
        if self.given.masked and fill_value is not None:  # padding is no entry that could be filled
            result = _fill(result, fill_value)
            fill_value = None
        result = Pair(result.data, masks.logical_and(result.mask, exists))
        return with_gaps(name, result, Input(result, self.given.masked), fill_value)

    def leave_plain(self, result: Pair, step: int) -> Tensor:
        """The data of a result, 0 where no step exists."""
        if self.stored is not None:
            return packing.unpack(tokens.stored(self.stored, result, step if self.within else 1)).data
        if self.exists is None:
            return result.data
        return select(result.data, masks.expand_to(self.each(self.exists, step), result.data.shape), 0)

    def edges(self) -> tuple[Tensor | int, Tensor | int]:
        """Where each sequence begins and ends along ``dim``."""
        if self.within is not None:
            return self.within
        if self.exists is None:
            return 0, self.x.data.shape[self.dim]
        begin = masks.to_bytes(self.exists).argmax(self.dim, True)
        return begin, begin + self.exists.sum(self.dim, True)

    def each(self, values: Tensor, step: int) -> Tensor:
        """Each ``step``-th along time."""
        return values if step == 1 else values[(slice(None),) * self.dim + (slice(None, None, step),)]

    def places(self, name: str, index: Tensor, ties: bool = False) -> Tensor:
        """The times of ``index=``: ``(T,)``, or with the dimensions of the data, size 1 where all have the same.

        Their order is looked at where that is possible.
        """
        shape, batch = self.x.data.shape, 1 if self.dim == 0 else 0
        if self.within is not None:
            return self.over_grid(name, index, ties)[1]
        both = tuple(shape[d] for d in sorted((batch, self.dim))) if len(shape) > 1 and self.stored is None else None
        index, known = times.read(name, index, shape[self.dim], both, self.x.data.device)
        exists = self.exists
        if index.dim() == 2:
            around = [n if d in (batch, self.dim) else 1 for d, n in enumerate(shape)]
            index, known = index.reshape(around), None if known is None else known.reshape(around)
            index = index if exists is None else torch.where(exists, index, 0)
        times.check(name, index, known, self.dim if index.dim() > 1 else 0, exists, ties)
        return index

    def over_grid(self, name: str, index: Tensor, ties: bool) -> tuple[Tensor, Tensor]:
        """The times of ``index=`` of a packed batch: of all steps, ``(T,)`` or ``(B, T)``, and of its tokens."""
        assert self.stored is not None
        grid, order = self.stored.grid, self.stored.order
        turned = order.index((1,)) < order.index((0,))
        both = grid.shape[::-1] if turned else grid.shape
        index, known = times.read(name, index, grid.shape[1], both, grid.mask.device)
        if index.dim() == 1:
            times.check(name, index, known, 0, None, ties)
            return index, index.index_select(0, grid.time)
        if turned:
            index, known = index.t(), None if known is None else known.t()
        index = torch.where(grid.mask, index, 0)
        times.check(name, index, known, 1, grid.mask, ties)
        return index, index.flatten().index_select(0, grid.index)


def enter_series(name: str, input: Tensor, dim: int | None, mask: Any, lengths: Any, side: str) -> Series:
    """What was given; see :class:`Series`."""
    if type(input) is MaskedTensor and input._packed is not None and not in_transform():
        found = _enter_stored(name, input, _dim_of(name, dim, input.shape), mask, lengths, side)
        if found is not None:
            return found
    given = enter_input(input, mask)
    refuse_sparse(name, given)
    dim = _dim_of(name, dim, given.data.shape)
    check_side(side)
    x, exists = as_pair(given), None
    full = isinstance(lengths, str) and lengths == "full"
    if lengths is not None and not full:
        exists, seen = steps_that_exist(name, lengths, side, given.data, dim, given.mask)
        if not seen:  # else the mask is the one that counts are kept with
            x = Pair(x.data, masks.logical_and(x.mask, masks.expand_to(exists, x.data.shape)))
            given = Input(x, given.masked)
    packed = type(input) is MaskedTensor and input._packed is not None
    unsaid = lengths is None and type(given.x) is Pair and (packed or x.data.dim() > 2 or dim != 0)
    return Series(given, Pair(x.data, masks.expand_to(x.mask, x.data.shape), x.payload), dim, exists, unsaid)


def _dim_of(name: str, dim: int | None, shape: tuple[int, ...]) -> int:
    """Which dimension is time."""
    if not shape:
        raise ValueError(f"{name} needs a dimension to go along, got a 0-d tensor")
    if dim is None and len(shape) > 1:
        raise ValueError(
            f"{name}: say which dimension of shape {tuple(shape)} is time: dim=1 for (batch, time, ...), "
            "dim=0 for (time, ...)"
        )
    dim = 0 if dim is None else dim
    check_dim(name, dim, True)
    (dim,) = shapes.canonical_dims(dim, len(shape))
    return dim


def _enter_stored(name: str, input: MaskedTensor, dim: int, mask: Any, lengths: Any, side: str) -> Series | None:
    """A packed batch by its tokens; None where they do not lie along ``dim`` of a batch of sequences."""
    x = enter_packed(input)
    time = tokens.time_dim(x)
    if time is None or 0 in x.shape:
        return None
    if x.order[dim] == (0,):
        raise ValueError(f"{name}: dim={dim} is the batch of this packed tensor, whose sequences lie along dim={time}")
    check_side(side)
    if dim != time and (lengths is not None or not x.grid.complete or len(x.order[dim]) != 1):
        return None
    if lengths is not None:
        x = _with_lengths(name, x, lengths, side)
    if mask is not None:
        at = values_at_tokens(layouts.dense_mask(check_mask(mask, input)), x)
        pair = x.pair()
        x = Packed(x.values, x.grid, x.order, masks.logical_and(pair.mask, at.expand(x.values.shape)), pair.payload)
    pair = x.pair()
    if dim != time:
        return Series(Input(pair, True), pair, x.order[dim][0] - GRID + 1, stored=x)
    return Series(Input(pair, True), pair, 0, unsaid=not x.grid.complete, stored=x, within=tokens.bounds(x))


def _with_lengths(name: str, x: Packed, lengths: Any, side: str) -> Packed:
    """``x`` with every step stored that exists, as ``lengths`` say it."""
    grid = x.grid
    if isinstance(lengths, str) and lengths == "full":
        exists = torch.ones_like(grid.mask)
    else:
        exists, _ = steps_that_exist(
            name, lengths, side, grid.mask, 1, None if grid.complete else tokens.valid_steps(x)
        )
    if not grid.complete:
        grid = grid_of_mask(exists, True)
        frame = Frame(torch.Size((len(grid.index), *x.stored[1:])), grid, x.order, None)
        return packing.pack_onto(packing.unpack(x), frame)
    if grid.host and not exists.equal(grid.mask):
        raise ValueError(
            f"{name}: this packed tensor stores sequences of the lengths {grid.lengths.tolist()}, which lengths= or "
            "padding_side= contradicts: leave them out"
        )
    return x


def _fill(result: Pair, value: Number) -> Pair:
    """``result``, valid everywhere, with that value where it is masked."""
    check_fill(value, result.data.dtype)
    filled = select(result.data, result.mask, value)
    return Pair(filled, masks.full(filled.shape, filled.device), Payload.ZERO)


def expect_lengths(name: str, series: Series) -> None:
    """Raises for a batch that may be padded, of which it is not said: what is padding would be filled, or counted."""
    if not series.unsaid:
        return
    shape, dim = tuple(series.x.data.shape), series.dim
    if series.stored is not None:
        shape, dim = series.stored.shape, series.stored.order.index((1,))
    raise ValueError(
        f"{name} cannot tell a missing step from padding, which must not be filled: shape {tuple(shape)}, time at "
        f"dim={dim}. Pass lengths=[...], the number of steps of each sequence, or lengths='full' if there is no "
        "padding; a batch packed with its lengths knows them: from_sequences(..., packed=True), x.packed(lengths=[...])"
    )
