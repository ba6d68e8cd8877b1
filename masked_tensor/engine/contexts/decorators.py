"""A setting as a decorator: a generator or coroutine has it while it runs, not while it waits.

Dynamo may compile these wrappers, unlike other code of the package: what they call is the user's.
"""

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from types import TracebackType, coroutine
from typing import Any, Protocol

from ...settings import Entered, Settings
from .stack import finish, pause, resume


class Decorates(Protocol):
    """What a decorator asks of a setting."""

    mode: Any

    def begin(self) -> Any: ...
    def change(self, before: Settings) -> Settings: ...
    def end(self, failed: bool) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def decorate(setting: Decorates, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with the setting."""
    if inspect.isasyncgenfunction(function):
        return _async_generator(setting, function)
    if inspect.iscoroutinefunction(function):
        return _coroutine(setting, function)
    if inspect.isgeneratorfunction(function):
        return _generator(setting, function)

    @wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        setting.__enter__()  # no ``with``, by which Dynamo enters only what the compiled function made
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            setting.__exit__(type(error), error, error.__traceback__)
            raise
        setting.__exit__(None, None, None)
        return result

    return made


class _Run:
    """A generator or coroutine under a setting, from its first step to its last."""

    def __init__(self, setting: Decorates) -> None:
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


def _generator(setting: Decorates, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def made(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with _Run(setting) as run:
            return (yield from _steps(run, function(*args, **kwargs)))

    return made


def _coroutine(setting: Decorates, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def made(*args: Any, **kwargs: Any) -> Any:
        with _Run(setting) as run:
            return await _awaited(run, function(*args, **kwargs))

    return made


def _async_generator(setting: Decorates, function: Callable[..., Any]) -> Callable[..., Any]:
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
