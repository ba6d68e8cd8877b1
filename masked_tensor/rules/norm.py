"""Norms over the valid entries: masked-out data is replaced by 0, or by inf if the order is negative.

A result is valid iff at least one entry of its slice is; ``dist`` is the norm of the difference, over the valid pairs.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair, shapes
from ..compat import OpOverload, schema
from ..kernels.reductions import norm as reduce_to_norm
from ..op import Op, ops
from ..packing import reduction as packed
from ..pair import Pair
from ..sparse import operators
from ..sparse.rules import sparse_rule
from .reduction import Dim


def norm(op: OpOverload, x: Pair, p: float | None = 2, dim: Dim = None, *rest: Any, **keywords: Any) -> Pair:
    """``sum(abs(x) ** p) ** (1 / p)``, whatever the operator's name; ``rest`` holds ``keepdim``."""
    dims = shapes.canonical_dims(dim, x.data.dim())
    keepdim = rest[0] if rest else keywords.get("keepdim", False)
    place = [dims] if TAKES_DIM[op] else []
    data = reduce_to_norm(x, dims, keepdim, op, p, (*place, *rest), keywords)
    return Pair(data, masks.reduce_validity(x.mask, dims, keepdim))


def dist(x: Pair | Tensor, y: Pair | Tensor, p: float = 2) -> Pair:
    """The norm of ``x - y``."""
    x, y = pair.as_pair(x), pair.as_pair(y)
    difference = x.data - y.data
    both = Pair(difference, masks.expand_to(masks.logical_and(x.mask, y.mask), difference.shape))
    return norm(torch.ops.aten.linalg_vector_norm.default, both, p)


# Read from the schemas at import: a compiler cannot trace through them.
TAKES_DIM = {
    op: any(a.name == "dim" for a in schema(op).arguments)
    for packet in (torch.ops.aten.linalg_vector_norm, torch.ops.aten.norm, torch.ops.aten.native_norm)
    for op in (getattr(packet, name) for name in packet.overloads())
}
OPS = [
    *ops(
        "linalg_vector_norm norm",
        norm,
        generic=True,
        sparse=sparse_rule(operators.norm),
        packed=packed.reduce_packed(2),
    ),
    Op("native_norm", norm, generic=True, sparse=sparse_rule(operators.norm)),
    Op("dist", dist, sparse=sparse_rule(operators.dist, free=("self", "other"))),
]
