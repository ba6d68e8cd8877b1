"""Counting values: only valid entries are counted, compared and put into bins; ``unique`` drops masked entries.

The lengths of these results depend on the data, as they do in torch.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload
from ..errors import expect_shape
from ..op import Op, ops
from ..pair import Pair
from ..select import select, zero_masked
from ..sparse.rules import in_row_order, runs


def valid_entries(x: Pair | Tensor) -> Tensor:
    """The valid entries, 1-D."""
    return x.data[x.mask] if type(x) is Pair else x


def unique(
    op: OpOverload, x: Pair, sorted: bool = True, return_inverse: bool = False, *counted: bool
) -> tuple[Pair, ...]:
    """``unique`` of the flattened tensor; the inverse (second result) is masked where ``x`` is."""
    values, inverse, *counts = op(valid_entries(x), sorted, return_inverse, *counted)
    found = _scatter_inverse(inverse, x.mask) if return_inverse else pair.plain_pair(inverse)
    return pair.plain_pair(values), found, *(pair.plain_pair(c) for c in counts)


def _scatter_inverse(inverse: Tensor, mask: Tensor) -> Pair:
    """The inverse of the valid entries, in their places."""
    places = torch.zeros(mask.shape, dtype=inverse.dtype, device=inverse.device)
    return Pair(places.masked_scatter(mask, inverse), mask)


def unique_consecutive(
    x: Pair, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Pair, ...]:
    """Runs of equal valid entries, masked ones left out; with ``dim`` runs of equal slices."""
    if dim is None:
        values, inverse, counts = torch.unique_consecutive(valid_entries(x), True, True)
        nothing = pair.plain_pair(inverse.new_empty(0))
        where, number = _scatter_inverse(inverse, x.mask), pair.plain_pair(counts)
        return pair.plain_pair(values), where if return_inverse else nothing, number if return_counts else nothing
    op = torch.ops.aten.unique_dim_consecutive.default
    return unique_dim(op, x, dim, return_inverse=return_inverse, return_counts=return_counts)


def unique_dim(op: OpOverload, x: Pair, dim: int, *args: Any, **kwargs: Any) -> tuple[Pair, ...]:
    """Slices are equal if they are valid at the same places and equal there; fully masked slices are dropped."""
    rest = [d for d in range(x.data.dim()) if d != dim % x.data.dim()]
    kept = masks.any(x.mask, rest) if rest else x.mask
    where = kept.nonzero().squeeze(1)
    values = zero_masked(x).index_select(dim, where).movedim(dim, 0)
    mask = x.mask.index_select(dim, where).movedim(dim, 0)
    shape, width = values.shape[1:], math.prod(values.shape[1:])
    rows = torch.cat([values.reshape(-1, width), mask.reshape(-1, width).to(values.dtype)], 1)
    found, inverse, counts = op(rows, 0, *args, **kwargs)
    parts = found[:, :width].contiguous(), found[:, width:] != 0
    data, valid = (t.reshape(-1, *shape).movedim(0, dim) for t in parts)
    # On a GPU torch leaves the inverse empty that was not asked for.
    whole = inverse.numel() == where.numel()
    places = _scatter_inverse(inverse, kept) if whole else pair.plain_pair(inverse)
    return Pair(data, valid, x.payload), places, pair.plain_pair(counts)


def histc(x: Pair, bins: int = 100, min: float = 0, max: float = 0) -> Pair:
    """``torch.histc``."""
    return pair.plain_pair(torch.histc(valid_entries(x), bins, min, max))


def histogram(
    op: OpOverload, x: Pair | Tensor, bins: Any = 100, *, weight: Any = None, **kwargs: Any
) -> tuple[Pair, Pair]:
    """``torch.histogram``: an entry counts if it and its weight are valid; a bin is valid if both its edges are."""
    entries, weights = _bin_weights(x, weight)
    edges, known = _rising_edges(bins) if type(bins) is Pair else (bins, None)
    hist, found = op(entries, edges, weight=weights, **kwargs)
    if known is None:
        return pair.plain_pair(hist), pair.plain_pair(found)
    return Pair(hist, _known_bins(known, kwargs.get("density", False))), Pair(found, known)


def _rising_edges(edges: Pair) -> tuple[Tensor, Tensor]:
    """Edges with the nearest valid ones in place of those that are masked; and which are valid."""
    below = select(edges.data, edges.mask, -math.inf).cummax(0).values
    above = select(edges.data, edges.mask, math.inf).flip(0).cummin(0).values.flip(0)
    near = torch.where(below == -math.inf, above, below)
    near = torch.where(near == math.inf, 0, near)  # of which none is valid
    return torch.where(edges.mask, edges.data, near), edges.mask


def _known_bins(edges: Tensor, density: bool) -> Tensor:
    """Which bins are known between edges of which these are valid; a density is of all between the outermost."""
    inner = masks.logical_and(edges[1:], edges[:-1])
    return masks.logical_and(inner, (edges[0] & edges[-1]).expand(inner.shape)) if density else inner


def _bin_weights(x: Pair | Tensor, weight: Pair | Tensor | None) -> tuple[Tensor, Tensor | None]:
    if weight is None:
        return valid_entries(x), None
    x, weight = pair.as_pair(x), pair.as_pair(weight)
    mask = masks.logical_and(x.mask, weight.mask)
    return x.data[mask], weight.data[mask]


def histogramdd(
    op: OpOverload,
    x: Pair | Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Pair | Tensor | None = None,
    density: bool = False,
) -> tuple[Pair, list[Pair]]:
    """``torch.histogramdd``: a point counts if all its coordinates and its weight are valid; bins as in histogram."""
    points, values = pair.as_pair(x), None
    if points.data.dim() < 2:
        raise RuntimeError(
            f"histogramdd: the input must have at least two dimensions, got shape {tuple(points.data.shape)}"
        )
    mask = masks.all(points.mask, -1)
    if weight is not None:
        heavy = pair.as_pair(weight)
        mask = masks.logical_and(mask, heavy.mask)
        values = heavy.data[mask]
    if isinstance(bins, int) or not any(type(b) is Pair for b in bins):
        hist, found = op(points.data[mask], bins, range, values, density)
        return pair.plain_pair(hist), [pair.plain_pair(e) for e in found]
    edges, known = zip(*(_rising_edges(pair.as_pair(b)) for b in bins), strict=True)
    hist, found = op(points.data[mask], edges, range, values, density)
    valid = masks.full(hist.shape, hist.device)
    for d, mine in enumerate(known):
        shape = [1] * len(known)
        shape[d] = -1
        valid = masks.logical_and(valid, masks.expand_to(_known_bins(mine, density).reshape(shape), hist.shape))
    return Pair(hist, valid), [Pair(e, mine) for e, mine in zip(found, known, strict=True)]


def bincount(x: Pair | Tensor, weights: Pair | Tensor | None = None, minlength: int = 0) -> Pair:
    """``torch.bincount``."""
    if pair.data_of(x).dim() != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None:
        expect_shape("weights", pair.data_of(weights), pair.data_of(x).shape)
    entries, weight = _bin_weights(x, weights)
    return pair.plain_pair(torch.bincount(entries, weight, minlength))


OPS = [
    *ops("_unique _unique2", unique, generic=True, sparse=in_row_order),
    Op("unique_consecutive", unique_consecutive, sparse=runs),
    *ops("unique_dim unique_dim_consecutive", unique_dim, generic=True),
    Op("histc", histc, each=True, sparse=in_row_order),
    Op("histogram", histogram, generic=True, each=True),
    Op("histogramdd", histogramdd, generic=True),
    Op("bincount", bincount),
]
