"""Norms over the valid entries: what is masked out is replaced by 0, or by inf where a negative order would see the 0.

A result is valid iff at least one entry of its slice is; ``dist`` is the norm of the difference, over the valid pairs.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair, shapes
from ..compat import OpOverload, schema
from ..op import Op, rows
from ..packing import reduction as packed
from ..pair import Pair
from ..select import filled, zeroed
from ..sparse import operators
from ..sparse.rules import instead
from .reduction import Dim


def norm(op: OpOverload, x: Pair, p: float | None = 2, dim: Dim = None, *rest: Any, **keywords: Any) -> Pair:
    """``sum(abs(x) ** p) ** (1 / p)``, whatever the operator's name; ``rest`` holds ``keepdim``."""
    dims = shapes.canonical_dims(dim, x.data.dim())
    keepdim = rest[0] if rest else keywords.get("keepdim", False)
    place = [dims] if TAKES_DIM[op] else []
    data = op(_filled(x, p), p, *place, *rest, **keywords)
    return Pair(data, masks.reduced(x.mask, dims, keepdim))


def _filled(x: Pair, p: float | None) -> Tensor:
    return filled(x, float("inf")) if p is not None and p < 0 else zeroed(x)


def dist(x: Pair | Tensor, y: Pair | Tensor, p: float = 2) -> Pair:
    """The norm of ``x - y``."""
    x, y = pair.of(x), pair.of(y)
    difference = x.data - y.data
    both = Pair(difference, masks.fit(masks.both(x.mask, y.mask), difference.shape))
    return norm(torch.ops.aten.linalg_vector_norm.default, both, p)


# Read from the schemas at import: a compiler cannot trace through them.
TAKES_DIM = {
    op: any(a.name == "dim" for a in schema(op).arguments)
    for packet in (torch.ops.aten.linalg_vector_norm, torch.ops.aten.norm, torch.ops.aten.native_norm)
    for op in (getattr(packet, name) for name in packet.overloads())
}
ROWS = [
    *rows("linalg_vector_norm norm", norm, generic=True, sparse=instead(operators.norm), rows=packed.reduced(2)),
    Op("native_norm", norm, generic=True, sparse=instead(operators.norm)),
    Op("dist", dist, sparse=instead(operators.dist, free=("self", "other"))),
]
