"""Functions of several tensors: read where at least one of them stores something, and counted everywhere else.

An elementwise function, added up over all valid elements, is its sum over the union of the patterns plus, as often as
there are other valid elements, its value at zeros.  A strided operand of the full shape stores everything.  One that
broadcasts is read once per element of its own, which stands for as many elements as it is repeated to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from .. import errors, masks, shapes
from ..kernels.precision import rounds_noticeably
from ..layouts import coo, validity
from ..layouts.elements import build_like, canonical, is_sparse, keys, same_pattern, values, values_at
from ..layouts.positions import ravel, unravel
from ..shared.averaging import NONE, finish_average
from . import slice_reductions
from .slices import Slices


@dataclass(eq=False)
class JoinedElements:
    """The valid elements of several tensors."""

    values: list[Tensor]  #: of each operand: first at ``keys``, then one per group of elements that nobody stores
    keys: Tensor  #: the row-major positions of the former
    repeats: Tensor  #: how many elements each of the latter stands for
    shape: torch.Size

    @property
    def number(self) -> Tensor:
        """How many elements are valid."""
        return self.keys.shape[0] + self.repeats.sum()


def loss(
    function: Callable[..., Tensor], operands: Sequence[Tensor], mask: Tensor | None, reduction: int
) -> tuple[Tensor, Tensor | None]:
    """``function`` of the valid elements, their sum or their mean with its validity.

    The elements themselves are a sparse tensor: the function must be 0 where nothing is stored.
    """
    j = join_elements(operands, mask)
    entries, stored = function(*j.values), j.keys.shape[0]
    like = next(x for x in operands if is_sparse(x))
    if reduction == NONE:
        if bool((entries[stored:] != 0).any()):
            raise errors.UnsupportedOpError(
                f"reduction='none' of a loss that is not 0 where the {like.layout} operands store nothing would be "
                "dense; give it input.to_dense() (and the same mask), or another reduction"
            )
        key, order = j.keys.sort()
        return build_like(key, entries[:stored][order], j.shape, like), None
    wide = torch.float32 if rounds_noticeably(entries.dtype) else None
    total = entries[:stored].sum(dtype=wide) + (entries[stored:].to(wide or entries.dtype) * j.repeats).sum()
    result = finish_average(
        total, j.number, j.number > 0, entries.dtype, empty=j.shape.numel() == 0, reduction=reduction
    )
    return result.data, result.mask


def dist(x: Tensor, y: Tensor, mask: Tensor | None, p: float) -> tuple[Tensor, Tensor]:
    """The ``p``-norm of the difference of two tensors of one shape, with its validity."""
    j = join_elements((x, y), mask)
    difference = (j.values[0] - j.values[1])[: j.keys.shape[0]]
    everything = Slices(1, torch.zeros_like(j.keys), None, j.number.reshape(1))
    return slice_reductions.norm(difference, everything, p).reshape(()), j.number > 0


def count_valid_rows(mask: Tensor | None, x: Tensor) -> int:
    """How many rows of ``x`` have a valid element (1 at least): what a mean over the batch divides by."""
    return max(1, validity.outputs(mask, x.shape, range(1, x.dim()), x.device).shape[0])


def join_elements(operands: Sequence[Tensor], mask: Tensor | None) -> JoinedElements:
    """The operands, of which one at least is sparse, at the elements that ``mask`` shows (None: all)."""
    shape = _common_shape(operands)
    operands = [canonical(x) for x in operands]
    whole = [x for x in operands if x.shape == shape]
    key = _union(whole)
    shown = torch.ones_like(key, dtype=torch.bool)
    if mask is not None:
        place = unravel(key, shape)
        shown = validity.look_up(mask, shape, lambda d: place[d], key.shape[0])
    same = all(is_sparse(x) and same_pattern(x, whole[0]) for x in whole)
    read = [(values(x) if same else values_at(x, key))[shown] for x in whole]
    key = key[shown]
    place = unravel(key, shape)
    small = torch.broadcast_shapes(*(x.shape for x in operands if x.shape != shape))
    rest, repeats = _count_others(mask, shape, small, key) if all(map(is_sparse, whole)) else (key[:0], key[:0])
    found = iter(read)
    columns = []
    for x in operands:
        if x.shape == shape:
            here = next(found)
            there = here.new_zeros(rest.shape)
        else:
            here, there = _expand_positions(x, place, key.shape[0]), x.expand(small).reshape(-1)[rest]
        columns.append(torch.cat((here, there)))
    return JoinedElements(columns, key, repeats, shape)


def _expand_positions(x: Tensor, place: Sequence[Tensor], number: int) -> Tensor:
    """A strided tensor that broadcasts, at ``number`` positions."""
    lead = len(place) - x.dim()
    own = ravel(lambda d: place[d + lead], x.shape, [d for d, n in enumerate(x.shape) if n != 1])
    return x.reshape(-1).expand(number) if own is None else x.reshape(-1)[own]


def _common_shape(operands: Sequence[Tensor]) -> torch.Size:
    """The shape of the sparse operands, to which the strided ones must broadcast."""
    shape = next(x.shape for x in operands if is_sparse(x))
    for x in operands:
        if not shapes.can_expand(x.shape, shape) or (is_sparse(x) and x.shape != shape):
            raise ValueError(
                f"sparse operands must have one shape, to which strided ones broadcast, got {tuple(shape)} and "
                f"{tuple(x.shape)} ({x.layout})"
            )
    return shape


def _union(tensors: Sequence[Tensor]) -> Tensor:
    """The positions that at least one of the tensors stores: in the order of the first, if they store the same."""
    first = keys(tensors[0].detach())
    others = [x for x in tensors[1:] if not same_pattern(x, tensors[0])]
    return torch.cat((first, *(keys(x.detach()) for x in others))).unique() if others else first


def _count_others(mask: Tensor | None, shape: torch.Size, small: Sequence[int], key: Tensor) -> tuple[Tensor, Tensor]:
    """The elements of ``small``, which broadcasts to ``shape``, that stand for valid elements not at ``key``: how many.

    ``small`` is the shape of what there is to know of elements that nobody stores.
    """
    lead = len(shape) - len(small)
    kept = [d + lead for d, n in enumerate(small) if n != 1]
    size = prod(shape[d] for d in kept)
    everything = torch.arange(size, device=key.device)
    number = validity.counts(mask, shape, [d for d in range(len(shape)) if d not in kept], everything)
    place = unravel(key, shape)
    here = ravel(lambda d: place[d], shape, kept)
    stored = torch.bincount(torch.zeros_like(key) if here is None else here, minlength=size)
    rest = (number - stored > 0).nonzero().view(-1)
    return rest, (number - stored)[rest]


def mask_and(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The AND of two masks of any layout that broadcast to each other; None shows everything."""
    if a is None or b is None:
        return b if a is None else a
    if not is_sparse(a) and not is_sparse(b):
        return masks.logical_and(a, b)
    if not is_sparse(a) or (is_sparse(b) and b.numel() > a.numel()):
        a, b = b, a
    shape = torch.broadcast_shapes(a.shape, b.shape)
    if a.shape != shape:
        key = validity.expand_keys(a, shape)
        a = coo.build(key, torch.ones_like(key, dtype=torch.bool), shape, a)
    return validity.restrict(canonical(a), b)
