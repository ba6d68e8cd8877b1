"""What a user's rule returns is looked at, as far as shapes and types go: the engine believes its own rules."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from .. import errors
from ..pair import Pair


def check_results(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of the operator ``name``; TypeError for a result that is no Pair, or has a mask that cannot be."""

    @wraps(rule)
    def looked_at(*args: Any, **kwargs: Any) -> Any:
        result = rule(*args, **kwargs)
        for part in result if type(result) in (tuple, list) else (result,):
            if isinstance(part, Tensor):
                raise _bad(name, "a plain tensor")
            if type(part) is Pair and (part.mask.dtype is not torch.bool or part.mask.shape != part.data.shape):
                mask = f"{errors.dtype_name(part.mask.dtype)} {tuple(part.mask.shape)}"
                raise _bad(name, f"data {tuple(part.data.shape)} with the mask {mask}")
        return result

    return looked_at


def _bad(op: str, returned: str) -> TypeError:
    return TypeError(
        f"the rule of {op} must return a Pair (or a tuple of them) whose mask is bool and has the data's shape, it "
        f"returned {returned}"
    )
