"""Copies and likes: a copy and a ``*_like`` keep the mask, ``new_*`` gives a plain tensor."""

from typing import Any

from torch._ops import OpOverload

from .. import masks
from ..op import Op
from ..pair import Pair, Payload


def copied(op: OpOverload, x: Pair, **kwargs: Any) -> Pair:
    """clone, detach, contiguous ...: the same entries; the mask is shared until written."""
    return Pair(op(x.data, **kwargs), x.mask, x.payload)


def like(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """``*_like``: new data under the same mask."""
    return Pair(op(x.data, *args, **kwargs), x.mask)


def new(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Any:
    """``new_*``: a plain tensor of the given size, with dtype and device of ``x``."""
    return op(x.data, *args, **kwargs)


def new_empty_strided(op: OpOverload, x: Pair, size: list[int], stride: list[int], **kwargs: Any) -> Any:
    """Autograd's way to make room for a copied gradient: of the own size it keeps the mask."""
    data = op(x.data, size, stride, **kwargs)
    return Pair(data, x.mask) if tuple(size) == tuple(x.mask.shape) else data


ROWS = [
    *(Op(name, copied, generic=True) for name in ("clone", "detach", "lift_fresh", "contiguous")),
    *(Op(f"{name}_like", like, generic=True) for name in "empty zeros ones full rand randn randint".split()),
    *(Op(f"new_{name}", new, generic=True) for name in "empty zeros ones full".split()),
    Op("new_empty_strided", new_empty_strided, generic=True),
]
