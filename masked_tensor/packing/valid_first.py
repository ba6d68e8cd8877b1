"""Stored tokens, some of them masked, in an order that attention accepts where no value may be read.

Valid tokens come first, sequence by sequence.  Behind them the masked ones are sequences of their own, so that no size
depends on how many there are: as zeros they give zeros, and gradients of zero.
"""

import torch
from torch import Tensor

from .. import masks
from ..op import NoRule
from ..pair import Payload
from ..select import select
from .grid import Grid, fact
from .packed import Packed
from .scatter_gather import move


class ValidFirst:
    """The order of a grid's tokens in which the ``valid`` ones (N,) come first."""

    def __init__(self, grid: Grid, valid: Tensor) -> None:
        self.grid, self.valid, self.shape, self.origin = grid, valid, grid.shape, grid.index

    @fact
    def ranks(self) -> Tensor:
        """How many valid tokens lie before each token, and before the end: (N + 1,)."""
        counted = self.valid.cumsum(0)
        return torch.cat([counted.new_zeros(1), counted])

    @fact
    def places(self) -> Tensor:
        """The place of each token in the order: (N,)."""
        before, number = self.ranks[:-1], self.valid.shape[0]
        behind = self.ranks[-1] + torch.arange(number, device=self.valid.device) - before
        return torch.where(self.valid, before, behind)

    @fact
    def tokens(self) -> Tensor:
        """The token at each place: (N,)."""
        number = torch.arange(self.valid.shape[0], device=self.valid.device)
        return torch.empty_like(number).scatter(0, self.places, number)

    @fact
    def offsets(self) -> Tensor:
        """Where each sequence begins, then each piece of the masked tokens, which are as long as a sequence can be."""
        time, number = self.shape[1], self.valid.shape[0]
        firsts = self.ranks.index_select(0, self.grid.offsets)
        ends = torch.arange(1, (number + time - 1) // time + 1, device=self.valid.device) * time
        return torch.cat([firsts, (firsts[-1] + ends).clamp(max=number)])

    @fact
    def bounds(self) -> Tensor:
        """``offsets`` in int32, as the attention kernels of a GPU count."""
        return self.offsets.int()

    @fact
    def lengths(self) -> Tensor:
        """The length of each sequence and of each piece."""
        return self.offsets.diff()

    @fact
    def whole(self) -> Grid:
        """A grid of whole steps in this order: the masked ones are sequences of their own, behind the others."""
        (batch, time), number = self.shape, self.valid.shape[0]
        rank, known = torch.arange(number, device=self.valid.device), self.ranks[-1]
        index = torch.where(rank < known, self.grid.index.index_select(0, self.tokens), batch * time + rank - known)
        return Grid(index, (batch + (number + time - 1) // time, time), True)

    @fact
    def copied(self) -> Tensor:
        """The token at each place, and valid ones again where none is left, so that plain code meets nothing else."""
        rank, known = torch.arange(self.valid.shape[0], device=self.valid.device), self.ranks[-1]
        return self.tokens.index_select(0, rank.remainder(known.clamp(min=1)))

    def filled(self, x: Tensor) -> Tensor:
        """The tokens ``(N, ...)`` as ``copied`` says; if none is valid ones, so that no norm is 0, or ids of 0."""
        some = (self.ranks[-1] > 0).view([1] * x.dim()).expand(x.shape)
        return select(x.index_select(0, self.copied), some, 1 if x.is_floating_point() else 0)

    def prepare(self) -> "ValidFirst":
        """Works out what attention asks for: what is asked first in a CUDA graph would lie in its memory."""
        _ = self.tokens, self.places, self.bounds
        return self

    def ordered(self, x: Tensor, payload: Payload) -> Tensor:
        """The tokens ``(N, ...)`` in this order, the masked ones as 0."""
        if payload is not Payload.ZERO:
            x = select(x, self.valid.view(-1, *(1,) * (x.dim() - 1)))
        return move(x, _take, _put, self.tokens, self.places)

    def stored(self, x: Tensor) -> Tensor:
        """What lies in this order as it is stored."""
        return move(x, _put, _take, self.tokens, self.places)


def valid_first(x: Packed) -> ValidFirst:
    """The order for ``x``, once for all that are masked alike.  Raises NoRule where a token is masked in part."""
    assert x.inner is not None
    small = masks.compact(x.inner)
    if any(n != 1 for n in small.shape[1:]) or len(x.grid.shape) != 2:
        raise NoRule
    valid = small.flatten()
    if valid.shape[0] != x.stored[0]:
        raise NoRule
    known: list[ValidFirst] = x.grid.known.setdefault(ValidFirst, [])
    found = next((way for way in known if masks.same_memory(way.valid, valid)), None)
    if found is None:
        found = ValidFirst(x.grid, valid)
        known[:] = [found, *known[:3]]
    return found


def _take(x: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    return x.index_select(0, tokens)


def _put(x: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    return x.index_select(0, places)
