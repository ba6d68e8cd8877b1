"""numpy's names for torch's arguments, ``axis`` for ``dim`` and ``keepdims`` for ``keepdim``, in methods of ours."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def takes_axis(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which takes ``axis`` for ``dim``, as torch's own functions do.

    >>> mt.masked_tensor([[1.0, None]]).count(axis=1, keepdims=True)
    tensor([[1]])
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs and "dim" not in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs and "keepdim" not in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        return function(*args, **kwargs)

    result: Callable[P, R] = call
    return result
