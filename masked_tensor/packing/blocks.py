"""``Blocks``: which entries of a product over time are stored.

Queries ``(B, .., T, D)`` times keys ``(B, .., D, S)`` give scores over the grid ``(B, .., T, S)``, heads in between.
Stored are those of a stored query and a stored key: of each sequence one contiguous block ``(.., t, s)``, one block
after the other.  Sequences of one length that lie side by side are one *run*, which an op takes as one tensor.
"""

from itertools import groupby

import torch
from torch import Tensor

from ..kernels.attention.fused import Run
from ..op import NoRule
from .grid import Grid, fact, same_places


def runs_of(queries: Grid, keys: Grid) -> list[Run]:
    """The calls to make, in the order of the tokens.  Raises NoRule for queries of a sequence that has no key."""
    if queries is not keys:
        return _runs(queries, keys)
    if Run not in queries.known:  # all layers of a model share them
        queries.known[Run] = _runs(queries, keys)
    found: list[Run] = queries.known[Run]
    return found


def _runs(queries: Grid, keys: Grid) -> list[Run]:
    runs = []
    at = 0
    for (q, k), several in groupby(zip(queries.sizes, keys.sizes, strict=True)):
        number = len(list(several))
        if q and not k:
            raise NoRule
        if q:
            runs.append(Run(at, number, q, k))
        elif k:
            raise NoRule  # keys that nobody asks for: their tokens would have to be skipped
        at += number
    if not runs:
        raise NoRule
    return runs


class Blocks(Grid):
    """The places ``(b, .., t, s)`` at which both a query and a key are stored; ``heads`` lie in between."""

    def __init__(self, queries: Grid, keys: Grid, heads: tuple[int, ...]) -> None:
        self.queries, self.keys, self.heads = queries, keys, heads
        self.shape = (queries.shape[0], *heads, queries.shape[1], keys.shape[1])
        self.calls = runs_of(queries, keys)
        self.host = queries.host
        self.known = {}

    @fact
    def index(self) -> Tensor:  # worked out when it is asked for: most models never do
        """The rising flat positions in the grid: (N,)."""
        return self.mask.reshape(-1).nonzero().squeeze(1)

    @fact
    def full(self) -> bool:
        """Whether every place is stored."""
        return self.queries.full and self.keys.full

    @property
    def origin(self) -> Tensor:
        """The tensor that all facts follow from."""
        return self.queries.origin

    @property
    def device(self) -> torch.device:
        """Where the tokens lie."""
        return self.queries.device

    @fact
    def mask(self) -> Tensor:
        """The grid as a mask, constant along the heads."""
        batch, *_, time, keys = self.shape
        between = (1,) * len(self.heads)
        grid = self.queries.mask.reshape(batch, *between, time, 1)
        return (grid & self.keys.mask.reshape(batch, *between, 1, keys)).expand(self.shape)

    @fact
    def runs(self) -> list[tuple[int, ...]]:
        """The shape of each run: ``(sequences, .., t, s)``."""
        return [(run.number, *self.heads, run.queries, run.keys) for run in self.calls]

    def read(self, wide: Tensor) -> Tensor:
        """A tensor over the grid, its dimensions of size n or 1, at the stored places: cut run by run."""
        if wide.dim() != len(self.shape):
            raise NoRule  # features beside the grid
        if wide.numel() == 1:
            return wide.reshape(1)
        parts = []
        for run, shape in zip(self.calls, self.runs, strict=True):
            part = wide[run.sequences] if wide.shape[0] > 1 else wide
            part = select_along(
                select_along(part, -2, positions_of_run(self.queries, run)), -1, positions_of_run(self.keys, run)
            )
            parts.append(part.expand(shape).reshape(-1))
        return torch.cat(parts)

    def agrees(self, other: Grid) -> bool:
        """Whether both are of the same queries and keys."""
        if isinstance(other, Blocks):
            return same_places(self.queries, other.queries) and same_places(self.keys, other.keys)
        return super().agrees(other)

    def on(self, device: torch.device) -> Grid:
        """The same places, known on another device."""
        return self if device == self.device else Blocks(self.queries.on(device), self.keys.on(device), self.heads)


def make_blocks(queries: Grid, keys: Grid, heads: tuple[int, ...]) -> Blocks:
    """The blocks of these tokens: all layers of a model share one."""
    key = (Blocks, id(keys), heads)  # the blocks hold the keys, so that none takes their place
    if key not in queries.known:
        queries.known[key] = Blocks(queries, keys, heads)
    found: Blocks = queries.known[key]
    return found


def positions_of_run(grid: Grid, run: Run) -> Tensor | int:
    """The places in the grid of a run's tokens: a length, if they are the first ones; else ``(sequences, T)``."""
    size = grid.sizes[run.first]
    if grid.prefix:
        return size
    start = sum(grid.sizes[: run.first])
    return grid.time[start : start + run.number * size].view(run.number, size)


def select_along(wide: Tensor, dim: int, places: Tensor | int) -> Tensor:
    """The given places along a dimension; all of one of size 1."""
    if wide.shape[dim] == 1:
        return wide
    if isinstance(places, int):
        return wide.narrow(dim, 0, places)
    shape = [places.shape[0], *wide.shape[1:]]
    index = places.view(places.shape[0], *(1,) * (wide.dim() - 3), *((-1, 1) if dim == -2 else (1, -1)))
    shape[dim] = places.shape[1]
    return wide.expand(places.shape[0], *wide.shape[1:]).gather(dim, index.expand(shape))
