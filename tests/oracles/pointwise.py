"""Elementwise ops on the valid elements alone: broadcast, keep what is jointly valid, run, put back."""

import itertools
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from ..helpers import database
from ..helpers.harness import Masked


def operands(*trees: Any) -> list[Any]:
    """All tensors, masked or plain, as records."""
    leaves = tree_leaves(trees, is_leaf=lambda v: isinstance(v, Masked))
    return [masked(v) for v in leaves if isinstance(v, Masked | Tensor)]


def masked(x: Masked | Tensor) -> Masked:
    return x if isinstance(x, Masked) else Masked(x, torch.ones(x.shape, dtype=torch.bool))


def elementwise(op: Any, *args: Any, **kwargs: Any) -> Any:
    """1-D tensors of the jointly valid entries in, their results put back."""
    given = operands(args, kwargs)
    shape = torch.broadcast_shapes(*(x.data.shape for x in given))
    valid = torch.ones(shape, dtype=torch.bool)
    for x in given:
        valid = valid & x.mask

    def entries(value: Any) -> Any:
        return masked(value).data.expand(shape)[valid] if isinstance(value, Masked | Tensor) else value

    args, kwargs = tree_map(entries, (args, kwargs), is_leaf=lambda v: isinstance(v, Masked))
    return tree_map(lambda out: put_back(out, valid), op(*args, **kwargs))


def put_back(entries: Tensor, valid: Tensor) -> Masked:
    data = torch.zeros(valid.shape, dtype=entries.dtype)
    data[valid] = entries
    return Masked(data, valid)


def where(op: Any, x: Any, condition: Any, other: Any) -> Any:
    """One entry after the other (the database puts the condition second)."""
    x, chosen, other = operands([v if isinstance(v, Masked) else torch.as_tensor(v) for v in (x, condition, other)])
    shape = torch.broadcast_shapes(chosen.data.shape, x.data.shape, other.data.shape)
    data = torch.zeros(shape, dtype=torch.result_type(x.data, other.data))
    valid = torch.zeros(shape, dtype=torch.bool)
    parts = [(v.data.expand(shape), v.mask.expand(shape)) for v in (chosen, x, other)]
    for place in itertools.product(*(range(n) for n in shape)):
        taken = parts[1] if parts[0][0][place] else parts[2]
        data[place], valid[place] = taken[0][place], parts[0][1][place] and taken[1][place]
    return Masked(data, valid)


def masked_fill(op: Any, x: Any, mask: Any, value: Any) -> Any:
    """One entry after the other: padding stays padding."""
    x, chosen, value = masked(x), masked(mask), masked(value if isinstance(value, Masked) else torch.as_tensor(value))
    shape = torch.broadcast_shapes(x.data.shape, chosen.data.shape)
    data, valid = x.data.expand(shape).clone(), x.mask.expand(shape).clone()
    for place in itertools.product(*(range(n) for n in shape)):
        if not chosen.mask.expand(shape)[place]:
            valid[place] = False
        elif chosen.data.expand(shape)[place]:
            data[place] = value.data
            valid[place] &= bool(value.mask)
    return Masked(data, valid)


def glu(op: Any, x: Any, dim: int = -1) -> Any:
    x = masked(x)
    a, b = x.data.tensor_split(2, dim)
    c, d = x.mask.tensor_split(2, dim)
    return elementwise(lambda left, right: left * torch.sigmoid(right), Masked(a, c), Masked(b, d))


def cross(op: Any, x: Any, other: Any, dim: int = -1) -> Any:
    """Component by component."""
    shape = torch.broadcast_shapes(masked(x).data.shape, masked(other).data.shape)
    a, b = (
        [Masked(v.data.expand(shape).select(dim, i), v.mask.expand(shape).select(dim, i)) for i in range(3)]
        for v in (masked(x), masked(other))
    )
    parts = [elementwise(lambda p, q, r, s: p * q - r * s, a[i], b[j], a[j], b[i]) for i, j in ((1, 2), (2, 0), (0, 1))]
    return Masked(torch.stack([p.data for p in parts], dim), torch.stack([p.mask for p in parts], dim))


def prelu(op: Any, x: Any, weight: Any) -> Any:
    """One weight for all, or one per entry of dim 1."""
    x, weight = masked(x), masked(weight)
    shape = [-1 if d == min(1, x.data.dim() - 1) else 1 for d in range(x.data.dim())] if weight.data.numel() > 1 else []
    spread = Masked(weight.data.reshape(shape), weight.mask.reshape(shape))
    return elementwise(lambda v, w: torch.where(v > 0, v, v * w), x, spread)


TYPES = ("UnaryUfuncInfo", "BinaryUfuncInfo")
CASTS = [
    *("bool", "byte", "char", "short", "int", "long", "half", "bfloat16", "float", "double"),
    *("chalf", "cfloat", "cdouble"),
]
ELSEWHERE = {  # views, assignment, randomness, cuda, casts
    *("conj", "real", "imag", "fill", "nn.functional.rrelu", "jiterator_unary", "jiterator_binary"),
    *("jiterator_binary_return_by_ref", *CASTS),
}
UNTAGGED = [
    *("addcmul", "addcdiv", "clamp", "lerp", "logaddexp2"),
    *("nn.functional.hardswish", "nn.functional.gelu", "nn.functional.leaky_relu"),
]

ORACLES: dict[str, Any] = {
    name: elementwise
    for name, info in database.ENTRIES.items()
    if (type(info).__name__ in TYPES or name in UNTAGGED) and name not in ELSEWHERE
}
XFAIL = {
    (name, "gradient"): "the samples lie partly where the derivative is NaN, also of the plain op"
    for name in ("__rpow__", "special.entr")
}
ORACLES |= {"where": where, "masked_fill": masked_fill, "nn.functional.glu": glu, "nn.functional.prelu": prelu}
ORACLES |= {"cross": cross, "linalg.cross": cross}
