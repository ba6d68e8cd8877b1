"""Quantiles of columns without edges: a sketch that can be merged and bounds its own rank error.

Entries wait until some thousands are there.  A run of them is sorted, and of each ``2^s`` neighbours one stands for
all: a threshold then has at most ``2^(s-1)`` entries more or fewer below it than before.  Two full levels of weight
``2^h`` become one of weight ``2^(h+1)`` in the same way, which is off by at most ``2^h``.  The sum of all these is
kept: a bound that holds for whatever order the data come in, and grows like ``log2(n / size) n / size`` of ``n``
entries.  Which of two neighbours stays alternates, so that most errors cancel.  Manku, Rajagopalan and Lindsay,
"Approximate medians and other quantiles in one pass and with limited memory" (1998); the levels are those of Karnin,
Lang and Liberty, "Optimal quantile approximation in streams" (2016).
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..extend import select
from . import settings

#: The parts of a sketch, in order.
PARTS = ("waiting", "items", "counts", "halvings")


@dataclass(frozen=True, slots=True)
class Sketch:
    """Of each column entries, and how often each counts."""

    waiting: Tensor  #: (F, 4 size) in float64, of which the first ``counts[:, 0]`` are there; each counts once
    items: Tensor  #: (L, F, size): of level h the first ``counts[:, 1 + h]`` are there; each counts 2^h times
    counts: Tensor  #: (F, 1 + L), int64
    halvings: Tensor  #: (F, L), int64: how often there was an error of 2^h


def no_sketch(columns: int, size: int, device: torch.device | str = "cpu") -> Sketch:
    """That of nothing; ``size`` entries a level, at least 2."""
    return Sketch(
        torch.zeros(columns, 4 * size, dtype=torch.float64, device=device),
        torch.zeros(0, columns, size, dtype=torch.float64, device=device),
        torch.zeros(columns, 1, dtype=torch.int64, device=device),
        torch.zeros(columns, 0, dtype=torch.int64, device=device),
    )


def add_rows(sketch: Sketch, x: Tensor, mask: Tensor) -> Sketch:
    """With the valid entries of ``x`` (N, F); a NaN counts as infinity.

    What is written in place lies behind what the counts say is there: the sketch that was given stays what it was.
    """
    width = sketch.waiting.shape[1]
    rows = max(width, settings.SORTED // max(1, x.shape[1]))
    for start in range(0, len(x), rows):
        there = mask[start : start + rows].T
        values = select(x[start : start + rows].T, there, torch.inf)
        values = values.to(torch.float64 if x.dtype is torch.float64 else torch.float32, copy=True).contiguous()
        values.nan_to_num_(torch.inf, torch.inf, -torch.inf)
        values, count = _sort(values), there.sum(1)
        if not _fits(sketch, count):
            sketch = _flush(sketch)
        if _fits(sketch, count):
            _append(sketch.waiting, sketch.counts[:, 0], values, count)
            sketch = replace(sketch, counts=_plus(sketch.counts, 0, count))
        else:
            sketch = _add_run(sketch, values, count)
    return sketch


def merge_sketches(a: Sketch, b: Sketch) -> Sketch:
    """The sketch of both; ``b`` stays what it was, and so does ``a``."""
    a = _levels(a, b.halvings.shape[1])
    whole = replace(a, halvings=a.halvings + _wide(b.halvings, a.halvings.shape[1]))
    for level, items in enumerate(b.items):
        count = b.counts[:, 1 + level]
        whole = _insert(whole, level, items, count)
    count = b.counts[:, 0]
    if not _fits(whole, count):
        whole = _flush(whole)
    _append(whole.waiting, whole.counts[:, 0], b.waiting, count)
    return replace(whole, counts=_plus(whole.counts, 0, count))


def rank_errors(sketch: Sketch) -> Tensor:
    """By how many entries the number below a threshold may be off at most, of each column ``(F,)``."""
    return (sketch.halvings * _powers(sketch)).sum(1).double()


def ranked(sketch: Sketch) -> tuple[Tensor, Tensor]:
    """The entries in rising order, and how many there are up to each: two of ``(F, M)``."""
    columns, most = len(sketch.counts), sketch.counts.amax(0).tolist()
    parts, weights = [sketch.waiting[:, : most[0]]], [_there(sketch.waiting[:, : most[0]], sketch.counts[:, 0]).long()]
    for level, width in enumerate(most[1:]):
        part = sketch.items[level, :, :width]
        parts.append(part)
        weights.append(_there(part, sketch.counts[:, 1 + level]).long() << level)
    weight = torch.cat(weights, 1)
    values = torch.where(weight > 0, torch.cat(parts, 1), torch.inf)
    if not values.shape[1]:
        return values.new_full((columns, 1), torch.inf), weight.new_zeros(columns, 1)
    order = _order(values)
    return values.gather(1, order), weight.gather(1, order).cumsum(1)


def entries_at(entries: tuple[Tensor, Tensor], low: Tensor, high: Tensor, rank: Tensor) -> Tensor:
    """Of each column the entry of a rank, counted from 0; the least below 0 and the greatest beyond the last."""
    values, upto = entries
    at = torch.searchsorted(upto, rank.unsqueeze(1).long(), right=True).clamp_max(values.shape[1] - 1)
    found = values.gather(1, at).squeeze(1)
    return torch.where(rank < 0, low, torch.where(rank >= upto[:, -1], high, found))


def quantile(
    entries: tuple[Tensor, Tensor], off: Tensor, low: Tensor, high: Tensor, q: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each column: the quantile as torch has it, and values between which the one of all entries lies."""
    if not 0 <= q <= 1:
        raise ValueError(f"q must be from 0 to 1, got {q}")
    rank = q * (entries[1][:, -1] - 1).clamp_min(0).double()
    first, last = rank.floor(), rank.ceil()
    ends = [entries_at(entries, low, high, at) for at in (first, last, first - off, last + off)]
    share = rank - first
    mixed = torch.where(ends[0] == ends[1], ends[0], ends[0] * (1 - share) + ends[1] * share)
    value = low if q == 0 else high if q == 1 else mixed
    value, least, most = (torch.where(low.isnan(), low, part) for part in (value, ends[2], ends[3]))
    return value, least, most


