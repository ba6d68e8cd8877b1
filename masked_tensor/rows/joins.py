"""Joins along features of tensors on the same rows.  A plain part would be valid beyond the rows: no form."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..op import NoForm
from ..pair import Pair, Payload
from .packed import Packed, canonical, made
from .pattern import same
from .views import alias, arranged, position, unsqueeze


def cat(tensors: Sequence[Any], dim: int = 0) -> Packed:
    """``torch.cat`` along a feature; of any dimension, if all others are the empty tensors that torch passes over."""
    tensors = [t for t in tensors if not _passed_over(t, tensors)]
    if len(tensors) == 1 and type(tensors[0]) is Packed:
        return alias(tensors[0])
    if not all(type(t) is Packed for t in tensors) or len({len(t.order) for t in tensors}) != 1:
        raise NoForm
    first = tensors[0]
    d = position(dim, first)
    if not all(same(t.rows, first.rows) for t in tensors):
        raise NoForm
    parts = [arranged(canonical(t), [d]) for t in tensors]
    lead = parts[0]
    if any(p.order != lead.order or p.stored[:-1] != lead.stored[:-1] for p in parts):
        raise NoForm
    data = torch.cat([p.values for p in parts], -1)
    if all(p.inner is None for p in parts):
        return made(data, lead)
    zero = all(p.payload is Payload.ZERO for p in parts)
    inner = torch.cat([masks.fit(p.pair().mask, p.stored) for p in parts], -1)
    return made(Pair(data, inner, Payload.ZERO if zero else Payload.ANY), lead)


def _passed_over(x: Any, tensors: Sequence[Any]) -> bool:
    """A plain tensor of shape ``(0,)`` fits to every shape: what a cache of keys holds before the first."""
    if type(x) is not Tensor or x.shape != (0,):
        return False
    return all(x.dtype is (t.values.dtype if type(t) is Packed else None) for t in tensors if t is not x)


def stack(tensors: Sequence[Any], dim: int = 0) -> Packed:
    """``torch.stack``: a new feature."""
    if not all(type(t) is Packed for t in tensors) or len({t.shape for t in tensors}) != 1:
        raise NoForm
    dim = dim + len(tensors[0].order) + 1 if dim < 0 else dim
    return cat([unsqueeze(t, dim) for t in tensors], dim)
