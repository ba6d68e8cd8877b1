"""Copies and likes: copies and ``*_like`` results keep the mask; the result of ``new_*`` is valid everywhere.

``new_zeros`` and the like return masked tensors, because code that calls ``x.new_zeros(size)`` then writes results of
``x`` into it, masked entries included.  ``new_tensor`` is given its values, so its result is plain.
"""

from typing import Any

import torch

from .. import layouts, masks, pair
from ..compat import OpOverload
from ..op import Op, ops
from ..packing import views
from ..packing.kinds import as_new, compare_shapes, empty_strided, keep_storage, packed_rule
from ..pair import Pair, Payload
from ..select import select
from ..settings import DEFAULT, current
from ..shared import strict_counts
from ..shared.memory_format import copied
from ..sparse.rules import on_values, strided, unchanged


def copy(op: OpOverload, x: Pair, **kwargs: Any) -> Pair:
    """clone, detach, contiguous ...: the same entries; the mask is shared until written."""
    data = op(x.data, **kwargs)
    return Pair(data, x.mask, x.payload) if data.stride() == x.data.stride() else copied(x, data)


def like(op: OpOverload, x: Pair | torch.Tensor, *args: Any, **kwargs: Any) -> Pair:
    """``*_like``: new data under the same mask; entries with a masked bound are masked."""
    x = pair.as_pair(x)
    data = op(x.data, *(select(a.data, a.mask, 1) if type(a) is Pair else a for a in args), **kwargs)
    mask = masks.to_device(x.mask, data.device)
    for bound in args:
        if type(bound) is Pair:
            mask = masks.logical_and(mask, masks.expand_to(masks.to_device(bound.mask, data.device), mask.shape))
    return Pair(data, mask)


def empty_like(op: OpOverload, x: Pair, **kwargs: Any) -> Pair:
    """``empty_like``: new data under the same mask; integers, which may be indices, are masked until written.

    The inverse of a masked permutation (``inverse = empty_like(p); inverse[p] = arange(n)``) is masked where ``p``
    names nothing; what lies there in memory is an index out of range.
    """
    data = op(x.data, **kwargs)
    if data.dtype in (torch.int64, torch.int32):
        return Pair(data, masks.full(data.shape, data.device, False))
    return Pair(data, masks.to_device(x.mask, data.device))


def zeros_like(op: OpOverload, x: Pair, **kwargs: Any) -> Pair:
    """Zeros, even under the mask; a sparse tensor of zeros stores nothing, so it has no valid entries."""
    data = op(x.data, **kwargs)
    if data.layout is not x.data.layout:
        return layouts.pair_on_pattern(data, None)
    return Pair(data, masks.to_device(x.mask, data.device), Payload.ZERO)


def new(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """``new_*``: a tensor of the given size, valid everywhere, with the dtype and device of ``x``."""
    data = op(x.data, *args, **kwargs)
    return pair.plain_pair(data) if data.layout is x.data.layout else layouts.pair_on_pattern(data, None)


def new_counts(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """``new_ones`` and ``new_full``: the same; inside ``strict()``, they must not be counted."""
    result = new(op, x, *args, **kwargs)
    if current() is not DEFAULT:
        result = Pair(result.data, masks.forget_facts(result.mask), result.payload)  # known by the memory of its mask
        strict_counts.remember(x, result)
    return result


def new_empty_strided(op: OpOverload, x: Pair, size: list[int], stride: list[int], **kwargs: Any) -> Pair:
    """Memory that autograd copies a gradient to: with the size of ``x`` it keeps the mask, else all is valid."""
    data = op(x.data, size, stride, **kwargs)
    return (
        Pair(data, masks.to_device(x.mask, data.device))
        if tuple(size) == tuple(x.mask.shape)
        else pair.plain_pair(data)
    )


def is_same_size(x: Any, other: Any) -> bool:
    """Whether two tensors have the same shape."""
    first, second = (v.data if type(v) is Pair else v for v in (x, other))
    return bool(first.shape == second.shape)


OPS = [
    *ops("clone lift_fresh", copy, generic=True, binding=True, sparse=on_values, packed=keep_storage, copies=True),
    Op("contiguous", copy, generic=True, sparse=on_values, packed=packed_rule(views.contiguous), copies=True),
    Op("detach", copy, generic=True, binding=True, sparse=on_values, packed=keep_storage, detaches=True),
    *ops("ones_like full_like", like, generic=True, binding=True, sparse=on_values, packed=keep_storage),
    *ops("rand_like randn_like randint_like", like, generic=True, sparse=on_values, packed=keep_storage),
    Op("empty_like", empty_like, generic=True, sparse=on_values, packed=keep_storage),
    Op("zeros_like", zeros_like, generic=True, binding=True, sparse=on_values, packed=keep_storage),
    *ops("new_empty new_zeros", new, generic=True, sparse=strided, packed=as_new),
    *ops("new_ones new_full", new_counts, generic=True, sparse=strided, packed=as_new),
    Op("new_empty_strided", new_empty_strided, generic=True, packed=empty_strided),
    Op("is_same_size", is_same_size, sparse=unchanged, packed=compare_shapes),
]