# ------------------------------------------------------------------------------------------------------------- levels


def _sort(x: Tensor) -> Tensor:
    """Rows in rising order, in the memory of ``x``; on the CPU numpy takes a tenth of torch's time, if it is there."""
    if x.is_cpu:
        try:
            x.numpy().sort(axis=1)
        except RuntimeError:  # there is no numpy
            return x.sort(dim=1).values
        return x
    return x.sort(dim=1).values


def _order(x: Tensor) -> Tensor:
    if x.is_cpu:
        try:
            return torch.from_numpy(x.numpy().argsort(axis=1))
        except RuntimeError:
            return x.argsort(dim=1)
    return x.argsort(dim=1)


def _there(x: Tensor, count: Tensor) -> Tensor:
    """Which entries of rows ``(F, N)`` are there: the first of each."""
    return torch.arange(x.shape[1], device=x.device) < count.unsqueeze(1)


def _plus(counts: Tensor, at: int, add: Tensor) -> Tensor:
    counts = counts.clone()
    counts[:, at] += add
    return counts


def _powers(sketch: Sketch) -> Tensor:
    levels = torch.arange(sketch.halvings.shape[1], device=sketch.halvings.device)
    return torch.ones_like(levels) << levels


def _wide(halvings: Tensor, levels: int) -> Tensor:
    return torch.nn.functional.pad(halvings, (0, levels - halvings.shape[1]))


def _levels(sketch: Sketch, levels: int) -> Sketch:
    """With so many levels at least."""
    more = levels - len(sketch.items)
    if more <= 0:
        return sketch
    items = torch.cat([sketch.items, sketch.items.new_zeros(more, *sketch.items.shape[1:])])
    counts = torch.nn.functional.pad(sketch.counts, (0, more))
    return replace(sketch, items=items, counts=counts, halvings=_wide(sketch.halvings, levels))


def _fits(sketch: Sketch, more: Tensor) -> bool:
    """Whether so many more entries of each column may wait."""
    return not bool((sketch.counts[:, 0] + more > sketch.waiting.shape[1]).any())


