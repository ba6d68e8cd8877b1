"""How the meanings in force are known outside of the rules: to the guards of compiled code, and to checkpoints.

While a meaning is in force, a torch function mode that does nothing stands on torch's stack of modes.  It has a class
of its own for each meaning, and Dynamo guards on the classes in the stack: what was compiled under one meaning is not
run under another.

Inside of a compiled function, entering and leaving are nodes of the graph, which take effect while it is traced.

``torch.utils.checkpoint`` runs a function again during backward, when its caller may have left the context; what runs
again is bound to the meanings of the first run.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Token
from dataclasses import replace
from functools import cache
from typing import Any

from torch.overrides import BaseTorchFunctionMode

from ..compat import bind_checkpoints, traced
from ..settings import MEANING, Meaning, Trace, current
from .dynamo import opaque


class _Entered(threading.local):
    """What this thread has entered, innermost last."""

    def __init__(self) -> None:
        self.stack: list[tuple[Token[Meaning], BaseTorchFunctionMode | None]] = []


_ENTERED = _Entered()


@cache
def _mark(meaning: Meaning) -> BaseTorchFunctionMode:
    mark: BaseTorchFunctionMode = type("Meaning", (BaseTorchFunctionMode,), {"__doc__": repr(meaning)})()
    return mark


def enter(**choices: Any) -> None:
    """Puts ``choices`` in force in this thread, beside what is in force already."""
    _push(replace(current(), **choices))


def _push(meaning: Meaning) -> None:
    mark = _mark(replace(meaning, scope=None))
    mark.__enter__()
    _ENTERED.stack.append((MEANING.set(meaning), mark))


def leave() -> None:
    """Ends what was entered last."""
    token, mark = _ENTERED.stack.pop()
    if mark is not None:
        mark.__exit__(None, None, None)
    MEANING.reset(token)


@contextmanager
def exactly(meaning: Meaning) -> Iterator[None]:
    """``meaning``, whatever is in force."""
    _push(meaning)
    try:
        yield
    finally:
        leave()


# ------------------------------------------------------------------------------------------------------- compiled code


def enter_traced(**choices: Any) -> None:
    """A node of a graph: what is traced after it has these meanings."""
    before = current()
    scope = Trace(traced(), before)
    MEANING.set(replace(before, **choices, scope=scope))


def leave_traced() -> None:
    """A node of a graph: the end of what :func:`enter_traced` began."""
    scope = current().scope
    if type(scope) is Trace:
        MEANING.set(scope.outside)


opaque(enter_traced, leave_traced)


# --------------------------------------------------------------------------------------------------------- checkpoints


def bound(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` under the meanings that are in force now, whenever it is called."""
    meaning = current()

    def run(*args: Any, **kwargs: Any) -> Any:
        if current() is meaning:
            return function(*args, **kwargs)
        with exactly(meaning):
            return function(*args, **kwargs)

    return run


bind_checkpoints(bound)
