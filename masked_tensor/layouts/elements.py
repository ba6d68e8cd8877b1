"""Stored values out of a tensor of any layout and back into its pattern, differentiably.

No rule differentiates through a torch sparse tensor: the values cross as a strided tensor, by two small autograd
Functions, and each one's backward is the other.  A gradient therefore comes back in the tensor's own layout and
pattern.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from .. import masks
from . import compressed, coo, strided
from .positions import find, ravel


class Verbs(Protocol):
    """What every layout can say of itself: the modules ``strided``, ``coo`` and ``compressed`` do, each in its way."""

    def canonical(self, x: Tensor) -> Tensor: ...
    def validate(self, x: Tensor) -> None: ...
    def stored_values(self, x: Tensor) -> Tensor: ...
    def indices(self, x: Tensor) -> tuple[Tensor, ...]: ...
    def assemble(self, x: Tensor, values: Tensor) -> Tensor: ...
    def coordinate(self, x: Tensor, dim: int) -> Tensor: ...
    def runs(self, x: Tensor, dims: Sequence[int]) -> Tensor | None: ...
    def build(self, keys: Tensor, values: Tensor, shape: Sequence[int], like: Tensor) -> Tensor: ...


_SIBLINGS: dict[torch.layout, Verbs] = {
    torch.strided: strided,
    torch.sparse_coo: coo,
    torch.sparse_csr: compressed,
    torch.sparse_csc: compressed,
    torch.sparse_bsr: compressed,
    torch.sparse_bsc: compressed,
}


_IN_ORDER = torch.sparse_coo, torch.sparse_csr, torch.sparse_bsr  # what is built of sorted positions stores them so


def verbs_of(x: Tensor) -> Verbs:
    """The verbs of the layout of ``x``: one of the siblings ``strided``, ``coo``, ``compressed``."""
    if x.layout not in _SIBLINGS:
        raise TypeError(f"masked tensors have no layout {x.layout}; give x.to_dense()")
    return _SIBLINGS[x.layout]


def is_sparse(x: Tensor) -> bool:
    """Whether some elements of ``x`` may be unspecified."""
    return x.layout is not torch.strided


def canonical(x: Tensor) -> Tensor:
    """``x`` with every position stored at most once (coalesced)."""
    return verbs_of(x).canonical(x)


def values(x: Tensor) -> Tensor:
    """The stored values of ``x``, one-dimensional; the gradient is of ``x``'s layout and pattern.

    Who reads a tensor twice reads the same values: their gradients are then added up as strided tensors, where torch's
    engine cannot add up those of most layouts.
    """
    if x.requires_grad and torch.is_grad_enabled():
        if x.is_leaf:  # would be kept alive by its own record
            result: Tensor = _Values.apply(x)
            return result
        known: Tensor | None = getattr(x, "_read", None)
        if known is None:
            known = x._read = _Values.apply(x)  # type: ignore[attr-defined]  # an attribute of our own
        return known
    return verbs_of(x).stored_values(x).detach().reshape(-1)


def with_values(x: Tensor, new: Tensor) -> Tensor:
    """A tensor of ``x``'s layout and pattern that stores ``new`` (one-dimensional, in the order of ``values``)."""
    if new.requires_grad and torch.is_grad_enabled():
        result: Tensor = _WithValues.apply(new, x.detach(), None)
        return result
    return _assemble(x, new)


def keys(x: Tensor) -> Tensor:
    """The row-major position of every stored value."""
    verbs = verbs_of(x)
    key = ravel(lambda d: verbs.coordinate(x, d), x.shape, range(x.dim()))
    return torch.zeros(values(x.detach()).shape[0], dtype=torch.int64, device=x.device) if key is None else key


def build_like(key: Tensor, new: Tensor, shape: Sequence[int], like: Tensor) -> Tensor:
    """A tensor of the layout of ``like`` with ``new`` at the sorted, distinct positions ``key``.

    A result that the layout cannot hold is COO, or strided if it has no dimension left.
    """
    shape = tuple(shape)
    verbs = verbs_of(like) if len(shape) == 2 else coo
    if not shape:
        verbs = strided
    result: Tensor = verbs.build(key, new.detach(), shape, like)
    if new.requires_grad and torch.is_grad_enabled():
        kept = None if result.layout in _IN_ORDER else key
        made: Tensor = _WithValues.apply(new, result, kept)
        return made
    return result


def values_at(x: Tensor, key: Tensor) -> Tensor:
    """The values of ``x`` at the positions ``key``: 0 where unspecified.  Differentiable."""
    if not is_sparse(x):
        return x.reshape(-1)[key]
    x = canonical(x)
    table, order = keys(x).sort()
    if table.numel() == 0:
        return zeros_read(values(x), key.shape)
    place, found = find(key, table)
    return torch.where(found, values(x)[order[place]], torch.zeros((), dtype=x.dtype, device=x.device))


def zeros_read(v: Tensor, shape: Any) -> Tensor:
    """What is read of ``v``, which holds nothing: zeros that autograd connects with it."""
    return v.new_zeros(shape) + v.sum(dtype=v.dtype)


def _assemble(x: Tensor, new: Tensor) -> Tensor:
    return verbs_of(x).assemble(x, new.reshape(verbs_of(x).stored_values(x).shape))


class _Values(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.pattern = x.detach()
        return verbs_of(x).stored_values(ctx.pattern).detach().reshape(-1).clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return with_values(ctx.pattern, grad)


class _WithValues(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, new: Tensor, pattern: Tensor, key: Tensor | None) -> Tensor:
        ctx.pattern, ctx.key = pattern, key
        # With a key the pattern was built from these values and may hold them in another order.
        return _assemble(pattern, new.detach()) if key is None else pattern.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        key = ctx.key
        if key is None and same_pattern(grad, ctx.pattern):
            return values(grad), None, None
        return values_at(grad, keys(ctx.pattern) if key is None else key), None, None


def same_pattern(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors store the same positions in the same order (compares indices that share no memory)."""
    if (
        a.layout is not b.layout
        or a.shape != b.shape
        or verbs_of(a).stored_values(a).shape != verbs_of(b).stored_values(b).shape
    ):
        return False
    return all(
        masks.same_memory(i, j) or torch.equal(i, j)
        for i, j in zip(verbs_of(a).indices(a), verbs_of(b).indices(b), strict=True)
    )


def to(x: Tensor, dtype: torch.dtype) -> Tensor:
    """``x`` in another dtype, layout and pattern kept."""
    return x.to(dtype) if not is_sparse(x) else with_values(x, values(x).to(dtype))


__all__ = [
    "build_like",
    "canonical",
    "is_sparse",
    "keys",
    "same_pattern",
    "to",
    "values",
    "values_at",
    "verbs_of",
    "with_values",
]