def _append(into: Tensor, have: Tensor, values: Tensor, count: Tensor) -> None:
    """Writes the first ``count`` entries of each row behind the ``have`` that are there."""
    width = int(count.amax()) if len(count) else 0
    if not width:
        return
    values = values[:, :width].to(into.dtype)
    at = have.unsqueeze(1) + torch.arange(width, device=into.device)
    if int(have.amax()) + width <= into.shape[1]:  # what is written too much is behind what is there
        into.scatter_(1, at, values)
    else:
        there = _there(values, count)
        into[there.nonzero()[:, 0], at[there]] = values[there]


def _flush(sketch: Sketch) -> Sketch:
    """Nothing waits any more."""
    count = sketch.counts[:, 0]
    most = int(count.amax()) if len(count) else 0
    part = sketch.waiting[:, :most]
    values = _sort(torch.where(_there(part, count), part, torch.inf))
    counts = sketch.counts.clone()
    counts[:, 0] = 0
    return _add_run(replace(sketch, waiting=torch.zeros_like(sketch.waiting), counts=counts), values, count)


def _add_run(sketch: Sketch, values: Tensor, count: Tensor) -> Sketch:
    """With the first ``count`` entries of each row, which rise: one of each 2^s, as many as a level holds."""
    if not values.shape[1]:
        return sketch
    size = sketch.items.shape[2]
    step = (count.clamp_min(1).double() / size).log2().ceil().clamp_min(0).long()
    most = int(step.amax())
    sketch = _levels(sketch, most)
    if most:
        level = (step - 1).clamp_min(0).unsqueeze(1)
        odd = sketch.halvings.gather(1, level).squeeze(1) & 1
        start = torch.where(step > 0, (torch.ones_like(step) << level.squeeze(1)) - odd, 0)
        sketch = replace(sketch, halvings=sketch.halvings.scatter_add(1, level, (step > 0).long().unsqueeze(1)))
    else:
        start = torch.zeros_like(step)
    whole = count >> step
    places = torch.arange(min(size, values.shape[1]), device=values.device)
    taken = _pick(values, (places << step.unsqueeze(1)) + start.unsqueeze(1))
    rest = count - (whole << step)
    over = torch.arange(int(rest.amax()), device=values.device)
    sketch = _insert(sketch, 0, _pick(values, (whole << step).unsqueeze(1) + over), rest)
    for level_ in range(most + 1):
        sketch = _insert(sketch, level_, taken, torch.where(step == level_, whole, 0))
    return sketch


def _pick(values: Tensor, at: Tensor) -> Tensor:
    return values.gather(1, at.clamp_max(values.shape[1] - 1))


def _insert(sketch: Sketch, level: int, values: Tensor, count: Tensor) -> Sketch:
    """With the first ``count`` entries of each row at a level; what is full goes up."""
    items, counts, halvings = sketch.items, sketch.counts, sketch.halvings
    size, owned = items.shape[2], False
    while bool((count > 0).any()):
        more = _levels(Sketch(sketch.waiting, items, counts, halvings), level + 1)
        items, counts, halvings = more.items, more.counts, more.halvings
        have = counts[:, 1 + level]
        total, values = have + count, values.to(items.dtype)
        full = total > size
        if not bool(full.any()):
            _append(items[level], have, values, count)
            return Sketch(sketch.waiting, items, _plus(counts, 1 + level, count), halvings)
        if not owned:
            items, counts, halvings, owned = items.clone(), counts.clone(), halvings.clone(), True
        mine = torch.where(_there(items[level], have), items[level], torch.inf)
        both = _sort(torch.cat([mine, torch.where(_there(values, count), values, torch.inf)], 1))
        pairs = torch.arange(both.shape[1] // 2, device=both.device)
        up = both.gather(1, 2 * pairs + (halvings[:, level] & 1).unsqueeze(1))
        last = _pick(both, (total - 1).clamp_min(0).unsqueeze(1)).squeeze(1)
        items[level] = both[:, :size]
        items[level, :, 0] = torch.where(full, last, both[:, 0])
        counts[:, 1 + level] = torch.where(full, total % 2, total)
        halvings[:, level] += full
        values, count, level = up, torch.where(full, total // 2, 0), level + 1
    return Sketch(sketch.waiting, items, counts, halvings)
