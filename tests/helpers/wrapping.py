"""Another tensor subclass that holds a tensor of any kind."""

from typing import Any

import torch
from torch import Tensor


class Wrapper(Tensor):
    """Another subclass around a tensor, as DTensor is."""

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Wrapper":
        made: Any = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        unwrapped = torch.utils._pytree.tree_map_only(Wrapper, lambda x: x.inner, (args, kwargs or {}))
        return torch.utils._pytree.tree_map_only(Tensor, Wrapper, func(*unwrapped[0], **unwrapped[1]))
