"""Gaps along one dimension, and the valid entries around them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ... import masks, settings
from ...compat import is_readable_memory, is_tracked
from ...pair import Pair

Within = tuple[Tensor, Tensor] | None  #: of each position, where its sequence begins and ends; None: there is one


def carry_valid(mask: Tensor, dim: int, forward: bool) -> tuple[Tensor, Tensor]:
    """Whether there is a valid entry up to here, or from here on, and the position along ``dim`` of the nearest.

    The greatest byte so far is 1 from the first valid entry on, and the last place where it was seen that of the last
    valid one.
    """
    found, place = masks.to_bytes(mask if forward else mask.flip(dim)).cummax(dim)
    if not forward:
        found, place = found.flip(dim), mask.shape[dim] - 1 - place.flip(dim)
    return masks.from_bytes(found), place


def stretch_length(x: Pair, dim: int, copies: int = 1) -> int | None:
    """How many positions along ``dim`` are worked on at a time, if so many ``copies`` are made of them.  None: all."""
    if is_tracked(x.data) or not is_readable_memory(x.data):  # a traced size is not to be compared
        return None
    size, fit = x.data.numel(), max(1, settings.WINDOWS // copies)
    return None if size <= fit else max(1, x.data.shape[dim] * fit // size)


def before(mask: Tensor, dim: int, length: int | None = None, within: Within = None) -> Iterator[Tensor]:
    """The position along ``dim`` of the last valid entry up to here, -1 where there is none, of each stretch.

    ``within``: no further than where its sequence begins.
    """
    edge: Any = -1
    for start, part in cut(mask, dim, length):
        found, place = carry_valid(part, dim, True)
        last = torch.where(found, place + start if start else place, edge)
        yield last if within is None else torch.where(last >= within[0].narrow(dim, start, part.shape[dim]), last, -1)
        edge = last.narrow(dim, max(part.shape[dim] - 1, 0), 1) if part.shape[dim] else edge


def after(mask: Tensor, dim: int, length: int | None = None, within: Within = None) -> Iterator[Tensor]:
    """The same of the next valid entry from here on, the size of ``dim`` where there is none."""
    parts = list(cut(mask, dim, length))
    edges: list[Any] = [mask.shape[dim]]
    for start, part in parts[:0:-1]:
        first = masks.to_bytes(part).argmax(dim, True) + start
        edges.append(torch.where(masks.any(part, dim, True), first, edges[-1]))
    for (start, part), edge in zip(parts, reversed(edges), strict=True):
        found, place = carry_valid(part, dim, False)
        following, size = torch.where(found, place + start if start else place, edge), mask.shape[dim]
        near = None if within is None else following < within[1].narrow(dim, start, part.shape[dim])
        yield following if near is None else torch.where(near, following, size)


def cut(x: Tensor, dim: int, length: int | None) -> Iterator[tuple[int, Tensor]]:
    """The stretches along ``dim``, and where they start."""
    size = x.shape[dim]
    if length is None:  # a range would fix a traced size
        yield 0, x
        return
    for start in range(0, max(size, 1), length):
        yield start, x if length >= size else x.narrow(dim, start, min(length, size - start))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries that follow each other along ``dim``."""

    dim: int
    size: int  #: how many there are along ``dim`` in all
    mask: Tensor  #: whether they are valid
    at: Tensor  #: their positions, ``(n,)``
    last: Tensor  #: what :func:`before` gives
    following: Tensor  #: what :func:`after` gives

    def along(self, values: Tensor) -> Tensor:
        """One value for each position, where it broadcasts to the entries."""
        return values.view(-1, *(1,) * (self.mask.dim() - self.dim - 1))

    def times(self, places: Tensor, position: Tensor | None) -> Tensor:
        """The times at these positions along ``dim``, or of the entries themselves; out of range, of another."""
        if position is None:
            return self.along(places.take(self.at)) if places.dim() == 1 else places.index_select(self.dim, self.at)
        position = position.clamp(0, max(self.size - 1, 0))
        if places.dim() == 1:
            return places.take(position)
        first, both = places.narrow(self.dim, 0, 1), position.narrow(self.dim, 0, 1)
        shape = list(torch.broadcast_shapes(first.shape, both.shape))
        of, at = ([*shape[: self.dim], t.shape[self.dim], *shape[self.dim + 1 :]] for t in (places, position))
        return places.expand(of).gather(self.dim, position.expand(at))


