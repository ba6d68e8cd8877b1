"""TorchScript: its functions run without its optimizer where they are given a masked tensor.

From the second call on the optimizer differentiates parts of a function by formulas of its own, below the rules of this
package.
"""

from collections.abc import Callable
from typing import Any

import torch

from ... import compat
from ...engine import torch_keys
from ...engine.tensor import MaskedTensor
from ...patches.first_use import when_first_made
from ...patches.places import TORCHSCRIPT, wrap_when_imported


def _unoptimized(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(function: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(map(_holds_masked, args)) and not any(map(_holds_masked, kwargs.values())):
            return call(function, *args, **kwargs)
        copy = torch_keys.script_copy(function)
        if hasattr(function, "owner"):
            args = function.owner, *args
        named = {a.name: a.default_value for a in function.schema.arguments[len(args) :] if a.has_default_value()}
        with torch.jit.optimized_execution(False):  # type: ignore[attr-defined]  # not in its list of names
            return torch_keys.call_script(copy, *args, **{**named, **kwargs})

    return run


def _holds_masked(given: Any) -> bool:
    nested = isinstance(given, list | tuple | dict)
    return any(map(_holds_masked, compat.tree_leaves(given))) if nested else type(given) is MaskedTensor


when_first_made(lambda: wrap_when_imported(TORCHSCRIPT, _unoptimized))
