"""``vmap`` over ops whose rules read values on the host: one call for each entry."""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from ...compat import OpOverload, tree_flatten, tree_unflatten
from ...pair import Pair
from ..tensor import MaskedTensor
from ..torch_keys import below_top, current_vmap, not_caught, transform_count, unwrap_batched, wrap_batched
from .levels import enter_level, leave_level

Part = tuple[Any, Any, int | None]  # a value, its mask if it has one, and the dimension of the entries if it has one


def top_is_vmap() -> bool:
    """Whether the innermost transform is ``vmap``."""
    return current_vmap() is not None


def run_each(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``op`` of each entry of the batch, outside of the innermost ``vmap``."""
    level = current_vmap()
    assert level is not None
    leaves, spec = tree_flatten((args, kwargs))
    parts = [_part(v, level) for v in leaves]
    size = next((v.shape[dim] for v, _, dim in parts if dim is not None), 1)
    with below_top(), not_caught() if transform_count() == 1 else nullcontext():
        results = []
        for i in range(size):
            args, kwargs = tree_unflatten([_entry(part, i) for part in parts], spec)
            results.append(tree_flatten(op(*args, **kwargs)))
        stacked = [torch.stack(entries) for entries in zip(*(found for found, _ in results), strict=True)]
    return tree_unflatten([_add_batch_level(x, level) for x in stacked], results[0][1])


def _part(value: Any, level: int) -> Part:
    if not isinstance(value, Tensor):
        return value, None, None
    if type(value) is not MaskedTensor:
        data, dim = unwrap_batched(value, level)
        return data, None, dim
    pair = enter_level(value)
    (data, dim), (mask, at) = unwrap_batched(pair.data, level), unwrap_batched(pair.mask, level)
    if dim is None and at is None:
        return data, mask, None
    size = data.shape[dim] if dim is not None else mask.shape[at or 0]
    wide = [v.expand(size, *v.shape) if d is None else v.movedim(d, 0) for v, d in ((data, dim), (mask, at))]
    return wide[0], wide[1], 0


def _entry(part: Part, i: int) -> Any:
    value, mask, dim = part
    if dim is not None:
        value, mask = value.select(dim, i), None if mask is None else mask.select(dim, i)
    return value if mask is None else leave_level(Pair(value, mask))


def _add_batch_level(x: Tensor, level: int) -> Tensor:
    if type(x) is not MaskedTensor:
        return wrap_batched(x, level)
    pair = enter_level(x)
    return leave_level(Pair(wrap_batched(pair.data, level), wrap_batched(pair.mask, level), pair.payload))
