"""Copies and likes: a copy and a ``*_like`` keep the mask, ``new_*`` gives a plain tensor."""

from typing import Any

import torch
from torch._ops import OpOverload

from .. import masks
from ..op import Op
from ..pair import Pair, Payload


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
    return bool(torch.is_same_size(*(v.data if type(v) is Pair else v for v in (x, other))))


ROWS = [
    *(Op(name, copied, generic=True) for name in ("clone", "detach", "lift_fresh", "contiguous")),
    *(Op(f"{name}_like", like, generic=True) for name in ["empty", "ones", "full", "rand", "randn", "randint"]),
    Op("zeros_like", zeros_like, generic=True),
    *(Op(f"new_{name}", new, generic=True) for name in ["empty", "zeros", "ones", "full"]),
    Op("new_empty_strided", new_empty_strided, generic=True),
    Op("is_same_size", is_same_size),
]
