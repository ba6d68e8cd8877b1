"""Copies and likes: a copy and a ``*_like`` keep the mask, ``new_*`` gives a plain tensor."""

from typing import Any

from torch._ops import OpOverload

from .. import masks
from ..op import Op, rows
from ..pair import Pair, Payload
from ..sparse.lifts import as_it_is, on_values


def copied(op: OpOverload, x: Pair, **kwargs: Any) -> Pair:
    """clone, detach, contiguous ...: the same entries; the mask is shared until written."""
    return Pair(op(x.data, **kwargs), x.mask, x.payload)


def like(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """``*_like``: new data under the same mask."""
    data = op(x.data, *(a.data if type(a) is Pair else a for a in args), **kwargs)
    return Pair(data, masks.on(x.mask, data.device))


def zeros_like(op: OpOverload, x: Pair, **kwargs: Any) -> Pair:
    """Zeros, under the mask too."""
    data = op(x.data, **kwargs)
    return Pair(data, masks.on(x.mask, data.device), Payload.ZERO)


def new(op: OpOverload, x: Any, *args: Any, **kwargs: Any) -> Any:
    """``new_*``: a plain tensor of the given size, with dtype and device of ``x``."""
    return op(x.data, *args, **kwargs)


def new_empty_strided(op: OpOverload, x: Pair, size: list[int], stride: list[int], **kwargs: Any) -> Any:
    """Autograd's way to make room for a copied gradient: of the own size it keeps the mask."""
    data = op(x.data, size, stride, **kwargs)
    return Pair(data, masks.on(x.mask, data.device)) if tuple(size) == tuple(x.mask.shape) else data


def is_same_size(x: Any, other: Any) -> bool:
    """Whether two tensors have one shape."""
    first, second = (v.data if type(v) is Pair else v for v in (x, other))
    return bool(first.shape == second.shape)


ROWS = [
    *rows("clone lift_fresh contiguous", copied, generic=True, sparse=on_values),
    Op("detach", copied, generic=True, sparse=on_values, detaches=True),
    *rows("empty_like ones_like full_like rand_like randn_like randint_like", like, generic=True, sparse=on_values),
    Op("zeros_like", zeros_like, generic=True, sparse=on_values),
    *rows("new_empty new_zeros new_ones new_full", new, generic=True, sparse=on_values),
    Op("new_empty_strided", new_empty_strided, generic=True),
    Op("is_same_size", is_same_size, sparse=as_it_is),
]
