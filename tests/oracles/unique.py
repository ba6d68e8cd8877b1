"""Distinct values and histograms: the plain op on the valid entries alone."""

import builtins
from typing import Any

import torch

from ..helpers.harness import Masked
from .index import masked


def unique(op: Any, x: Any, **kwargs: Any) -> Any:
    """The valid entries; with ``dim`` the slices, of which those without a valid entry are dropped."""
    x, dim = masked(x), kwargs.pop("dim", None)
    if dim is not None:
        return distinct_slices(x, dim, op is torch.unique_consecutive, **kwargs)
    result = op(x.data[x.mask], **kwargs)
    if not isinstance(result, tuple):
        return result
    parts = list(result)
    if kwargs.get("return_inverse"):
        inverse = torch.zeros(x.data.shape, dtype=torch.int64)
        inverse[x.mask] = parts[1]
        parts[1] = Masked(inverse, x.mask)
    return tuple(parts)


def distinct_slices(
    x: Masked, dim: int, runs: bool, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """A slice is its values, with 0 where it is masked, and its validity; sorted by the values first."""
    data, mask = x.data.movedim(dim, 0), x.mask.movedim(dim, 0)
    keys = [
        (*torch.where(m, d, 0).reshape(-1).tolist(), *m.reshape(-1).tolist()) for d, m in zip(data, mask, strict=True)
    ]
    kept = [i for i in range(len(data)) if mask[i].any()]
    if runs:
        kinds = [i for k, i in enumerate(kept) if not k or keys[i] != keys[kept[k - 1]]]
        inverse = [sum(i <= j for i in kinds) - 1 for j in range(len(data))]
    else:
        kinds = [next(i for i in kept if keys[i] == key) for key in builtins.sorted({keys[i] for i in kept})]
        order = [keys[i] for i in kinds]
        inverse = [order.index(k) if i in kept else 0 for i, k in enumerate(keys)]
    found = Masked(data[kinds].movedim(0, dim), mask[kinds].movedim(0, dim))
    where = Masked(torch.tensor(inverse, dtype=torch.int64), mask.flatten(1).any(1) if mask.dim() > 1 else mask)
    counts = torch.tensor([sum(inverse[i] == k for i in kept) for k in range(len(kinds))], dtype=torch.int64)
    parts = [found, *([where] if return_inverse else []), *([counts] if return_counts else [])]
    return parts[0] if len(parts) == 1 else tuple(parts)


def histogram(op: Any, x: Any, bins: Any, *, weight: Any = None, **kwargs: Any) -> Any:
    x, edges = masked(x), bins.data if isinstance(bins, Masked) else bins
    keep = x.mask if weight is None else x.mask & masked(weight).mask
    hist, found = op(x.data[keep], edges, weight=None if weight is None else masked(weight).data[keep], **kwargs)
    if not isinstance(bins, Masked):
        return hist, found
    return Masked(hist, known_bins(bins, kwargs)), Masked(found, bins.mask)


def known_bins(edges: Any, kwargs: Any) -> Any:
    """Between two valid edges; for a density the outermost must be, too."""
    known = edges.mask[1:] & edges.mask[:-1]
    return known & edges.mask[0] & edges.mask[-1] if kwargs.get("density") else known


def histogramdd(op: Any, x: Any, bins: Any, *, weight: Any = None, **kwargs: Any) -> Any:
    x, edges = masked(x), [b.data if isinstance(b, Masked) else b for b in bins]
    keep = x.mask.all(-1) if weight is None else x.mask.all(-1) & masked(weight).mask
    hist, found = op(x.data[keep], edges, weight=None if weight is None else masked(weight).data[keep], **kwargs)
    if not any(isinstance(b, Masked) for b in bins):
        return hist, found
    known = [known_bins(masked(b), kwargs) for b in bins]
    valid = torch.stack(torch.meshgrid(*known, indexing="ij")).all(0)
    return Masked(hist, valid), [Masked(e, masked(b).mask) for e, b in zip(found, bins, strict=True)]


def histc(op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    x = masked(x)
    return op(x.data[x.mask], *args, **kwargs)


def bincount(op: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    x = masked(x)
    keep = x.mask if weights is None else x.mask & masked(weights).mask
    return op(x.data[keep], None if weights is None else masked(weights).data[keep], minlength)


ORACLES = {
    "unique": unique,
    "unique_consecutive": unique,
    "histogram": histogram,
    "histogramdd": histogramdd,
    "histc": histc,
    "bincount": bincount,
}
XFAIL = {
    (name, "compiled"): "the length of the result, or a check of q, depends on the data"
    for name in ("bincount", "histc", "histogram", "histogramdd", "unique", "unique_consecutive")
}
