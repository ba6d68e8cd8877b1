"""Reductions of sparse tensors: one scatter over the stored values, whatever the layout and the mask's layout.

Of the six constructions of ``input_mask`` (see the package's docstring) none is ever built: the stored-and-valid
values take part as they are, and every other valid element is a zero that is only counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from ..kernels.precision import rounds_noticeably
from ..layouts import validity
from ..layouts.elements import build_like, canonical, same_pattern, values, verbs_of
from ..layouts.positions import pays_table, ravel
from ..select import select
from ..shared.too_few import MASKED, TooFew, is_enough, representable
from . import slice_reductions, slices
from .slices import Slices

Law = Callable[..., Tensor]
_ADDS: tuple[Law, ...] = (slice_reductions.sum, slice_reductions.mean, slice_reductions.nansum)
_NEEDS_ELEMENTS: dict[Law, str] = {slices.max_slices: "amax", slices.min_slices: "amin"}


@dataclass(eq=False)
class StoredValid:
    """The stored-and-valid values of a sparse tensor, ready to be sorted into slices."""

    x: Tensor  #: canonical
    mask: Tensor | None
    values: Tensor
    kept: Tensor | None  #: which stored values take part; None: all
    inside: bool = False  #: the mask shows nothing but stored values
    shown: Tensor | None = None  #: which values count, where the others are 0 instead of left out

    def coordinate(self, dim: int) -> Tensor:
        position: Tensor = verbs_of(self.x).coordinate(self.x, dim)
        return position if self.kept is None else position[self.kept]

    def position(self, dims: Sequence[int]) -> Tensor:
        """The row-major position of every value along ``dims``; 0 if these are none."""
        key = ravel(self.coordinate, self.x.shape, dims)
        return torch.zeros_like(self.values, dtype=torch.int64) if key is None else key


def take_valid(x: Tensor, mask: Tensor | None, zeroed: bool = False) -> StoredValid:
    """The values of ``x`` that the mask (None: all) shows; where there are no elements, none is masked.

    ``zeroed``: the others are 0, which costs a fifth of leaving them out.
    """
    x = canonical(x)
    stored = values(x)
    if mask is None or x.numel() == 0:
        return StoredValid(x, None, stored, None)
    inside = same_pattern(mask, x)
    shown = values(mask) if inside else validity.at(mask, x)
    if bool(shown.all()):
        return StoredValid(x, mask, stored, None, inside)
    if zeroed:
        return StoredValid(x, mask, select(stored, shown, 0), None, inside, shown)
    kept = shown.nonzero().view(-1)
    return StoredValid(x, mask, stored[kept], kept, inside)


@dataclass(eq=False)
class Outputs:
    """The outputs of a reduction that have something to say, one per slice."""

    slices: Slices
    keys: Tensor  #: row-major positions in the kept shape
    shape: tuple[int, ...]  #: the kept shape


def outputs(t: StoredValid, dims: Sequence[int], everywhere: bool, all_of_them: bool) -> Outputs:
    """Numbers the outputs: those with a stored value, with ``everywhere`` those with any valid element, or all."""
    shape, kept = t.x.shape, [d for d in range(t.x.dim()) if d not in dims]
    sizes = tuple(shape[d] for d in kept)
    all_of_them |= t.mask is None and prod(shape[d] for d in dims) == 0  # the plain op gives every empty slice a value
    full = prod(sizes)
    offsets = verbs_of(t.x).runs(t.x, dims) if t.kept is None else None
    if offsets is not None and pays_table(full, t.values.shape[0]):
        slices = Slices(full, None, offsets, None)
        return _count_valid(Outputs(slices, torch.arange(full, device=offsets.device), sizes), t, dims)
    key = t.position(kept)
    if all_of_them or (everywhere and t.mask is None) or pays_table(full, key.shape[0]):
        return _count_valid(number_slices(key, sizes), t, dims)
    more = validity.outputs(t.mask, shape, dims, key.device) if everywhere and not t.inside else key[:0]
    return _count_valid(number_slices(key, sizes, more), t, dims)


def number_slices(key: Tensor, shape: tuple[int, ...], more: Tensor | None = None) -> Outputs:
    """The slices of ``shape`` that the values at ``key`` belong to: all, or those found there and in ``more``."""
    if more is None:
        full = prod(shape)
        return Outputs(Slices(full, key, None, None), torch.arange(full, device=key.device), shape)
    found, ids = torch.cat((key, more)).unique(return_inverse=True)
    return Outputs(Slices(found.shape[0], ids[: key.shape[0]], None, None), found, shape)


def _count_valid(o: Outputs, t: StoredValid, dims: Sequence[int]) -> Outputs:
    o.slices.shown = t.shown
    if not t.inside:
        o.slices.valid = validity.counts(t.mask, t.x.shape, dims, o.keys)
    return o


def reduce(
    law: Law,
    x: Tensor,
    mask: Tensor | None,
    dims: Sequence[int],
    keepdim: bool = False,
    *,
    everywhere: bool = False,
    few: TooFew = MASKED,
    **params: Any,
) -> tuple[Tensor, Tensor | None]:
    """The reduction of ``x`` over ``dims``, which stores valid outputs only; a 0-d result comes with its validity.

    ``everywhere``: the law may give something else than 0 for a slice of zeros, so outputs without a stored value
    count too.
    """
    if law in _NEEDS_ELEMENTS:
        check_nonempty(_NEEDS_ELEMENTS[law], x.shape, dims)
    t = take_valid(x, mask, law in _ADDS)
    o = outputs(t, dims, everywhere, few.is_shown)
    half = rounds_noticeably(t.values.dtype)
    result = law(t.values.float() if half else t.values, o.slices, **params)
    result = result.to(t.values.dtype) if half and result.dtype is torch.float32 else result
    return assemble_result(result, o, x, dims, keepdim, few)


def check_nonempty(name: str, shape: Sequence[int], dims: Sequence[int]) -> None:
    """Raises, as torch does, for a reduction that has no value for a dimension of size 0."""
    for d in dims:
        if shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def assemble_result(
    result: Tensor, o: Outputs, x: Tensor, dims: Sequence[int], keepdim: bool, few: TooFew
) -> tuple[Tensor, Tensor | None]:
    """The outputs in the layout of ``x``; those of too few valid elements left out, or filled.

    ``result`` has one row per output.  Several results per output (quantiles) become the leading dimension.
    """
    key, several = o.keys, result.shape[1:]
    shape = tuple(1 if d in dims else size for d, size in enumerate(x.shape)) if keepdim else o.shape
    s, broad = o.slices, (-1, *[1] * len(several))
    if few.min_count == 0 or x.numel() == 0:
        result = select(result, is_enough(s.count).view(broad), representable(few.empty, result.dtype))
    if few.fill_value is not None:
        result = select(result, is_enough(s.count, few.min_count).view(broad), few.fill_value)
    elif few.min_count is not None or not isinstance(s.valid, int):
        present = is_enough(s.count, few.min_count).nonzero().view(-1)
        if shape or several:
            result, key = result.index_select(0, present), key.index_select(0, present)
        elif present.numel() == 0:
            return result.reshape(()), torch.zeros((), dtype=torch.bool, device=key.device)
    if several:
        lead = torch.arange(several[0], device=key.device).unsqueeze(1)
        key, result = (lead * prod(shape) + key).view(-1), result.T.reshape(-1)
    return build_like(key, result, (*several, *shape), x), None
