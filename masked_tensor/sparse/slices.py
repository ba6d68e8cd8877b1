"""Stored values sorted into slices, and one scatter over them per reduction.

A *slice* holds the stored-and-valid values of one output, and ``zeros`` counts what else is valid there: positions
that the mask shows and the input does not store.  Nothing here knows a layout, and the cost is that of the values.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .. import settings
from ..kernels.devices import is_host
from ..kernels.identity import identity
from ..kernels.precision import WIDER


@dataclass(eq=False)
class Slices:
    """``number`` slices; value ``i`` belongs to slice ``ids[i]``, or to the run that ``offsets`` says."""

    number: int
    numbers: Tensor | None  #: ids, or None if there are offsets
    offsets: Tensor | None
    valid: Tensor | int | None  #: valid elements per slice; None: those stored
    shown: Tensor | None = None  #: which of the values count; None: all

    @cached_property
    def ids(self) -> Tensor:
        if self.numbers is not None:
            return self.numbers
        return torch.repeat_interleave(self._lengths)

    @cached_property
    def stored(self) -> Tensor:
        """How many values each slice holds that count."""
        if self.shown is not None:
            return self._shown(self.shown)
        return self._lengths if self.offsets is not None else torch.bincount(self.ids, minlength=self.number)

    @property
    def _lengths(self) -> Tensor:
        """How many values each run has."""
        assert self.offsets is not None
        return self.offsets.diff().to(torch.int64)

    def _shown(self, shown: Tensor) -> Tensor:
        small = torch.int32 if shown.shape[0] <= torch.iinfo(torch.int32).max else torch.int64
        if self.offsets is None:
            number = torch.zeros(self.number, dtype=small, device=shown.device)
            return number.scatter_add_(0, self.ids, shown.to(small)).to(torch.int64)
        before = torch.nn.functional.pad(shown.cumsum(0, dtype=small), (1, 0))
        return before.index_select(0, self.offsets).diff().to(torch.int64)

    @cached_property
    def count(self) -> Tensor:
        """How many elements of each slice are valid."""
        if isinstance(self.valid, int):
            return torch.full((self.number,), self.valid, device=self.stored.device)
        return self.stored if self.valid is None else self.valid

    @cached_property
    def zeros(self) -> Tensor | None:
        """How many valid elements of each slice are not stored, hence 0; None if there are none anywhere."""
        return None if self.valid is None else self.count - self.stored

    def to_values(self, per_slice: Tensor) -> Tensor:
        """Each value's slice's entry."""
        return per_slice.index_select(0, self.ids)


def sort_into_slices(ids: Tensor, *keys: Tensor, descending: bool = False) -> Tensor:
    """The order of entries by slice and, inside a slice, by each of the keys in turn (stable; NaN is the greatest).

    ``descending``: by the last key from the greatest down.
    """
    order = torch.argsort(keys[-1], descending=descending, stable=True)
    for key in (*keys[-2::-1], ids):
        order = order[torch.argsort(key[order], stable=True)]
    return order


def sum_slices(v: Tensor, s: Slices) -> Tensor:
    """The sum of each slice; integers and bool add up in int64.

    Values are added one after the other: many of them in twice the precision, of which float64 has none; there only
    slices of very many are added in stretches.
    """
    if s.number == 1:
        return v.sum(0, keepdim=True)
    if not (v.is_floating_point() or v.is_complex()):
        v = v.to(torch.int64)
    elif v.shape[0] > settings.CHAIN:
        wide = WIDER.get(v.dtype)
        if wide is not None:
            return _add_slices(v.to(wide), s).to(v.dtype)
        if v.shape[0] > s.number * settings.CHAIN * 16:
            return _in_stretches(v, s)
    return _add_slices(v, s)


def _in_stretches(v: Tensor, s: Slices) -> Tensor:
    """The sums of stretches of the stored values apart, of which there are at most as many as values."""
    shift = max(settings.CHAIN - 1, s.number).bit_length()
    parts = ((v.shape[0] - 1) >> shift) + 1
    place = s.ids * parts + (torch.arange(v.shape[0], device=v.device) >> shift)
    return v.new_zeros(s.number * parts).scatter_add(0, place, v).view(s.number, parts).sum(1)


def _add_slices(v: Tensor, s: Slices) -> Tensor:
    if s.numbers is None and v.is_floating_point() and not v.requires_grad:
        return torch.segment_reduce(v, "sum", offsets=s.offsets, unsafe=True)
    return v.new_zeros(s.number).index_add(0, s.ids, v)  # the gradient of scatter_add is a gather, 30 times as slow


def prod_slices(v: Tensor, s: Slices) -> Tensor:
    """The product of each slice, 0 where a zero is valid."""
    if not (v.is_floating_point() or v.is_complex()):
        v = v.to(torch.int64)
    if s.number == 1:
        result = v.prod(0, keepdim=True)
    else:  # one factor after the other: each rounds
        wide = WIDER.get(v.dtype, v.dtype) if is_host(v.device) else v.dtype
        result = v.new_ones(s.number, dtype=wide).scatter_reduce(0, s.ids, v.to(wide), "prod").to(v.dtype)
    return result if s.zeros is None else torch.where(s.zeros > 0, 0, result)


def check_ordered(v: Tensor) -> None:
    """Raises for complex numbers."""
    if v.is_complex():
        raise RuntimeError(f"complex numbers have no order, got {v.dtype}")


def stored_maximum(v: Tensor, s: Slices, least: float | None = None) -> Tensor:
    """The greatest stored value of each slice (NaN is the greatest), and at least ``least`` (the dtype's least)."""
    if v.dtype is torch.bool:
        return stored_maximum(v.view(torch.uint8), s).view(torch.bool)
    check_ordered(v)
    if least is None:
        least = identity("max", v.dtype)
    if v.requires_grad:
        return _share_among_greatest(v, stored_maximum(v.detach(), s, least), s)
    if s.numbers is None and v.is_floating_point():
        return torch.segment_reduce(v, "max", offsets=s.offsets, unsafe=True, initial=least)
    return v.new_full((s.number,), least).scatter_reduce(0, s.ids, v, "amax")


def _share_among_greatest(v: Tensor, best: Tensor, s: Slices) -> Tensor:
    """``best``, of each slice of ``v``; the entries that are as great, NaN among them, share its gradient equally.

    That of ``scatter_reduce`` gives a share to a start that is as great, and is NaN for all of a slice that holds one.
    """
    wanted = best[s.ids]
    greatest = (v.detach() == wanted) | (v.detach().isnan() & wanted.isnan())
    share = sum_slices(greatest, s).clamp_min(1)[s.ids].to(v.dtype).reciprocal()
    total = sum_slices(torch.where(greatest, v, 0) * share, s)  # best, but for rounding
    exact = torch.where(best.isfinite(), best + (total - total.detach()), total)
    return torch.where(s.stored > 0, exact, best)


def max_slices(v: Tensor, s: Slices, zero: int = 0) -> Tensor:
    """The greatest element of each slice, the valid zeros (written ``zero`` in ``v``'s order) included."""
    if isinstance(s.valid, int) and v.is_floating_point() and not v.requires_grad:
        best = stored_maximum(v, s, least=0.0)
        if v.shape[0] < s.valid or not bool((best == 0).any()):
            return best  # no slice is full of negative values: no need to count the stored ones
    best = stored_maximum(v, s)
    if s.zeros is None:
        return best
    return torch.where(s.zeros > 0, torch.maximum(best, torch.full_like(best, zero)), best)


def drop_nan(v: Tensor, s: Slices) -> tuple[Tensor, Slices]:
    """What is left when NaN does not take part."""
    kept = (v == v).nonzero().view(-1)
    rest = Slices(s.number, s.ids[kept], None, None)
    rest.valid = None if s.zeros is None else rest.stored + s.zeros
    return v[kept], rest


def min_slices(v: Tensor, s: Slices) -> Tensor:
    """The least element of each slice, the valid zeros included."""
    return flip_order(max_slices(flip_order(v), s, flipped_zero(v.dtype)))


def flipped_zero(dtype: torch.dtype) -> int:
    """What 0 becomes under ``mirrored``."""
    return int(flip_order(torch.zeros((), dtype=dtype)))


def flip_order(v: Tensor) -> Tensor:
    """``v`` in the opposite order: an involution that never overflows."""
    return ~v if not v.is_floating_point() else -v
