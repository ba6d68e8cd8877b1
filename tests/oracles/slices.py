"""Slices of a masked tensor, one by one: the helper of the oracles that reduce, scan or sort along dimensions."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked

Dim = int | Sequence[int] | None


def dims_of(x: Masked, dim: Dim) -> list[int]:
    """``dim`` as a sorted list of non-negative dims; None and () mean all."""
    ndim = x.data.dim()
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(ndim))
    return sorted({d % max(ndim, 1) for d in ([dim] if isinstance(dim, int) else dim)} & set(range(ndim)))


def slices(x: Masked, dims: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Tensor, Tensor]]:
    """For every output of a reduction over ``dims``: its place, and the flat data and mask of its slice."""
    kept = [d for d in range(x.data.dim()) if d not in dims]
    for place in itertools.product(*(range(x.data.shape[d]) for d in kept)):
        data, mask = x.data, x.mask
        for d, i in sorted(zip(kept, place, strict=True), reverse=True):
            data, mask = data.select(d, i), mask.select(d, i)
        yield place, data.reshape(-1), mask.reshape(-1)


def reduced(
    x: Masked, dim: Dim, keepdim: bool, f: Callable[[Tensor], Tensor], more_than: float | None = None
) -> Masked:
    """``f`` of the valid elements of every slice; valid where their number exceeds ``more_than`` and 0.

    A slice that has no elements at all is valid, too.
    """
    dims = dims_of(x, dim)
    shape = [size for d, size in enumerate(x.data.shape) if d not in dims]
    dtype = f(torch.ones(9, dtype=x.data.dtype)).dtype
    data, valid = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=torch.bool)
    for place, values, mask in slices(x, dims):
        values = values[mask]
        if values.numel() > max(0, more_than or 0) or mask.numel() == 0:
            data[place], valid[place] = f(values), True
    if keepdim:
        full = [1 if d in dims else size for d, size in enumerate(x.data.shape)]
        data, valid = data.reshape(full), valid.reshape(full)
    return Masked(data, valid)


def located(x: Masked, dim: Dim, keepdim: bool, f: Callable[[Tensor], Tensor]) -> Masked:
    """As ``reduced`` for an ``f`` that names a position: the position among *all* elements of the slice."""
    numbered = Masked(torch.arange(x.data.numel()).reshape(x.data.shape), x.mask)
    dims = dims_of(x, dim)
    if x.data.dim() == 0:
        return Masked(torch.zeros((), dtype=torch.int64), x.mask)
    flat = {place: (values, mask) for place, values, mask in slices(x, dims)}
    result = reduced(numbered, dim, False, lambda v: v[0])
    for place, (values, mask) in flat.items():
        if mask.any():
            result.data[place] = mask.nonzero()[f(values[mask]), 0]
    shape = [1 if d in dims else size for d, size in enumerate(x.data.shape)] if keepdim else result.data.shape
    return Masked(result.data.reshape(shape), result.mask.reshape(shape))


def scanned(x: Masked, dim: int, f: Callable[[Tensor], Tensor]) -> Masked:
    """``f`` of the valid elements of every line, put back in their places."""
    dtype = f(torch.ones(1, dtype=x.data.dtype)).dtype
    if x.data.dim() == 0:
        return Masked(f(x.data.reshape(1))[0], x.mask)
    data = torch.zeros(x.data.shape, dtype=dtype)
    lines = data.movedim(dim, -1)
    for place, values, mask in slices(x, [dim % x.data.dim()]):
        lines[place][mask] = f(values[mask])
    return Masked(data, x.mask)


def masked(x: Any) -> Masked:
    return x if isinstance(x, Masked) else Masked(x, torch.ones(x.shape, dtype=torch.bool))
