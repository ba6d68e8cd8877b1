"""Which argument is wrong, where a call failed with an error of Python or torch that names none.

Nothing is looked at before: a call that succeeds costs what it did.
"""

import dis
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Number, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from .keywords import hint

WRONG = (TypeError, AttributeError, LookupError, OverflowError, UnboundLocalError, AssertionError, ValueError)
_LARGEST = torch.iinfo(torch.int64).max
_KINDS: dict[Any, str] = {Callable: "a function", Mapping: "a dict", dict: "a dict"}
_PLURALS: dict[Any, str] = {Tensor: "tensors"}
_RAISE = dis.opmap["RAISE_VARARGS"]
_INSIDE = re.compile(r"to unpack|index out of range$")  #: what Python says of a tuple


def explain(function: Callable[..., Any], args: Any, kwargs: Any, error: Exception) -> None:
    """Raises a TypeError that names the first argument of a wrong type, or what to write for a keyword; or returns."""
    if isinstance(error, ValueError | IndexError) and not _INSIDE.search(str(error)):
        return
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        _explain_keyword(list(signature.parameters), kwargs, error)
        return
    kinds = _annotations(function)
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        kind: Any = kinds.get(name, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        named = re.search(rf"\b{name}\b", str(error))
        if parameter.kind is parameter.VAR_POSITIONAL:
            kind = list[kind]
        said = named and isinstance(error, TypeError | ValueError) and not _INSIDE.search(str(error))
        if said or _fits(value, kind):
            continue
        shown = f" {value!r}" if isinstance(value, int | float | str) else ""
        if name == "parameters" and hasattr(value, "parameters"):
            shown = "; use model.parameters()"
        raise TypeError(
            f"{_name(function)}: argument {name!r} must be {_words(kind)}, got {type(value).__name__}{shown}"
        ) from error


def _explain_keyword(has: Sequence[str], given: Iterable[str], error: Exception) -> None:
    """Raises what Python says of a keyword that the function does not have, with a hint, if there is one."""
    keyword = next((name for name in given if name not in has), "")
    if f"argument {keyword!r}" in str(error) and (words := hint(keyword, has)):
        raise TypeError(f"{error}; {words}") from error


def is_said(error: BaseException) -> bool:
    """Whether a ``raise`` of Python code gave the error its words: neither Python itself nor torch."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_code.co_code[at.tb_lasti] == _RAISE


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """The kinds of the parameters; a name that is there for the type checker alone stays a text, which all fit."""
    try:
        return get_type_hints(function)
    except NameError:
        return function.__annotations__


def _name(function: Callable[..., Any]) -> str:
    """As it is called: a class where it is made."""
    owner, _, name = function.__qualname__.rpartition(".")
    return f"{owner}()" if name == "__init__" else f"{name}()"


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of the kind of an annotation; of one that is not known here, yes."""
    origin, members = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_fits(value, member) for member in members)
    if origin is Literal:
        return isinstance(value, str | None) and value in members
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, Sequence) and not isinstance(value, str) and all(_fits(v, members[0]) for v in value)
    if kind is Any:
        return True
    if isinstance(value, int) and abs(value) > _LARGEST:
        return False
    if isinstance(origin, type):
        return isinstance(value, origin)
    if kind in (int, float, complex):
        return _is_number(value, kind)
    return not isinstance(kind, type) or isinstance(value, kind)


def _is_number(value: Any, kind: type) -> bool:
    if isinstance(value, Tensor) or hasattr(value, "ndim"):
        value = value.item() if value.ndim == 0 and not getattr(value, "is_meta", False) else None
    return hasattr(value, "__index__") if kind is int else isinstance(value, Real if kind is float else Number)


def _words(kind: Any) -> str:
    """An annotation as a reader says it."""
    origin, members = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(member) for member in members))
    if origin is Literal:
        return " or ".join(map(repr, members))
    if origin in _KINDS or kind is Any:
        return _KINDS.get(origin, "anything")
    if members:
        return "a list" if members[0] is Any else f"a list of {_PLURALS.get(members[0], _words(members[0]))}"
    return {type(None): "None", Tensor: "a tensor", torch.dtype: "a torch.dtype"}.get(
        kind, getattr(kind, "__name__", str(kind))
    )
