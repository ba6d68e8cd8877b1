"""``Grid``: which places of a grid ``(B, T)`` are stored, and everything derived from that.

Nothing here depends on the features, so one ``Grid`` serves every tensor of a model's step and is shared by identity.
Facts are worked out when they are first asked for, once.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from itertools import groupby
from math import prod
from typing import Any, TypeVar

import torch
from torch import Tensor

from .. import settings
from ..compat import computed_below, is_readable_memory
from ..kernels.devices import is_host
from ..masks import sides
from ..op import NoRule
from ..shared.rows.sequences import Packing, packing_of_lengths

T = TypeVar("T")


def fact(make: Callable[[Any], T]) -> cached_property[T]:
    """A property of a grid, worked out when it is first asked for, once, outside of what transforms of torch run."""

    @wraps(make)
    def below(grid: Any) -> T:
        with computed_below(grid.origin):
            return make(grid)

    return cached_property(below)


class Grid:
    """The stored places of a grid: ``index`` (N,), their rising flat positions (int64), and the ``grid`` (B, T).

    What speaks of sequences, their lengths and times, is asked of a grid ``(B, T)`` only; ``Blocks`` has more.
    """

    index: Tensor
    shape: tuple[int, ...]
    complete: bool | None = False
    part: tuple["Grid", Tensor, "Grid"] | None = None  #: of which grid, which of its tokens; their places among them

    def __init__(self, index: Tensor, shape: tuple[int, ...], complete: bool | None = False) -> None:
        self.index = index
        self.shape = shape
        #: whether each step that exists is stored, not only those that hold something valid; None: lengths were said
        #: once, and no longer fit
        self.complete = complete
        self.host = type(index) is Tensor  #: whether the index is not traced: then it may be looked at on the host
        self.known: dict[Any, Any] = {}  #: what follows from these tokens, for those who work it out
        self._tapes: dict[tuple[int, bool], Grid] = {}
        self._cuts: dict[tuple[int, int], tuple[Grid, Tensor]] = {}
        self._rows: dict[tuple[int, int, int], tuple[Grid, slice | Tensor]] = {}
        self._steps: dict[int, tuple[Grid, Tensor]] = {}

    @property
    def places(self) -> int:
        """How many places the grid has."""
        return prod(self.shape)

    @fact
    def runs(self) -> list[tuple[int, ...]]:
        """What lies side by side and is of one length, one dimension for each of the grid: ``(sequences, length)``."""
        if len(self.shape) != 2:
            raise NoRule
        counted = [(len(list(several)), n) for n, several in groupby(self.sizes)]
        return [run for run in counted if run[1]]

    @fact
    def full(self) -> bool:
        """Whether every place is stored: a fact of the sizes alone, for which a graph shall not be compiled anew."""
        return self.host and self.index.shape[0] == self.places

    def prepare(self) -> "Grid":
        """Works out what attention on a GPU asks for, on the stream that made the index.

        Facts that are first asked for while a CUDA graph is captured would lie in the memory of that graph, and on
        another stream nobody would wait for them.
        """
        if self.host and not is_host(self.device) and len(self.shape) == 2:
            _ = self.lengths, self.bounds, self.batch, self.time
        return self

    def look(self) -> None:
        """Before a fact that is read on the host: raises NoRule in a graph that is being compiled, which has none."""
        if not self.host:
            raise NoRule

    @property
    def origin(self) -> Tensor:
        """The tensor that all facts follow from."""
        return self.index

    @property
    def device(self) -> torch.device:
        """Where the index lies."""
        return self.index.device

    @fact
    def batch(self) -> Tensor:
        """The sequence that each token belongs to: (N,)."""
        return self.index.div(self.shape[1], rounding_mode="floor")

    @fact
    def time(self) -> Tensor:
        """The place of each token in its sequence: (N,)."""
        return self.index.remainder(self.shape[1])

    @fact
    def stretches(self) -> tuple[Tensor, int]:
        """Which stretch of a sequence, at most ``settings.CHAIN`` places, each token lies in; how many one has."""
        number = -(-self.shape[1] // settings.CHAIN)
        if number <= 1:
            return self.batch, 1
        return self.batch * number + self.time.div(settings.CHAIN, rounding_mode="floor"), number

    @fact
    def stretch_offsets(self) -> Tensor:
        """Where each stretch begins among the tokens."""
        place, number = self.stretches
        if number == 1:
            return self.offsets[:-1]
        return torch.searchsorted(place, torch.arange(self.shape[0] * number, device=self.device))

    @fact
    def lengths(self) -> Tensor:
        """How many tokens each sequence has: (B,)."""
        if self.full:
            return self.index.new_full((self.shape[0],), self.shape[1])
        return self.offsets.diff()

    @fact
    def offsets(self) -> Tensor:
        """Where each sequence begins among the tokens, and where the last one ends: (B + 1,)."""
        if self.full or "lengths" in self.__dict__:
            return torch.cat([self.lengths.new_zeros(1), self.lengths.cumsum(0)])
        # found in the rising index: a count of each number would be read on the host
        firsts = torch.arange(self.shape[0] + 1, device=self.device) * self.shape[1]
        return torch.searchsorted(self.index, firsts)

    @fact
    def bounds(self) -> Tensor:
        """``offsets`` in int32, as the attention kernels of a GPU count."""
        return self.offsets.int()

    @fact
    def nested_offsets(self) -> Tensor:
        """A copy of ``offsets`` for nested tensors, one for all of them: torch adds those that share theirs."""
        return self.offsets.clone()

    @fact
    def sizes(self) -> list[int]:
        """``lengths`` on the host."""
        self.look()
        return [self.shape[1]] * self.shape[0] if self.full else self.lengths.tolist()

    @fact
    def mask(self) -> Tensor:
        """The grid as a mask: (B, T), True where a token is stored."""
        if self.full:
            return torch.ones((), dtype=torch.bool, device=self.device).expand(self.shape)
        flat = torch.zeros(self.places, dtype=torch.bool, device=self.device)
        mask = flat.index_fill_(0, self.index, True).view(self.shape)
        looks = self.host and (is_host(self.device) or "left" in self.__dict__)  # elsewhere a look would wait
        if self.complete and len(self.shape) == 2 and looks and self.left:
            sides.note_left(mask, 1)
        return mask

    @fact
    def prefix(self) -> bool:
        """Whether each sequence stores its first places."""
        self.look()
        if self.full:
            return True
        first = torch.arange(self.index.shape[0], device=self.device) - self.offsets[self.batch]
        return bool((first == self.time).all())

    @fact
    def contiguous(self) -> bool:
        """Whether each sequence stores all places from its first to its last."""
        self.look()
        return self.prefix or bool(((self.time.diff() == 1) | (self.batch.diff() > 0)).all())

    @fact
    def numbers(self) -> Tensor:
        """The number of the token at each place, -1 where none is stored: (B, T)."""
        flat = torch.full((self.places,), -1, dtype=torch.int64, device=self.device)
        return flat.index_copy_(0, self.index, torch.arange(self.index.shape[0], device=self.device)).view(self.shape)

    @fact
    def around(self) -> tuple[Tensor, Tensor]:
        """For each token where its sequence begins among the tokens, and where it ends: (N,) each."""
        return self.offsets[self.batch], self.offsets[self.batch + 1]

    @fact
    def left(self) -> bool:
        """Whether sequences end at the last place and do not begin at the first: padded on the left."""
        return not self.prefix and bool((self.time[self.around[1] - 1] == self.shape[1] - 1).all())

    @fact
    def turns(self) -> tuple[Packing, Tensor]:
        """The tokens as a recurrent layer takes them, step by step, the longest sequence first; and the way back."""
        way = packing_of_lengths(self.sizes, self.offsets[:-1])
        return way, way.steps.argsort()

    def read(self, wide: Tensor) -> Tensor:
        """A tensor over the grid, its dimensions of size n or 1, and over features, at the stored places."""
        if all(n == 1 for n in wide.shape[: len(self.shape)]):
            return wide.flatten(0, len(self.shape) - 1)
        flat = wide.expand(*self.shape, *wide.shape[len(self.shape) :]).flatten(0, len(self.shape) - 1)
        return flat.index_select(0, self.index)

    def cut(self, first: int, last: int) -> tuple["Grid", Tensor]:
        """The places ``first`` to ``last`` of every sequence as a grid of their own, and its tokens; once."""
        self.look()
        if (first, last) not in self._cuts:
            kept = ((self.time >= first) & (self.time < last)).nonzero().squeeze(1)
            index = self.batch[kept] * (last - first) + self.time[kept] - first
            self._cuts[first, last] = Grid(index, (self.shape[0], last - first), self.complete), kept
        return self._cuts[first, last]

    def rows(self, first: int, last: int, step: int) -> tuple["Grid", slice | Tensor]:
        """The sequences ``first``, ``first + step`` .. before ``last`` as a grid of their own, and its tokens; once."""
        self.look()
        if (first, last, step) not in self._rows:
            kept: slice | Tensor
            if step == 1:
                kept = slice(sum(self.sizes[:first]), sum(self.sizes[:last]))
            else:
                kept = (
                    ((self.batch >= first) & (self.batch < last) & ((self.batch - first) % step == 0))
                    .nonzero()
                    .squeeze(1)
                )
            batch = (self.batch[kept] - first).div(step, rounding_mode="floor")
            grid = Grid(
                batch * self.shape[1] + self.time[kept], (len(range(first, last, step)), self.shape[1]), self.complete
            )
            self._rows[first, last, step] = grid, kept
        return self._rows[first, last, step]

    def every(self, step: int) -> tuple["Grid", Tensor]:
        """Each ``step``-th token of every sequence, from its first one on, as a grid of their own; and which; once."""
        self.look()
        if step not in self._steps:
            rank = torch.arange(self.index.shape[0], device=self.device) - self.around[0]
            kept = (rank % step == 0).nonzero().squeeze(1)
            lengths, time = -(-self.lengths // step), -(-self.shape[1] // step)
            first = time - lengths if self.left else torch.zeros_like(lengths)
            own = self.batch[kept]
            self._steps[step] = (
                Grid(own * time + first[own] + rank[kept] // step, (self.shape[0], time), self.complete),
                kept,
            )
        return self._steps[step]

    def tape(self, gap: int, read: bool = False) -> "Grid":
        """Sequences one after the other, ``gap`` places between them and at both ends, as a grid of one sequence.

        ``read``: without the first and the last gap, as a convolution over the tape leaves it.
        """
        if (gap, read) not in self._tapes:
            own = torch.arange(self.index.shape[0], device=self.device) + self.batch * gap
            size = self.index.shape[0] + (self.shape[0] + 1) * gap
            self._tapes[gap, read] = Grid(own, (1, size - 2 * gap)) if read else Grid(own + gap, (1, size))
        return self._tapes[gap, read]

    def agrees(self, other: "Grid") -> bool:
        """Whether tokens of the same kind, over the same grid, store the same places: where looking is free."""
        if self.index.shape != other.index.shape:
            return False
        return self.full or (
            is_readable_memory(self.index) and is_readable_memory(other.index) and torch.equal(self.index, other.index)
        )

    def on(self, device: torch.device) -> "Grid":
        """The same places, known on another device."""
        return self if device == self.device else Grid(self.index.to(device), self.shape, self.complete)


def complete_together(grids: Sequence[Grid | None]) -> bool | None:
    """Whether steps of several grids are all that exist (``complete``); None stands for what is not packed."""
    said = [grid.complete for grid in grids if grid is not None]
    return all(said) or (None if any(known is not False for known in said) else False)


def same_places(a: Grid, b: Grid) -> bool:
    """Whether two patterns store the same places.  Compared by value only where looking is free: on the CPU."""
    if a is b:
        return True
    if not (a.host and b.host):  # two inputs of a graph: the next call may give others
        return False
    return (
        a.shape == b.shape
        and a.device == b.device
        and (a if type(b) is Grid else b).agrees(b if type(b) is Grid else a)
    )


def grid_of_lengths(lengths: Sequence[int], side: str, device: torch.device, time: int | None = None) -> Grid:
    """The first (or with ``side="left"`` the last) places of each sequence: nothing is read from the device."""
    time, counts = max(lengths) if time is None else time, torch.tensor(lengths, device=device)
    starts = torch.arange(len(lengths), device=device) * time + (time - counts if side == "left" else 0)
    before = counts.cumsum(0) - counts
    total = sum(lengths)
    index = torch.arange(total, device=device) + (starts - before).repeat_interleave(counts, output_size=total)
    grid = Grid(index, (len(lengths), time), True)
    grid.sizes = list(lengths)
    grid.left = side == "left" and any(0 < n < time for n in lengths)
    return grid.prepare()


def grid_of_mask(mask: Tensor, complete: bool | None = False) -> Grid:
    """The True places of a ``(B, T)`` mask.  Their number is read on the host, once."""
    return Grid(mask.reshape(-1).nonzero().squeeze(1), (mask.shape[0], mask.shape[1]), complete).prepare()
