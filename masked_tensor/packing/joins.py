"""Joins: along features, of tensors on the same tokens; over time, which makes the grid longer; and of batches.

Along features a plain part would be valid beyond the tokens: no rule.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..op import NoRule
from ..pair import Pair, Payload
from .dim_order import GRID
from .grid import Grid, complete_together, same_places
from .operands import lead_of
from .packed import Packed, canonicalize, pack, pack_values
from .views import alias, feature_dim, features_last, unsqueeze


def cat(tensors: Sequence[Any], dim: int = 0) -> Packed:
    """``torch.cat`` along a feature; of any dimension, if all others are the empty tensors that torch passes over."""
    tensors = [t for t in tensors if not _is_skipped(t, tensors)]
    if len(tensors) == 1 and type(tensors[0]) is Packed:
        return alias(tensors[0])
    first = next(t for t in tensors if type(t) is Packed)
    d = feature_dim(dim, first)
    if first.order[d] == (1,) and first.first == GRID:
        return _cat_over_time(tensors, first, d)
    if first.order[d] == (0,) and first.first == GRID:
        return cat_batches(tensors)
    if not all(type(t) is Packed for t in tensors) or len({len(t.order) for t in tensors}) != 1:
        raise NoRule
    if not all(same_places(t.grid, first.grid) for t in tensors):
        raise NoRule
    parts = [features_last(canonicalize(t), [d]) for t in tensors]
    lead = parts[0]
    if any(p.order != lead.order or p.stored[:-1] != lead.stored[:-1] for p in parts):
        raise NoRule
    return pack_values(_join(parts, -1), replace(lead, grid=lead_of(tensors).grid, known=[]))


def _join(parts: Sequence[Packed], dim: int) -> Pair | Tensor:
    """The values of all parts along one dimension."""
    data = torch.cat([p.values for p in parts], dim)
    if all(p.inner is None for p in parts):
        return data
    found = [p.pair() for p in parts]
    zero = all(p.payload is Payload.ZERO for p in found)
    return Pair(data, cat_masks([p.mask for p in found], dim), Payload.ZERO if zero else Payload.ANY)


def cat_masks(parts: Sequence[Tensor], dim: int) -> Tensor:
    """``torch.cat`` of masks, constant along other dimensions where all of them are."""
    dim %= parts[0].dim()
    small = [masks.compact_others(m, dim) for m in parts]
    others = [max(sizes) for sizes in zip(*(m.shape for m in small), strict=True)]
    joined = torch.cat([m.expand(*others[:dim], m.shape[dim], *others[dim + 1 :]) for m in small], dim)
    return masks.expand_to(joined, (*parts[0].shape[:dim], joined.shape[dim], *parts[0].shape[dim + 1 :]))


def _cat_over_time(tensors: Sequence[Any], first: Packed, dim: int) -> Packed:
    """A cat over time: the tokens of all parts on one grid, also of plain ones: a class token, a cache of keys."""
    _expect_simple(first, tensors)
    lead = canonicalize(first)
    parts = [t if type(t) is Packed else _on_own_grid(t, lead) for t in tensors]
    parts = [canonicalize(p) for p in parts]
    around = [tuple(n for k, n in enumerate(p.shape) if k != dim) for p in parts]
    if any(p.order != lead.order for p in parts) or any(sizes != around[0] for sizes in around):
        raise NoRule
    total, index = sum(p.grid.shape[1] for p in parts), []
    start = 0
    for p in parts:
        index.append(p.grid.batch * total + p.grid.time + start)
        start += p.grid.shape[1]
    whole = complete_together([None if isinstance(t, Tensor) else p.grid for t, p in zip(tensors, parts, strict=True)])
    return _in_order(parts, torch.cat(index), (lead.grid.shape[0], total), whole)


def cat_batches(tensors: Sequence[Any], side: str = "right") -> Packed:
    """The sequences of all batches, packed or not.  Packed ones are padded to the longest, which costs nothing."""
    lead = canonicalize(next(t for t in tensors if type(t) is Packed))
    _expect_simple(lead, tensors)
    if lead.first != GRID:
        raise NoRule
    parts = [t if type(t) is Packed else _on_own_grid(t, lead) for t in tensors]
    time = max(p.grid.shape[1] for p in parts)
    for given, p in zip(tensors, parts, strict=True):
        if p.first != GRID or len(p.grid.shape) != GRID or (type(given) is not Packed and p.grid.shape[1] != time):
            raise NoRule
    parts = [canonicalize(p) for p in parts]
    if any(p.order != lead.order or p.stored[1:] != lead.stored[1:] for p in parts):
        raise NoRule
    index, batch = [], 0
    for p in parts:
        own, steps = p.grid.shape
        index.append((p.grid.batch + batch) * time + p.grid.time + (time - steps if side == "left" else 0))
        batch += own
    whole = complete_together([None if isinstance(t, Tensor) else p.grid for t, p in zip(tensors, parts, strict=True)])
    values = _join(parts, 0)
    stored = Packed(lead.values, Grid(torch.cat(index), (batch, time), whole), lead.order)
    return pack_values(values, stored)


def join_sequences(parts: Sequence[Packed], side: str) -> Packed:
    """Sequence ``i`` of each part after that of the part before it: the steps that a part stores are its sequence."""
    lead = parts[0]
    total = torch.stack([p.grid.lengths for p in parts]).sum(0)
    time = int(total.max()) if len(total) else 0
    before = time - total if side == "left" else torch.zeros_like(total)
    index = []
    for p in parts:
        step = torch.arange(p.grid.index.shape[0], device=p.grid.device) - p.grid.offsets[p.grid.batch]
        index.append(p.grid.batch * time + before[p.grid.batch] + step)
        before = before + p.grid.lengths
    return _in_order(parts, torch.cat(index), (lead.grid.shape[0], time), True)


def _in_order(parts: Sequence[Packed], index: Tensor, shape: tuple[int, int], whole: bool | None) -> Packed:
    """The tokens of all parts on one grid, at the places ``index``."""
    (rising, perm), joined, order = index.sort(), _join(parts, 0), parts[0].order
    if not isinstance(joined, Pair):
        return Packed(joined.index_select(0, perm), Grid(rising, shape, whole), order)
    values, inner = joined.data.index_select(0, perm), masks.compact_others(joined.mask, 0).index_select(0, perm)
    return Packed(values, Grid(rising, shape, whole), order, masks.expand_to(inner, values.shape), joined.payload)


def _expect_simple(x: Packed, tensors: Sequence[Any]) -> None:
    """Raises NoRule for dimensions that are products; of size 1 they have no order for what is not packed."""
    least = 0 if all(type(t) is Packed for t in tensors) else 1
    if not all(least <= len(atoms) <= 1 for atoms in x.order):
        raise NoRule


def _on_own_grid(x: Any, lead: Packed) -> Packed:
    x = pair.as_pair(x)
    if x.data.dim() != len(lead.order) or not x.data.numel():
        raise NoRule
    return pack(x, lead.order)


def _is_skipped(x: Any, tensors: Sequence[Any]) -> bool:
    """A plain tensor of shape ``(0,)`` fits to every shape: what a cache of keys holds before the first."""
    if type(x) is not Tensor or x.shape != (0,):
        return False
    return all(x.dtype is (t.values.dtype if type(t) is Packed else None) for t in tensors if t is not x)


def stack(tensors: Sequence[Packed], dim: int = 0) -> Packed:
    """``torch.stack``: a new feature.  Batches of another padded length are padded to the longest."""
    if any(t.shape != tensors[0].shape for t in tensors):
        tensors = _on_longest_grid(tensors)
    dim = dim + len(tensors[0].order) + 1 if dim < 0 else dim
    return cat([unsqueeze(t, dim) for t in tensors], dim)


def _on_longest_grid(tensors: Sequence[Packed]) -> list[Packed]:
    """All of them on one grid, that of all places that one of them stores; what a tensor does not store is masked."""
    parts = [canonicalize(t) for t in tensors]
    lead = parts[0]
    for p in parts:
        p.grid.look()
        if p.first != GRID or len(p.grid.shape) != GRID or p.grid.shape[0] != lead.grid.shape[0]:
            raise NoRule
        if p.order != lead.order or p.stored[1:] != lead.stored[1:] or any(len(atoms) > 1 for atoms in p.order):
            raise NoRule
    time = max(p.grid.shape[1] for p in parts)
    index = [p.grid.batch * time + p.grid.time for p in parts]
    said = None if any(p.grid.complete is not False for p in parts) else False
    grid = Grid(torch.cat(index).unique(), (lead.grid.shape[0], time), said)
    return [_on_wider_grid(p, places, grid) for p, places in zip(parts, index, strict=True)]


def _on_wider_grid(x: Packed, places: Tensor, grid: Grid) -> Packed:
    where = torch.searchsorted(grid.index, places)
    shape = (grid.index.shape[0], *x.stored[1:])
    values = x.values.new_zeros(shape).index_copy(0, where, x.values)
    seen = torch.zeros(shape[0], dtype=torch.bool, device=values.device).index_fill_(0, where, True)
    inner = masks.expand_to(seen.view(-1, *(1,) * (len(shape) - 1)), shape)
    if x.inner is not None:
        inner = torch.zeros(shape, dtype=torch.bool, device=values.device).index_copy_(0, where, x.inner)
    return Packed(values, grid, x.order, inner, x.payload)
