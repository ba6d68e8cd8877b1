"""Softmax, normalize and scans of sparse tensors: over the stored-and-valid values, in the input's own pattern.

Unspecified elements never take part, as in torch.sparse.softmax: the pattern is the default mask.  A stored value
that the mask hides stays stored, as 0 (-inf in log_softmax).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..pair import Pair
from . import laws, slices
from .elements import values, with_values
from .keys import ravel
from .reduction import Taken, taken
from .slices import Slices, total


def softmax(x: Tensor, mask: Tensor | None, dim: int, *, log: bool, mode: str) -> Tensor:
    """Softmax along ``dim``; the modes differ for slices of only -inf."""
    t = taken(x, mask)
    s = _slices(t, dim)
    v = t.values.float() if t.values.dtype in (torch.float16, torch.bfloat16) else t.values
    top = slices.stored_maximum(v.detach(), s)
    if mode == "inf_as_zero":
        top = torch.where(top == -torch.inf, 0, top)
    shifted = v - s.to_values(top)
    if log:
        scale = total(shifted.exp(), s)
        scale = torch.where(scale == 0, 1, scale) if mode == "inf_as_zero" else scale
        result = shifted - s.to_values(scale.log())
    else:
        weights = shifted.exp()
        scale = total(weights, s)
        scale = torch.where(scale == 0, 1, scale) if mode == "inf_as_zero" else scale
        result = weights / s.to_values(scale)
    return _returned(t, result.to(t.values.dtype), -torch.inf if log else 0)


def normalize(x: Tensor, mask: Tensor | None, dim: int, ord: float, eps: float) -> Tensor:
    """``x / max(norm, eps)`` along ``dim``; unspecified elements count in no norm but those of negative ``ord``."""
    t = taken(x, mask)
    s = _slices(t, dim)
    return _returned(t, t.values / s.to_values(laws.norm(t.values, s, ord).clamp_min(eps)), 0)


def scan(rule: Callable[[Pair], Any], x: Tensor, mask: Tensor | None, dim: int) -> Tensor:
    """A family's scan along ``dim``, run on rows of stored values of similar length (at most twice their number)."""
    t = taken(x, mask)
    s = _slices(t, dim)
    order = slices.arranged(s.ids, t.coordinate(dim) if x.dim() else s.ids)
    start = s.stored.cumsum(0) - s.stored
    parts, places = [], []
    length = 1
    while length < 2 * max(int(s.stored.max()) if s.number else 0, 1):
        rows = ((s.stored > length // 2) & (s.stored <= length)).nonzero().view(-1)
        inner = torch.arange(length, device=x.device)
        present = inner < s.stored[rows].unsqueeze(1)
        place = order[(start[rows].unsqueeze(1) + inner).clamp_max(max(order.numel() - 1, 0))] if rows.numel() else None
        if place is not None:
            result = rule(Pair(t.values[place], present))
            parts.append(result.data[present])
            places.append(place[present])
        length *= 2
    if not parts:
        return _returned(t, rule(Pair(t.values.view(0, 1), torch.zeros(0, 1, dtype=torch.bool))).data.view(-1), 0)
    new = torch.cat(parts)
    return _returned(t, torch.zeros_like(new).index_copy(0, torch.cat(places), new), 0)


def _slices(t: Taken, dim: int) -> Slices:
    kept = [d for d in range(t.x.dim()) if d != dim]
    key = ravel(t.coordinate, t.x.shape, kept)
    full = torch.Size([t.x.shape[d] for d in kept]).numel()
    if key is None:
        return Slices(1, torch.zeros(t.values.shape[0], dtype=torch.int64, device=t.values.device), None, None)
    if full <= 4 * key.numel() + 1024:
        offsets = None
        return Slices(full, key, offsets, None)
    unique, ids = key.unique(return_inverse=True)
    return Slices(unique.shape[0], ids, None, None)


def _returned(t: Taken, new: Tensor, fill: float) -> Tensor:
    """The values back in the pattern of the input, ``fill`` at stored values that were masked out."""
    if t.kept is None:
        return with_values(t.x, new)
    everything = new.new_full((values(t.x.detach()).shape[0],), fill)
    return with_values(t.x, everything.index_copy(0, t.kept, new))
