"""The entrance of functions along time: which dimension that is, and which steps of a padded batch exist.

A mask says what is valid.  It does not say whether another step is missing, which can be filled, or padding, which is
nothing.  The caller says so, and whether it must be said is told by the call alone, not by the data.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import masks, shapes
from ..compat import has_real_memory, is_wrapped, mode_is_active
from ..engine.tensor import MaskedTensor
from ..pair import Pair
from ..shared.lengths import check_side, steps_that_exist
from .entrance import Input, as_pair, enter_input, refuse_sparse
from .names import check_dim


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """What a function along time is given."""

    given: Input
    x: Pair  #: with a mask of its shape, False behind the ends
    dim: int  #: time
    exists: Tensor | None = None  #: which steps exist, broadcast to the data; None: all of them
    unsaid: bool = False  #: whether there may be padding, of which nothing is said

    def without_padding(self, result: Pair, step: int = 1) -> Pair:
        """``result`` with nothing valid behind an end, of each ``step``-th entry of time."""
        if self.exists is None:
            return result
        exists = self.exists[(slice(None),) * self.dim + (slice(None, None, step),)]
        return Pair(result.data, masks.logical_and(result.mask, masks.expand_to(exists, result.data.shape)))

    def places(self, name: str, index: Tensor, ties: bool = False) -> Tensor:
        """The times of ``index=``: ``(T,)``, or with the dimensions of the data, size 1 where all have the same.

        Their order is looked at where that is possible.
        """
        if not isinstance(index, Tensor) or type(index) is MaskedTensor or index.is_complex():
            raise TypeError(f"{name}: index must be a plain tensor of real numbers, got {type(index).__name__}")
        shape, batch = self.x.data.shape, 1 if self.dim == 0 else 0
        allowed: list[tuple[int, ...]] = [(shape[self.dim],)]
        if len(shape) > 1:
            allowed.append(tuple(shape[d] for d in sorted((batch, self.dim))))
        if tuple(index.shape) not in allowed:
            raise ValueError(
                f"{name}: index must have one place per entry along dim, {' or '.join(map(str, allowed))}, got "
                f"{tuple(index.shape)}"
            )
        if not index.is_floating_point():
            index = index.long()
        elif index.dtype.itemsize < 4:
            index = index.float()
        if index.dim() == 2:
            index = index.reshape([n if d in (batch, self.dim) else 1 for d, n in enumerate(shape)])
            index = index if self.exists is None else torch.where(self.exists, index, 0)
        if has_real_memory(index) and not (is_wrapped(index) or mode_is_active()):
            _check_order(name, index, self.dim if index.dim() > 1 else 0, self.exists, ties)
        return index


def enter_series(name: str, input: Tensor, dim: int | None, mask: Any, lengths: Any, side: str) -> Series:
    """What was given; see :class:`Series`."""
    given = enter_input(input, mask)
    refuse_sparse(name, given)
    dims = given.data.dim()
    if dims == 0:
        raise ValueError(f"{name} needs a dimension to go along, got a 0-d tensor")
    if dim is None and dims > 1:
        raise ValueError(
            f"{name}: say which dimension of shape {tuple(given.data.shape)} is time: dim=1 for (batch, time, ...), "
            "dim=0 for (time, ...)"
        )
    dim = 0 if dim is None else dim
    check_dim(name, dim, True)
    (dim,) = shapes.canonical_dims(dim, dims)
    check_side(side)
    x, exists = as_pair(given), None
    full = isinstance(lengths, str) and lengths == "full"
    if lengths is not None and not full:
        exists, seen = steps_that_exist(name, lengths, side, given.data, dim, given.mask)
        if not seen:  # else the mask is the one that counts are kept with
            x = Pair(x.data, masks.logical_and(x.mask, masks.expand_to(exists, x.data.shape)))
            given = Input(x, given.masked)
    packed = type(input) is MaskedTensor and input._packed is not None
    unsaid = lengths is None and type(given.x) is Pair and (packed or dims > 2 or dim != 0)
    return Series(given, Pair(x.data, masks.expand_to(x.mask, x.data.shape), x.payload), dim, exists, unsaid)


def _check_order(name: str, index: Tensor, dim: int, exists: Tensor | None, ties: bool) -> None:
    """Raises for times of steps that exist, of which one is before the one before it, NaN or infinite."""
    rows = index.movedim(dim, -1)
    wrong, before, after = ~rows.isfinite(), rows[..., :-1], rows[..., 1:]
    falls = after < before if ties else after <= before
    if exists is not None and index.dim() > 1:
        there = exists.movedim(dim, -1)
        falls = falls & there[..., :-1] & there[..., 1:]
    wrong[..., 1:] |= falls
    if wrong.any():
        *row, place = wrong.nonzero()[0].tolist()
        place = max(place - 1, 0)
        shown = rows[tuple(row)][place : place + 2].tolist()
        raise ValueError(
            f"{name}: index must be finite and {'not fall' if ties else 'rise'} from each entry to the next, got "
            f"{shown} at {place}{f' of sequence {max(row)}' if row else ''}; sort it with the series along dim "
            "(index.argsort())" + ("" if ties else ", one entry for each time")
        )


def expect_lengths(name: str, series: Series) -> None:
    """Raises for a batch that may be padded, of which it is not said: what is padding would be filled, or counted."""
    if series.unsaid:
        raise ValueError(
            f"{name}: a masked step of shape {tuple(series.x.data.shape)} along dim={series.dim} may be missing, or "
            "padding, which must not be filled. Say lengths=[...], how many steps each sequence has; lengths='full', "
            "if nothing is padding; or give each sequence alone"
        )
