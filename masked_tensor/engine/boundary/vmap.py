"""What ``vmap`` lacks: composite ops that mean more under a mask than their parts do, and values as integers.

Under ``vmap`` torch takes a composite op apart before a rule can see it: a weighted mean would be a sum divided by the
full size, a covariance a product of matrices.  A kernel at torch's own batching key runs the rule once for each entry
of the batch, as torch does with every op that has no batching rule.  Plain tensors still take torch's way, and the
kernels are registered only when the first masked tensor is made.

Rules that put values in order see them as integers; torch 2.11 has no batching rule for that, and gets one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...compat import OpOverload, tree_flatten, tree_unflatten, unwrap_transforms
from ...patches.first_use import when_first_made
from .. import table, torch_keys
from ..tensor import MaskedTensor


def _kernel(op: OpOverload) -> Callable[..., Any]:
    def batched(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        if not any(_holds_masked(v) for v in leaves):
            return op.decompose(*args, **kwargs)
        level = torch_keys.transform_level()
        with torch_keys.below_vmap():
            parts = [torch_keys.unwrap_batched(v, level) if isinstance(v, Tensor) else (v, None) for v in leaves]
            results = []
            for i in range(next(v.shape[dim] for v, dim in parts if dim is not None)):
                args, kwargs = tree_unflatten([v if dim is None else v.select(dim, i) for v, dim in parts], spec)
                results.append(op(*args, **kwargs))
            stacked = torch.stack(results)
        return torch_keys.wrap_batched(stacked, level)

    return batched


def view_batched(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The batching rule of ``x.view(dtype)``: the entries lie along the first dimension, which must not change."""
    level = torch_keys.transform_level()
    with torch_keys.below_vmap():
        data, dim = torch_keys.unwrap_batched(x, level)
        if dim is None:
            return data.view(dtype)
        if data.dim() == 1:
            data.new_empty(()).view(dtype)  # torch's own error where one number has another size than the other
        viewed = data.movedim(dim, 0).view(dtype)
    return torch_keys.wrap_batched(viewed, level)


def _holds_masked(value: Any) -> bool:
    return isinstance(value, Tensor) and type(unwrap_transforms(value)) is MaskedTensor


def follow(entry: table.Entry) -> None:
    """Has ``vmap`` call the entry once for each entry of the batch, if its op says so."""
    if entry.op.batched and entry.kind == "functional":
        kernel = _kernel(entry.overload)
        when_first_made(partial(torch_keys.register, entry.overload.name(), kernel, torch_keys.VMAP))


for _entry in table.ENTRIES.values():
    follow(_entry)

if not torch_keys.has_batching_rule(torch.ops.aten.view.dtype):
    when_first_made(partial(torch_keys.register, "aten::view.dtype", view_batched, torch_keys.VMAP))
