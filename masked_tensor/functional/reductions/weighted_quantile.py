"""Quantiles of entries that have weights, as numpy's ``method="inverted_cdf"`` has them."""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from ... import masks, shapes
from ...compat import is_readable_memory
from ...pair import Pair
from ...select import select
from ..entrance import Dim, Input, Number, as_pair, as_result, enter_input, refuse_sparse, restore_dims, too_few
from .weighted import expand_weights


def quantile(
    name: str, given: Input, q: Any, dim: Dim, keepdim: bool, weights: Any, fill_value: Number | None
) -> Tensor:
    """The first valid entry, in rising order, with which ``q`` of the total weight is reached; of weight 0 is none."""
    refuse_sparse(name, given)
    heavy = enter_input(weights, name="weights")
    x, w = as_pair(given), expand_weights(as_pair(heavy), given.data, dim)
    masked = given.masked or heavy.masked
    few, dims = too_few(name, x.data.dtype, masked, fill_value), shapes.canonical_dims(dim, x.data.dim())
    levels = _levels(name, q, x.data)
    valid = masks.logical_and(masks.expand_to(x.mask, x.data.shape), w.mask)
    data, valid, weight = (_reduced_last(t, dims) for t in (x.data, valid, w.data))
    if is_readable_memory(weight) and bool((valid & (weight < 0)).any()):
        raise ValueError(f"{name}(): weights must not be negative")
    weight = select(weight.double(), valid & (weight > 0), 0)
    counts = weight > 0
    nan = counts & data.isnan() if data.is_floating_point() else torch.zeros_like(counts)
    if name == "nanquantile":
        counts = counts & ~nan
        weight, nan = select(weight, counts, 0), torch.zeros_like(nan)
    order = select(data.detach(), counts, torch.inf).argsort(stable=True, dim=-1)
    reached = weight.detach().gather(-1, order).cumsum(-1)
    if not reached.shape[-1]:
        value, some = data.new_full((*reached.shape[:-1], len(levels)), torch.nan), counts.any(-1, keepdim=True)
    else:
        reached = reached / reached[..., -1:]
        wanted = levels.expand(*reached.shape[:-1], len(levels)).contiguous()
        at = torch.searchsorted(reached.contiguous(), wanted).clamp(max=reached.shape[-1] - 1)
        value, some = data.gather(-1, order.gather(-1, at)), counts.any(-1, keepdim=True)
        value = select(value, ~nan.any(-1, keepdim=True).expand(value.shape), torch.nan)
    some = some.expand(value.shape)
    result = Pair(select(value, some, 0).movedim(-1, 0), some.movedim(-1, 0))
    several = (len(levels),) if isinstance(q, list | tuple) or (isinstance(q, Tensor) and q.dim()) else ()
    result = restore_dims(result, (*several, *shapes.reduced_shape(given.data.shape, dims, keepdim)))
    return as_result(result, masked, few.empty, fill_value)


def _levels(name: str, q: Any, data: Tensor) -> Tensor:
    levels = torch.as_tensor(q, dtype=torch.float64, device=data.device).reshape(-1)
    if is_readable_memory(levels) and not bool(((levels >= 0) & (levels <= 1)).all()):
        raise RuntimeError(f"{name}() q must be in the range [0, 1]")
    return levels


def _reduced_last(x: Tensor, dims: Sequence[int]) -> Tensor:
    """The dimensions that are reduced as one, the last."""
    kept = [d for d in range(x.dim()) if d not in dims]
    return x.permute([*kept, *dims]).reshape([*(x.shape[d] for d in kept), prod([x.shape[d] for d in dims])])
