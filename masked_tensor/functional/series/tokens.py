"""Sequences of a packed batch as stretches of its tokens: a function along time sees each one alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ... import masks
from ...packing.dim_order import GRID
from ...packing.packed import Packed, drop_full_inner, pack_values
from ...packing.scatter_gather import gather_mask, gather_tokens, scatter_mask, scatter_tokens
from ...pair import Pair, Payload
from . import moving, spans


def time_dim(x: Packed) -> int | None:
    """The dimension that is time, of a batch of whole sequences; None if there is none."""
    return x.order.index((1,)) if x.first == GRID and (0,) in x.order and (1,) in x.order else None


def bounds(x: Packed) -> tuple[Tensor, Tensor]:
    """Where the sequence of each token begins and ends among the tokens, to compare with positions of a mask."""
    start, end = (t.view(-1, *(1,) * (x.values.dim() - 1)) for t in x.grid.around)
    return start, end


def valid_steps(x: Packed) -> Tensor:
    """Which steps ``(B, T)`` have something valid."""
    if x.inner is None:
        return x.grid.mask
    some = masks.any(x.inner, list(range(1, x.inner.dim()))) if x.inner.dim() > 1 else x.inner
    return scatter_mask(some, x.grid).view(x.grid.shape)


def spans_of_tokens(over: spans.Spans, x: Packed, step: int) -> spans.Spans:
    """Windows over the steps, ``(B, T)`` or ``(1, T)`` for all sequences, as those over the tokens of each alone."""
    grid, time = x.grid, x.grid.time
    shared = tuple(over.start.shape) != grid.shape
    start, number = (t.reshape(-1).index_select(0, time if shared else grid.index) for t in (over.start, over.number))
    start = start - time + torch.arange(len(time), device=time.device)  # a sequence lies in one piece
    if shared:
        begin, end = grid.around
        end = torch.minimum(start + number, end)
        start = torch.maximum(start, begin)
        number = (end - start).clamp_min_(0)
    shape = (-1, *(1,) * (x.values.dim() - 1))
    return spans.Spans(0, start.view(shape), number.view(shape), step)


def stored(x: Packed, result: Pair, step: int = 1) -> Packed:
    """What was made of the tokens, and of nothing else, as a packed batch, of each ``step``-th alone.

    Dimensions that it has besides are features.
    """
    data, valid, grid = result.data, result.mask, x.grid
    if step > 1:
        grid, kept = grid.every(step)
        data, valid = (
            data.index_select(0, kept),
            masks.expand_to(masks.compact_others(valid, 0).index_select(0, kept), (len(kept), *valid.shape[1:])),
        )
    first = GRID + x.values.dim() - 1
    order = (*x.order, *((first + more,) for more in range(data.dim() - x.values.dim())))
    like = drop_full_inner(Packed(data, grid, order, valid, result.payload))
    return pack_values(like.operand(), like)


@dataclass(frozen=True, slots=True, eq=False)
class Tape:
    """Sequences one after the other, between them as many places of nothing as a window reaches over."""

    of: Packed
    entries: Pair
    windows: moving.Windows
    gap: int
    step: int  #: of each how many-th token there is a result

    def tokens(self, result: Pair) -> Pair:
        """What was made of each place, at the tokens."""
        way = self.of.grid.tape(self.gap)
        return Pair(gather_tokens(result.data, way), gather_mask(result.mask, way), result.payload)


def lay_out(x: Packed, windows: moving.Windows) -> Tape:
    """The tokens and their mask, and the windows over them."""
    time, pair = x.grid.shape[1], x.pair()
    start, end = max(windows.start, -time), min(windows.end, time)
    gap = max(-start, end - 1, 0)
    way, known = x.grid.tape(gap), x.grid.known
    if known.get("mask on tape", (None, None))[:2] != (gap, id(pair.mask)):  # of several windows over one tensor
        known["mask on tape"] = gap, id(pair.mask), pair.mask, scatter_mask(pair.mask, way)
    entries = Pair(scatter_tokens(pair.data, way), known["mask on tape"][3], Payload.ANY)
    return Tape(x, entries, moving.Windows(0, start, end), gap, windows.step)
