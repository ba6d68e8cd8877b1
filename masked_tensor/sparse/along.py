"""Softmax, normalize and scans of sparse tensors: over the stored-and-valid values, in the input's own pattern.

Unspecified elements never take part, as in torch.sparse.softmax: the pattern is the default mask.  A stored value
that the mask hides stays stored, as 0 (-inf in log_softmax).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import torch
from torch import Tensor

from ..kernels.precision import rounds_noticeably
from ..layouts.elements import values, verbs_of, with_values
from ..layouts.positions import pays_table
from ..pair import Pair
from . import slice_reductions, slices
from .reduction import Outputs, StoredValid, number_slices, take_valid
from .slices import Slices, sum_slices


def softmax(x: Tensor, mask: Tensor | None, dim: int, *, log: bool, mode: str) -> Tensor:
    """Softmax along ``dim``; the modes differ for slices of only -inf."""
    slice_reductions.check_inexact("softmax", x)
    t = take_valid(x, mask)
    s = _slices(t, dim)
    v = t.values.float() if rounds_noticeably(t.values.dtype) else t.values
    top = slices.stored_maximum(v.detach(), s)
    if mode == "inf_as_zero":
        top = torch.where(top == -torch.inf, 0, top)
    shifted = v - s.to_values(top)
    if log:
        scale = sum_slices(shifted.exp(), s)
        scale = torch.where(scale == 0, 1, scale) if mode == "inf_as_zero" else scale
        result = shifted - s.to_values(scale.log())
    else:
        weights = shifted.exp()
        scale = sum_slices(weights, s)
        scale = torch.where(scale == 0, 1, scale) if mode == "inf_as_zero" else scale
        result = weights / s.to_values(scale)
    return scatter_back(t, result.to(t.values.dtype), -torch.inf if log else 0)


def normalize(x: Tensor, mask: Tensor | None, dim: int, ord: float, eps: float) -> Tensor:
    """``x / max(norm, eps)`` along ``dim``; unspecified elements count in no norm but those of negative ``ord``."""
    t = take_valid(x, mask)
    s = _slices(t, dim)
    size = slice_reductions.norm(t.values.float() if rounds_noticeably(t.values.dtype) else t.values, s, ord).clamp_min(
        eps
    )
    return scatter_back(t, (t.values / s.to_values(size)).to(t.values.dtype), 0)


def scan(
    rule: Callable[[Pair, Tensor], Sequence[Pair]], x: Tensor, mask: Tensor | None, dim: int
) -> tuple[Tensor, ...]:
    """A family's scan along ``dim``, run on rows of stored values (and their positions) of similar length."""
    t = take_valid(x, mask)
    position = t.coordinate(dim) if x.dim() else torch.zeros_like(t.values, dtype=torch.int64)
    results: list[list[Tensor]] = []
    places = []
    for place, present in _rows(t, _slices(t, dim), position):
        pairs = rule(Pair(t.values[place], present), position[place])
        results.append([pair.data[present] for pair in pairs])
        places.append(place[present])
    where = torch.cat(places)
    columns = [torch.cat(parts) for parts in zip(*results, strict=True)]
    return tuple(scatter_back(t, torch.zeros_like(new).index_copy(0, where, new), 0) for new in columns)


def scan_extreme(
    rule: Callable[..., tuple[Pair, Pair]], x: Tensor, mask: Tensor | None, dim: int
) -> tuple[Tensor, Tensor]:
    """cummax or cummin, run like :func:`scan`: values, and their positions along ``dim``."""

    def extreme(row: Pair, position: Tensor) -> tuple[Pair, Pair]:
        values, indices = rule(row, 1)
        return values, Pair(position.gather(1, indices.data), indices.mask)

    values, indices = scan(extreme, x, mask, dim)
    return values, indices


def _rows(t: StoredValid, s: Slices, position: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Where the values of each slice lie, in order, one row per slice; a row is at most half empty."""
    order = slices.sort_into_slices(s.ids, position)
    start = s.stored.cumsum(0) - s.stored
    longest = int(s.stored.max()) if s.number else 0
    length = 1
    while length < 2 * max(longest, 1):  # once at least: a result has a dtype even if nothing is stored
        rows = ((s.stored > length // 2) & (s.stored <= length)).nonzero().view(-1)
        inner = torch.arange(length, device=position.device)
        present = inner < s.stored[rows].unsqueeze(1)
        yield order[(start[rows].unsqueeze(1) + inner).clamp_max(max(order.numel() - 1, 0))], present
        length *= 2


def _slices(t: StoredValid, dim: int) -> Slices:
    offsets = verbs_of(t.x).runs(t.x, (dim,)) if t.kept is None else None
    if offsets is not None:
        return Slices(offsets.shape[0] - 1, None, offsets, None)
    return group_values(t, {d: 1 for d in range(t.x.dim()) if d != dim}).slices


def group_values(t: StoredValid, kept: Mapping[int, int]) -> Outputs:
    """The stored values by their position along the ``kept`` dimensions, of which ``kept[d]`` neighbours share a slice.

    Only what is stored counts: these are the slices of what keeps the pattern.
    """
    shape = tuple(-(-t.x.shape[d] // share) for d, share in kept.items())
    key: Tensor | None = None
    for size, (d, share) in zip(shape, kept.items(), strict=True):
        place = t.coordinate(d) if share == 1 else t.coordinate(d) // share
        key = place if key is None else key * size + place
    if key is None:
        key = torch.zeros(t.values.shape[0], dtype=torch.int64, device=t.values.device)
    return number_slices(key, shape, None if pays_table(prod(shape), key.numel()) else key[:0])


def scatter_back(t: StoredValid, new: Tensor, fill: float) -> Tensor:
    """The values back in the pattern of the input, ``fill`` at stored values that were masked out."""
    if t.kept is None:
        return with_values(t.x, new)
    everything = new.new_full((values(t.x.detach()).shape[0],), fill)
    return with_values(t.x, everything.index_copy(0, t.kept, new))
