"""Joins along features of tensors on the same rows.  A plain part would be valid beyond the rows: no form."""

from collections.abc import Sequence
from typing import Any

import torch

from .. import masks
from ..op import NoForm
from ..pair import Pair, Payload
from .packed import Packed, canonical, made
from .pattern import same
from .views import arranged, position, unsqueeze


def cat(tensors: Sequence[Any], dim: int = 0) -> Packed:
    """``torch.cat`` along a feature."""
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


def stack(tensors: Sequence[Any], dim: int = 0) -> Packed:
    """``torch.stack``: a new feature."""
    if not all(type(t) is Packed for t in tensors) or len({t.shape for t in tensors}) != 1:
        raise NoForm
    dim = dim + len(tensors[0].order) + 1 if dim < 0 else dim
    return cat([unsqueeze(t, dim) for t in tensors], dim)
