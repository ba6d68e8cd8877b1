"""The arguments of a call without their values: what Dynamo can hand on while it compiles."""

from typing import Any

import torch
from torch import Tensor

from ....compat import tree_map


def described(given: Any, batch: Tensor) -> Any:
    """Arguments without values, which Dynamo can hand on: ``(what, dtype, device, sizes)`` for a tensor.

    Of ``batch``, which is flat, and of what has its tokens the first two sizes are left out.
    """

    def describe(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x if isinstance(x, (bool, int, float, str)) else None
        same = x.dim() > 1 and x.shape[:2] == batch.shape[:2]
        what = "batch" if x is batch else "tokens" if same else "other"
        return what, x.dtype, x.device, tuple(x.shape[2:] if same else x.shape)

    return tree_map(describe, given)


def is_description(x: Any) -> bool:
    return type(x) is tuple and len(x) == 4 and x[0] in ("batch", "tokens", "other") and isinstance(x[1], torch.dtype)
