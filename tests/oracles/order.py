"""Order statistics: torch's own op on the valid entries of each slice alone."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .index import every, masked


def slices(x: Masked, dim: int | None) -> tuple[list[tuple[tuple[int, ...], list[int], Tensor]], tuple[int, ...]]:
    """(outer place, positions of the valid entries, these entries) of each slice along ``dim``; the outer shape."""
    if dim is None or x.data.dim() == 0:
        x, dim = Masked(x.data.reshape(-1), x.mask.reshape(-1)), 0
    data, mask = x.data.movedim(dim, -1), x.mask.movedim(dim, -1)
    outer = tuple(data.shape[:-1])
    return [(p, mask[p].nonzero().reshape(-1).tolist(), data[p][mask[p]]) for p in every(outer)], outer


def picked(x: Masked, dim: int, keepdim: bool, choose: Callable[[Tensor], Any]) -> tuple[Masked, Masked]:
    """``choose(valid entries)`` gives (value, index among them), or None where it is masked."""
    found, outer = slices(x, dim)
    value, mask = torch.zeros(outer, dtype=x.data.dtype), torch.zeros(outer, dtype=torch.bool)
    index = torch.zeros(outer, dtype=torch.int64)
    for place, where, entries in found:
        result = choose(entries)
        if result is not None:
            value[place], mask[place], index[place] = result[0], True, where[int(result[1])]
    if keepdim and x.data.dim():
        value, mask, index = value.unsqueeze(dim), mask.unsqueeze(dim), index.unsqueeze(dim)
    return Masked(value, mask), Masked(index, mask)


def sort(op: Any, x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Masked, Masked]:
    x = masked(x)
    found, _ = slices(x, dim)
    value, mask = torch.zeros_like(x.data), torch.zeros_like(x.mask)
    index = torch.zeros_like(x.data, dtype=torch.int64)
    ends = [v.movedim(dim, -1) if x.data.dim() else v.reshape(1) for v in (value, mask, index)]
    for place, where, entries in found:
        values, order = torch.sort(entries, descending=descending, stable=True)
        for k in range(len(entries)):
            ends[0][(*place, k)], ends[1][(*place, k)] = values[k], True
            ends[2][(*place, k)] = where[int(order[k])]
    return Masked(value, mask), Masked(index, mask)


def argsort(op: Any, x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Masked:
    return sort(op, x, dim, descending)[1]


def msort(op: Any, x: Any) -> Masked:
    return sort(op, x, 0)[0]


def kthvalue(op: Any, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return picked(masked(x), dim, keepdim, lambda v: torch.kthvalue(v, k) if k <= len(v) else None)


def median_with(plain: Callable[..., Any]) -> Callable[..., Any]:
    def oracle(op: Any, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        x = masked(x)
        if dim is None:
            valid = x.data[x.mask]
            return Masked(plain(valid) if len(valid) else x.data.new_zeros(()), torch.tensor(len(valid) > 0))
        return picked(x, dim, keepdim, lambda v: plain(v, 0) if len(v) else None)

    return oracle


ORACLES = {
    "sort": sort,
    "argsort": argsort,
    "msort": msort,
    "kthvalue": kthvalue,
    "median": median_with(torch.median),
    "nanmedian": median_with(torch.nanmedian),
}
