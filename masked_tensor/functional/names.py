"""numpy's names for torch's arguments, which torch's own functions take, too: ``axis`` for ``dim``, and the like."""

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")
NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def as_torch(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which takes its arguments under numpy's names, too, and no other ``dim`` than its annotation says.

    >>> mt.sum(torch.ones(2, 3), axis=1, keepdims=True)
    tensor([[3.],
            [3.]])
    """
    names, check, called = NUMPY, check_dim, function.__name__
    code: Any = getattr(function, "__code__", None)
    given = "Tensor" not in str(function.__annotations__.get("dim", "Tensor"))  # ``max(input, other)`` takes one there
    one = function.__annotations__.get("dim") in (int, "int")
    place = code.co_varnames.index("dim") if given else len(code.co_varnames)

    def form(*args: Any, **kwargs: Any) -> Any:
        for name in names:
            if name in kwargs and names[name] not in kwargs:
                kwargs[names[name]] = kwargs.pop(name)
        if given:
            check(called, args[place] if len(args) > place else kwargs.get("dim", 0), one)
        return function(*args, **kwargs)

    # Its globals are those of the file that ``function`` stands in: there doctest looks for its example.
    own = FunctionType(form.__code__, function.__globals__, function.__name__, None, form.__closure__)
    result: Callable[P, R] = update_wrapper(own, function)
    return result


def check_dim(name: str, dim: Any, one: bool) -> None:
    """Raises for a mask in the place of ``dim``, and what torch raises where ``dim`` is ``one`` int and is none."""
    if isinstance(dim, Tensor) and dim.dim():
        raise TypeError(
            f"{name}(): argument 'dim' must be int or tuple of ints, not a tensor; a mask is given as mask="
        )
    if one and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
