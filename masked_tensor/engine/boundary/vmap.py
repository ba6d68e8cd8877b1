"""``vmap`` over the composite ops whose masked meaning is more than that of their parts: one call per entry.

Under ``vmap`` torch takes a composite op apart before a rule can see it: a weighted mean would be a sum divided by the
full size, a covariance a product of matrices.  A kernel at torch's own batching key runs the rule once for each entry
of the batch, as torch does with every op that has no batching rule.  Plain tensors still take torch's way, and the
kernels are registered only when the first masked tensor is made.
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

_LIBRARIES: dict[str, torch.library.Library] = {}


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


def _holds_masked(value: Any) -> bool:
    return isinstance(value, Tensor) and type(unwrap_transforms(value)) is MaskedTensor


def follow(entry: table.Entry) -> None:
    """Has ``vmap`` call the entry once for each entry of the batch, if its op says so."""
    if entry.op.batched and entry.kind == "functional":
        when_first_made(partial(_register, entry.overload))


def _register(op: OpOverload) -> None:
    namespace, _, name = op.name().partition("::")
    if namespace not in _LIBRARIES:
        _LIBRARIES[namespace] = torch.library.Library(namespace, "IMPL")  # lives as long as the process
    _LIBRARIES[namespace].impl(name, _kernel(op), torch_keys.VMAP)


for _entry in table.ENTRIES.values():
    follow(_entry)
