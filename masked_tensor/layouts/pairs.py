"""Pairs whose data is sparse: values are stored where something is specified, and only those can be valid.

The mask of such a pair has the data's layout and indices.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..pair import Pair, Payload
from ..select import select
from . import strided, validity
from .elements import canonical, is_sparse, keys, same_pattern, values, values_at, verbs_of, with_values

STRIDED = torch.strided  # read on every op's way


def any_sparse(args: Sequence[Any]) -> bool:
    """Whether an argument, or an entry of a list argument, is a pair with sparse data."""
    for a in args:  # on every op's way: a generator costs three times as much
        kind = type(a)
        if kind is Pair:
            if a.data.layout is not STRIDED:
                return True
        elif (kind is list or kind is tuple) and any_sparse(a):
            return True
    return False


def pair_on_pattern(data: Tensor, mask: Tensor | None) -> Pair:
    """A sparse tensor and a mask of its layout as a pair with one pattern: the mask's (values of ``data``, else 0)."""
    data = canonical(data)
    if mask is None:
        return Pair(data, validity.specified_mask(data))
    if not is_sparse(mask):
        return Pair(data, with_values(data.detach(), validity.at(mask, data)))
    if same_pattern(data, mask):
        return Pair(data, with_values(data.detach(), values(mask)))
    key = keys(mask)
    if key.shape == values(data.detach()).shape:
        key, order = key.sort()
        if torch.equal(key, keys(data)):  # a mask that is in another order: torch takes ten times as long to sort it
            return Pair(data, with_values(data.detach(), values(mask)[order]))
    mask = canonical(mask)
    return Pair(with_values(mask, values_at(data, keys(mask))), mask)


def copy_mask(mask: Tensor) -> Tensor:
    """A copy of ``mask``, compact: no mask is handed out or taken in that somebody outside could write."""
    if is_sparse(mask):
        return with_values(mask, values(mask).clone())
    return masks.compact(mask).clone().expand(mask.shape)


def to_dense(x: Pair) -> Pair:
    """The strided form of a sparse pair: 0 and masked out where nothing is stored."""
    stored = values(x.data)
    stored = select(stored, values(x.mask), 0)
    return Pair(strided.build(keys(x.mask), stored, x.mask.shape, x.mask), validity.dense_mask(x.mask), Payload.ZERO)


def both_valid(old: Pair, new: Pair) -> Pair:
    """``old``, valid where ``new`` is as well: before ``overwrite``; the patterns must be the same."""
    if not same_pattern(old.mask, new.mask):
        raise RuntimeError(
            "an in-place op would change which entries a sparse masked tensor stores; use x = op(x, ...)"
        )
    if old.mask is new.mask:
        return old
    return Pair(old.data, with_values(old.mask, values(old.mask) & values(new.mask)))


def overwrite(old: Pair, new: Pair) -> Pair:
    """``old`` with the values and validity of ``new``, of the same pattern, written into its memory."""
    verbs_of(old.data).stored_values(old.data).copy_(verbs_of(new.data).stored_values(new.data))
    return Pair(old.data, new.mask)
