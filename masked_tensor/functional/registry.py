"""The functional forms by name, and how a form takes its arguments.

A form is listed where it is defined, by one of the two decorators: ``form``, or ``as_torch`` for what takes numpy's
names for torch's arguments (``axis`` for ``dim``, and the like), as torch's own functions do.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, overload

from torch import Tensor

from ..engine.boundary import lengths
from ..engine.boundary.packed import any_packed
from ..packing.lengths import lost
from ..packing.lengths_table import FORM_KINDS
from ..shared.arguments import WRONG, explain
from .wording import complete

P = ParamSpec("P")
R = TypeVar("R")
NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
OURS = frozenset(("mask", "fill_value", "min_count", "dtype", "mode"))  #: keywords that packed rules do not take
FORMS: dict[str, Callable[..., Any]] = {}  #: all that is public here


def form(function: Callable[P, R]) -> Callable[P, R]:
    """A functional form: where it fails the error names the argument, and what is packed keeps its lengths."""
    code: Any = getattr(function, "__code__", None)
    keep, packed, wrong, explained = keep_of_form, any_packed, WRONG, explain

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except wrong as error:
            explained(function, args, kwargs, error)
            raise
        if packed(args) or (kwargs and packed(kwargs.values())):
            return keep(function.__name__, code.co_varnames, args, kwargs, result)
        return result

    listed: Callable[P, R] = _listed(call, function)
    return listed


def row(
    make: Callable[..., Callable[P, Any]],
    *facts: Any,
    numpy: bool = True,
    packed: Callable[..., Any] | None = None,
    **more: Any,
) -> Callable[[Callable[[], R]], Callable[P, R]]:
    """One of several forms with the same arguments: ``make(name, *facts, **more)`` is its function.

    What is decorated gives it a name, a docstring and the kind of its result. ``packed`` as :func:`as_torch` has it;
    without ``numpy`` it is a :func:`form`, whose arguments have torch's names alone.
    """

    def listed(said: Any) -> Any:
        function: Any = make(said.__name__, *facts, **more)
        function.__name__, function.__qualname__, function.__module__ = said.__name__, said.__name__, said.__module__
        function.__doc__, function.__annotations__["return"] = said.__doc__, said.__annotations__["return"]
        return as_torch(packed=packed)(function) if numpy else form(function)

    return listed


def _listed(call: Any, function: Any) -> Any:
    """``call`` in the place of ``function``: with the globals of that file, where doctest looks for its example."""
    place = vars(sys.modules[function.__module__])
    own = FunctionType(call.__code__, place, function.__name__, None, call.__closure__)
    FORMS[function.__name__] = update_wrapper(own, function)
    if "mask" in (function.__kwdefaults__ or ()):
        code = function.__code__
        own.__doc__ = complete(function.__doc__, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return own


@overload
def as_torch(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def as_torch(*, packed: Callable[..., Any] | None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def as_torch(function: Any = None, *, packed: Callable[..., Any] | None = None) -> Any:
    """A functional form that also accepts its arguments under numpy's names, and no other ``dim`` than it says.

    ``packed``: what runs instead for a packed tensor that comes without a mask: torch's function, which has a rule for
    packed tensors.

    >>> mt.sum(torch.ones(2, 3), axis=1, keepdims=True)
    tensor([[3.],
            [3.]])
    """
    if function is None:
        return partial(as_torch, packed=packed)
    names, check, called, ours, keep = NUMPY, check_dim, function.__name__, OURS, keep_of_form
    wrong, explained = WRONG, explain
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
        try:
            if getattr(args[0] if args else kwargs.get("input"), "is_packed", False):
                if packed is not None and args and ours.isdisjoint(kwargs):
                    return packed(*args, **kwargs)
                return keep(called, code.co_varnames, args, kwargs, function(*args, **kwargs))
            return function(*args, **kwargs)
        except wrong as error:
            explained(function, args, kwargs, error)
            raise

    return _listed(call, function)


def keep_of_form(name: str, names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Any:
    """The result of a form that was given packed tensors, with their lengths."""
    given = dict(zip(names, args, strict=False)) | kwargs
    return lengths.keep(FORM_KINDS.get(name, lost), given, result)


def check_dim(name: str, dim: Any, one: bool, ways: str = "a mask is given as mask=") -> None:
    """Raises for a mask in the place of ``dim``, and what torch raises where ``dim`` is ``one`` int and is none."""
    if isinstance(dim, Tensor) and dim.dim():
        raise TypeError(f"{name}(): argument 'dim' must be int or tuple of ints, not a tensor; {ways}")
    if one and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
