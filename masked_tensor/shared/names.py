"""How a function of ours accepts its arguments: also under numpy's names, with an error that names a wrong one."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .arguments import WRONG, explain, is_said

P = ParamSpec("P")
R = TypeVar("R")


def names_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, whose error names the argument that has not the type of its annotation.

    >>> mt.total(torch.tensor(1.0), weights=2.0)
    Traceback (most recent call last):
    TypeError: total(): argument 'weights' must be a list of float or a tensor or None, got float 2.0
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except WRONG as error:
            if not is_said(error):
                explain(function, args, kwargs, error)
            raise

    return call


def takes_axis(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` with such errors, which takes numpy's ``axis`` for ``dim`` and ``keepdims`` for ``keepdim``.

    So do torch's own functions.

    >>> mt.masked_tensor([[1.0, None]]).count(axis=1, keepdims=True)
    tensor([[1]])
    """

    checked: Callable[..., R] = names_arguments(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> R:
        if "axis" in kwargs and "dim" not in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs and "keepdim" not in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        return checked(*args, **kwargs)

    result: Callable[P, R] = call
    return result
