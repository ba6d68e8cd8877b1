"""The functional forms by name, and how a form takes its arguments.

A form is listed where it is defined, by one of the two decorators: ``form``, or ``as_torch`` for what takes numpy's
names for torch's arguments (``axis`` for ``dim``, and the like), as torch's own functions do.
"""

from collections.abc import Callable
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, overload

from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")
NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
OURS = frozenset(("mask", "fill_value", "min_count", "dtype", "mode"))  #: keywords that packed rules do not take
FORMS: dict[str, Callable[..., Any]] = {}  #: all that is public here


def form(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which is a functional form."""
    FORMS[function.__name__] = function
    return function


@overload
def as_torch(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def as_torch(*, packed: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def as_torch(function: Any = None, *, packed: Callable[..., Any] | None = None) -> Any:
    """A functional form that takes its arguments under numpy's names, too, and no other ``dim`` than it says.

    ``packed``: what runs instead for a packed tensor that comes without a mask: torch's function, which has a rule for
    packed tensors.

    >>> mt.sum(torch.ones(2, 3), axis=1, keepdims=True)
    tensor([[3.],
            [3.]])
    """
    if function is None:
        return partial(as_torch, packed=packed)
    names, check, called, ours = NUMPY, check_dim, function.__name__, OURS
    code: Any = getattr(function, "__code__", None)
    given = "Tensor" not in str(function.__annotations__.get("dim", "Tensor"))  # ``max(input, other)`` takes one there
    one = function.__annotations__.get("dim") in (int, "int")
    place = code.co_varnames.index("dim") if given else len(code.co_varnames)

    def call(*args: Any, **kwargs: Any) -> Any:
        for name in names:
            if name in kwargs and names[name] not in kwargs:
                kwargs[names[name]] = kwargs.pop(name)
        if given:
            check(called, args[place] if len(args) > place else kwargs.get("dim", 0), one)
        if packed is not None and args and getattr(args[0], "is_packed", False) and ours.isdisjoint(kwargs):
            return packed(*args, **kwargs)
        return function(*args, **kwargs)

    # Its globals are those of the file that ``function`` stands in: there doctest looks for its example.
    own = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return form(update_wrapper(own, function))


def check_dim(name: str, dim: Any, one: bool) -> None:
    """Raises for a mask in the place of ``dim``, and what torch raises where ``dim`` is ``one`` int and is none."""
    if isinstance(dim, Tensor) and dim.dim():
        raise TypeError(
            f"{name}(): argument 'dim' must be int or tuple of ints, not a tensor; a mask is given as mask="
        )
    if one and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
