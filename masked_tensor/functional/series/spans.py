"""Windows of unequal numbers of entries: those within a length of time, of entries that are not evenly spaced.

As in :mod:`.moving`, a window is made of windows of 1, 2, 4, 8, ... entries that lie next to each other in it, so that
no window sees an entry outside of it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ...compat import has_real_memory, is_wrapped
from ...pair import Pair

State = tuple[Tensor, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """The entries from ``start`` to ``start + number`` for each entry along ``dim``, or each ``step``-th."""

    dim: int
    start: Tensor  #: int64, of as many dimensions as the data, size 1 where all are the same
    number: Tensor
    step: int = 1

    def along_last(self) -> "Spans":
        """The same where ``dim`` was moved to the end."""
        return Spans(-1, self.start.movedim(self.dim, -1), self.number.movedim(self.dim, -1), self.step)

    def longest(self, size: int) -> int:
        """How many entries a window has at most, of ``size`` in all."""
        if not has_real_memory(self.number) or is_wrapped(self.number):
            return size
        return int(self.number.max()) if self.number.numel() else 0

    def cut(self, length: int) -> Iterator["Spans"]:
        """So many of the windows at a time."""
        parts = (t.split(max(length, 1), self.dim) for t in (self.start, self.number))
        for start, number in zip(*parts, strict=True):
            yield Spans(self.dim, start, number, self.step)


def around(
    times: Tensor, dim: int, window: float, closed: str, center: bool, step: int, exists: Tensor | None, side: str
) -> Spans:
    """The windows ``(t - window, t]``, or ``(t - window / 2, t + window / 2]``, of times that do not fall.

    ``closed`` says which of the two ends belong to it. A window ends with its own entry, unless it is centered: those
    of the same time that come after that are not in it. What does not ``exist`` has any time.
    """
    opened, end_closed = closed in ("right", "neither"), closed in ("right", "both")
    exact = not times.is_floating_point()
    if exists is not None:
        limits = torch.iinfo(times.dtype) if exact else torch.finfo(times.dtype)
        times = torch.where(exists, times, limits.max if side == "right" else limits.min)
    rows = times.movedim(dim, -1).contiguous()
    if center:  # of integers, one half of a window may be none
        rows = 2 * rows
    back, ahead = window, window
    if exact:
        back, ahead = (min(math.ceil(window) if up else math.floor(window), 1 << 62) for up in (opened, not end_closed))
    seen = rows[..., ::step].contiguous()
    start = torch.searchsorted(rows, seen - back, right=opened)
    if center or not end_closed:
        end = torch.searchsorted(rows, seen + ahead if center else seen, right=end_closed)
    else:
        end = torch.arange(1, rows.shape[-1] + 1, step, device=rows.device)
    number = (end - start).clamp_min_(0)
    return Spans(dim, start.movedim(-1, dim), number.movedim(-1, dim), step)


def unfold(x: Pair, spans: Spans) -> Pair:
    """The windows along the last dimension, of as many entries as the longest has."""
    size = x.data.shape[spans.dim]
    width = max(spans.longest(size), 1)
    last, at = spans.along_last(), torch.arange(width, device=x.data.device)
    index = (last.start.unsqueeze(-1) + at).clamp_(max=max(size - 1, 0))

    def gather(part: Tensor) -> Tensor:
        part = part.movedim(spans.dim, -1)
        places = index.expand(*part.shape[:-1], *index.shape[-2:])
        return part.gather(-1, places.flatten(-2)).view(places.shape)

    valid = gather(x.mask).logical_and_(at < last.number.unsqueeze(-1))
    return Pair(gather(x.data).movedim(-2, spans.dim), valid.movedim(-2, spans.dim))


def count(mask: Tensor, spans: Spans) -> Tensor:
    """How many entries of each window are valid."""
    last = spans.along_last()
    up_to = torch.nn.functional.pad(mask.movedim(spans.dim, -1).cumsum(-1), (1, 0))
    first, behind = (i.expand(*up_to.shape[:-1], -1) for i in (last.start, last.start + last.number))
    return (up_to.gather(-1, behind) - up_to.gather(-1, first)).movedim(-1, spans.dim)


def combine(join: Callable[[State, State], State], state: State, spans: Spans, empty: float = 0) -> State:
    """What is known of each entry along the last dimension, as that of each window; of none it is ``empty``."""
    at, shape, covered = spans.start, (*state[0].shape[:-1], spans.start.shape[-1]), 1
    result: State = tuple([torch.full(shape, empty, dtype=t.dtype) for t in state])
    longest = spans.longest(state[0].shape[-1])
    while covered <= longest:
        taken, size = (spans.number & covered) != 0, state[0].shape[-1]
        index = at.clamp(max=size - 1).expand(shape)
        result = join(result, tuple([torch.where(taken, t.gather(-1, index), empty) for t in state]))
        at = torch.where(taken, at + covered, at)
        if 2 * covered <= longest:
            state = join(*(tuple([t.narrow(-1, i, size - covered) for t in state]) for i in (0, covered)))
        covered *= 2
    return result