def stretches(mask: Tensor, dim: int, length: int | None, within: Within = None) -> Iterator[Stretch]:
    """All entries, so many ``length`` positions at a time."""
    parts = zip(
        cut(mask, dim, length), before(mask, dim, length, within), after(mask, dim, length, within), strict=True
    )
    for (start, part), last, following in parts:
        at = torch.arange(start, start + part.shape[dim], device=mask.device)
        yield Stretch(dim, mask.shape[dim], part, at, last, following)


def fillable(s: Stretch, limit: int | None, area: str | None, direction: str) -> Tensor:
    """Which entries are filled: those ``limit`` steps at most from what they are filled from, in the ``area`` asked."""
    ahead, behind = s.last >= 0, s.following < s.size
    filled = {"forward": ahead, "backward": behind}.get(direction)
    if limit is not None:
        at = s.along(s.at)
        near = {"forward": ahead & (at - s.last <= limit), "backward": behind & (s.following - at <= limit)}
        filled = near.get(direction, near["forward"] | near["backward"])
    elif filled is None:
        filled = ahead | behind
    if area is not None:
        inside = ahead & behind
        filled = filled & (inside if area == "inside" else ~inside)
        filled = filled | s.mask
    return filled


def gap_size(s: Stretch, begin: Tensor | int, end: Tensor | int) -> Tensor:
    """How many entries in a row are masked, at each of them; -1 at a valid one.

    ``begin`` and ``end``: of each position, where its sequence begins and ends; size 1 where that is the same.
    """
    begin, end = (
        t.index_select(s.dim, s.at) if isinstance(t, Tensor) and t.shape[s.dim] > 1 else t for t in (begin, end)
    )
    low = torch.where(s.last >= 0, s.last, begin - 1)
    return torch.where(s.following < s.size, s.following, end) - low - 1


def gather_clamped(x: Pair, dim: int, index: Tensor) -> Tensor:
    """The data at these positions along ``dim``; out of range, that of some entry at the edge."""
    index = index.clamp(0, max(x.data.shape[dim] - 1, 0))
    shape = [n if d == dim else x.data.shape[d] for d, n in enumerate(index.shape)]
    return x.data.gather(dim, index if list(index.shape) == shape else index.expand(shape))


def interpolate_line(x: Pair, s: Stretch, places: Tensor | None) -> Tensor:
    """The data on the straight line between the valid entries around each, constant beyond the first and the last.

    ``places`` are the times of all positions, ``(T,)`` or of as many dimensions as the data, rising; None: one step
    apart. They are subtracted in their own dtype: seconds since 1970 have more digits than float32.
    """
    first = torch.where(s.last < 0, s.following, s.last)
    second = torch.where(s.following >= s.size, s.last, s.following)
    low, high = gather_clamped(x, s.dim, first), gather_clamped(x, s.dim, second)
    if places is None:
        gone, left = s.along(s.at) - first, second - s.along(s.at)
    else:
        at, start, end = s.times(places, None), s.times(places, first), s.times(places, second)
        gone, left = at - start, end - at
    between = (gone > 0) & (left > 0)  # elsewhere it is a valid entry, or beyond all of them: no line, an inf stays one
    if low.is_complex():
        shares = (torch.where(between, part, 1).unsqueeze(-1) for part in (gone, left))
        line = torch.view_as_complex(_weigh(torch.view_as_real(low), torch.view_as_real(high), *shares))
    else:
        line = _weigh(low, high, *(torch.where(between, part, 1) for part in (gone, left)))
    return torch.where(between, line, low)


def _weigh(low: Tensor, high: Tensor, gone: Tensor, left: Tensor) -> Tensor:
    """The value so far ``gone`` from ``low`` and with so much ``left`` to ``high``, rounded once.

    ``low + s * (high - low)`` is exactly ``low`` where both are equal, and never beyond the ends.  Where the difference
    is infinite, or has lost the digits of ``high``, it is ``low * (1 - s) + high * s``, in which nothing overflows.
    """
    wide = torch.float64 if low.dtype is torch.float64 else torch.float32
    whole = (gone + left).to(wide)
    share, rest = gone.to(wide) / whole, left.to(wide) / whole
    start, end = low.to(wide), high.to(wide)
    apart = end - start
    line = torch.where(apart.abs() <= end.abs(), start + share * apart, start * rest + end * share)
    return line.to(low.dtype)


def nearest(s: Stretch, places: Tensor | None) -> Tensor:
    """The position of the valid entry that is nearest, the earlier of two."""
    if places is None:
        back, ahead = s.along(s.at) - s.last, s.following - s.along(s.at)
    else:
        at = s.times(places, None)
        back, ahead = at - s.times(places, s.last), s.times(places, s.following) - at
    return torch.where((s.following >= s.size) | ((s.last >= 0) & (back <= ahead)), s.last, s.following)
