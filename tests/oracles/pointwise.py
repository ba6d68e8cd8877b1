"""Elementwise ops on the valid elements alone: broadcast, keep what is jointly valid, run, put back."""

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


SPECIAL = [
    *("digamma", "erfc", "erfinv", "i0", "igamma", "igammac", "lgamma", "logit", "sinc"),
    *(f"mvlgamma.mvlgamma_p_{p}" for p in (1, 3, 5)),
    *(f"polygamma.polygamma_n_{n}" for n in range(5)),
]


def family(name: str) -> str:
    """The family of an elementwise entry."""
    if name.startswith("nn.functional."):
        return "activation"
    return "special" if name.startswith("special.") or name in SPECIAL else "pointwise"


ENTRYWISE = [
    name
    for name, info in database.ENTRIES.items()
    if (type(info).__name__ in TYPES or name in UNTAGGED) and name not in ELSEWHERE
]
ORACLES: dict[str, Any] = {name: elementwise for name in ENTRYWISE if family(name) == "pointwise"}
UNDEFINED = "the samples lie partly where the derivative is NaN, also of the plain op"
XFAIL = {("__rpow__", "gradient"): UNDEFINED}
