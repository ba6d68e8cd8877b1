"""numpy's names for torch's arguments, which torch's own functions take, too: ``axis`` for ``dim``, and the like."""

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def as_torch(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which takes its arguments under numpy's names, too, and no other ``dim`` than its annotation says.

    >>> mt.sum(torch.ones(2, 3), axis=1, keepdims=True)
    tensor([[3.],
            [3.]])
    """
    names, check, called = NUMPY, check_one_dim, function.__name__
    code: Any = getattr(function, "__code__", None)
    one = function.__annotations__.get("dim") in (int, "int")
    place = code.co_varnames.index("dim") if one else len(code.co_varnames)

    def form(*args: Any, **kwargs: Any) -> Any:
        for name in names:
            if name in kwargs and names[name] not in kwargs:
                kwargs[names[name]] = kwargs.pop(name)
        if one:
            check(called, args[place] if len(args) > place else kwargs.get("dim", 0))
        return function(*args, **kwargs)

    # Its globals are those of the file that ``function`` stands in: there doctest looks for its example.
    own = FunctionType(form.__code__, function.__globals__, function.__name__, None, form.__closure__)
    result: Callable[P, R] = update_wrapper(own, function)
    return result


def check_one_dim(name: str, dim: Any) -> None:
    """Raises what torch raises of a ``dim`` that is no int."""
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
