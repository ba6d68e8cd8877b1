"""Settings: the one kind of context manager that every choice of this package is made of.

A setting is in force from when it is entered until it is left.  ``with`` blocks may overlap, as those of coroutines and
generators do: leaving ends the use that this object began, and what was entered last and not left holds.  A task or a
copy of the context that was started inside has the setting, until it is left.

Inside of a compiled function, entering and leaving are nodes of the graph, which take effect while it is traced.
"""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import FrameType, TracebackType, coroutine
from typing import Any

import torch

from .. import compat
from ..settings import NOTHING, STACK, Entered, InGraph, Settings, in_force
from .dynamo import opaque

_TORCH = str(Path(torch.__file__).parent)
_INSTALLED: list[bool] = []  # whether checkpoints are bound: only if anything was ever entered


class Setting(ABC):
    """A context manager, and a decorator, that puts something in force; it may be entered again while it is."""

    mode: Any = None  #: a torch function mode that stands beside it

    def __init__(self) -> None:
        self._uses: list[Entered] = []

    @abstractmethod
    def change(self, before: Settings) -> Settings:
        """What is in force with it, on top of ``before``."""

    def begin(self) -> Any:
        """What ``with ... as`` gives."""
        return None

    def end(self, failed: bool) -> None:
        """What is done when it has been left, because of an error or not."""
        return

    def __enter__(self) -> Any:
        given = self.begin()
        use = Entered(self, self.change, self.mode)
        self._uses.append(use)
        resume(use)
        return given

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        here = [use for use in STACK.get() if use.owner is self and not use.left]
        use = (here or self._uses)[-1]  # a generator may be closed in another thread or task
        self._uses.remove(use)
        finish(use)
        self.end(kind is not None)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` with the setting: a generator or coroutine has it while it runs, not while it waits."""
        if inspect.isclass(function):
            raise TypeError(f"a setting decorates functions and methods, not the class {function.__name__}")
        if inspect.isasyncgenfunction(function):
            return _async_generator(self, function)
        if inspect.iscoroutinefunction(function):
            return _coroutine(self, function)
        if inspect.isgeneratorfunction(function):
            return _generator(self, function)

        @wraps(function)
        def made(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return made


# -------------------------------------------------------------------------------------- what runs and waits by turns


class _Run:
    """A generator or coroutine under a setting, from its first step to its last."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def __enter__(self) -> "_Run":
        self.setting.begin()
        self.use = Entered(self.setting, self.setting.change, self.setting.mode)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        finish(self.use)
        self.setting.end(kind is not None)


def _steps(run: _Run, inner: Any) -> Generator[Any, Any, Any]:
    """Runs ``inner`` to its end; the setting is in force from when it is resumed until it yields."""
    act, given = inner.send, None
    while True:
        resume(run.use)
        try:
            value = act(given)
        except StopIteration as end:
            return end.value
        finally:
            pause(run.use)
        try:
            act, given = inner.send, (yield value)
        except GeneratorExit:
            resume(run.use)
            try:
                inner.close()
            finally:
                pause(run.use)
            raise
        except BaseException as error:
            act, given = inner.throw, error


_awaited = coroutine(_steps)  # the same, for ``await``


def _generator(setting: Setting, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def made(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with _Run(setting) as run:
            return (yield from _steps(run, function(*args, **kwargs)))

    return made


def _coroutine(setting: Setting, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def made(*args: Any, **kwargs: Any) -> Any:
        with _Run(setting) as run:
            return await _awaited(run, function(*args, **kwargs))

    return made


def _async_generator(setting: Setting, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def made(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with _Run(setting) as run:
            generator = function(*args, **kwargs)
            act, given = generator.asend, None
            while True:
                try:
                    value = await _awaited(run, act(given))
                except StopAsyncIteration:
                    return
                try:
                    act, given = generator.asend, (yield value)
                except GeneratorExit:
                    await _awaited(run, generator.aclose())
                    raise
                except BaseException as error:
                    act, given = generator.athrow, error

    return made


# ------------------------------------------------------------------------------------------------------------ the stack


def resume(use: Entered) -> None:
    """Puts ``use`` on top of what is in force here."""
    if not _INSTALLED:
        _INSTALLED.append(True)
        compat.bind_checkpoints(in_force, bound, NOTHING)
    STACK.set((*STACK.get(), use))
    if use.mode is not None:
        compat.add_mode(use.mode)


def pause(use: Entered) -> None:
    """Takes ``use`` away here, wherever it lies; a task that was started with it still has it."""
    STACK.set(tuple(other for other in STACK.get() if other is not use and not other.over()))
    if use.mode is not None:
        compat.remove_mode(use.mode)


def finish(use: Entered) -> None:
    """Ends ``use`` everywhere."""
    use.left = True
    pause(use)


@contextmanager
def exactly(settings: Settings) -> Iterator[None]:
    """``settings``, whatever is in force: only where means are added up, and ops are counted, is as it is."""
    use = Entered(None, lambda now: replace(settings, over=now.over, reports=now.reports), settings.factories)
    resume(use)
    try:
        yield
    finally:
        finish(use)


# ------------------------------------------------------------------------------------------------------- compiled code


def enter_chosen(**choices: Any) -> None:
    """A node of a graph: what is traced after it has these meanings."""
    _enter_traced(lambda before: replace(before, meaning=replace(before.meaning, **choices)))


def enter_factories() -> None:
    """A node of a graph: what is traced after it may use the factories' mode."""
    _enter_traced(lambda before: replace(before, factories=True))


def _enter_traced(change: Callable[[Settings], Settings]) -> None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith((_TORCH, "<")):
        frame = frame.f_back  # to the function that was compiled
    resume(InGraph(change, frame))


def leave_traced() -> None:
    """A node of a graph: the end of what was entered last."""
    here = [use for use in STACK.get() if type(use) is InGraph and not use.left]
    if here:
        finish(here[-1])


opaque(enter_chosen, enter_factories, leave_traced)


# --------------------------------------------------------------------------------------------------------- checkpoints


def bound(function: Callable[..., Any], settings: Settings) -> Callable[..., Any]:
    """``function`` under ``settings``, whenever it is called; what is bound already stays so."""
    if hasattr(function, "settings"):
        return function

    def run(*args: Any, **kwargs: Any) -> Any:
        if in_force() is settings:
            return function(*args, **kwargs)
        with exactly(settings):
            return function(*args, **kwargs)

    run.settings = settings  # type: ignore[attr-defined]  # what tells it apart
    return run
