"""TorchScript: its functions run without its optimizer where they are given a masked tensor.

From the second call on the optimizer differentiates parts of a function by formulas of its own, below the rules of this
package.
"""

import re
from collections.abc import Callable
from typing import Any

import torch

from ... import compat, errors
from ...engine import torch_keys
from ...engine.tensor import MaskedTensor
from ...patches.first_use import when_first_made
from ...patches.places import TORCHSCRIPT, wrap_when_imported

_NAMES = "|".join(
    name for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, Exception)
)
_OWN = re.compile(rf"^RuntimeError: ({_NAMES}): (.*?)(?:\n\nAt:\n.*)?\s*\Z", re.MULTILINE | re.DOTALL)


def _unoptimized(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(function: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(map(_holds_masked, args)) and not any(map(_holds_masked, kwargs.values())):
            return call(function, *args, **kwargs)
        copy = torch_keys.script_copy(function)
        if hasattr(function, "owner"):
            args = function.owner, *args
        named = {a.name: a.default_value for a in function.schema.arguments[len(args) :] if a.has_default_value()}
        try:
            with torch.jit.optimized_execution(False):  # type: ignore[attr-defined]  # not in its list of names
                return torch_keys.call_script(copy, *args, **{**named, **kwargs})
        except RuntimeError as error:
            own = _own_error(str(error))
            if own is None:
                raise
            raise own from error

    return run


def _own_error(text: str) -> Exception | None:
    """The error of this package that TorchScript wrapped in its traceback: it keeps the class's name and the words."""
    found = _OWN.search(text)
    return None if found is None else getattr(errors, found[1])(found[2])


def _holds_masked(given: Any) -> bool:
    nested = isinstance(given, list | tuple | dict)
    return any(map(_holds_masked, compat.tree_leaves(given))) if nested else type(given) is MaskedTensor


when_first_made(lambda: wrap_when_imported(TORCHSCRIPT, _unoptimized))
