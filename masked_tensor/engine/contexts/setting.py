"""Settings: the one kind of context manager behind every choice in this package.

A setting is in force from when it is entered until it is left.  ``with`` blocks may overlap, as those of coroutines and
generators do: leaving ends the use that this object began, and what was entered last and not left holds.  A task or a
copy of the context that was started inside has the setting, until it is left.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch

from ...settings import STACK, Entered, Settings
from .decorators import decorate
from .stack import finish, leave_traced, resume


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
        try:
            self._uses.append(use)
            resume(use)
            return given
        except BaseException:  # an interrupt: who did not get inside will not leave
            finish(use)
            self._uses[:] = [other for other in self._uses if other is not use]
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        here = [use for use in STACK.get() if use.owner is self and not use.left]
        uses = here or self._uses  # a generator may be closed in another thread or task
        if not uses:
            raise RuntimeError("a setting was left more often than entered; write `with` or a decorator")
        use = uses[-1]
        finish(use)  # first: who is interrupted here may leave it again by hand
        self._uses.remove(use)
        self.end(kind is not None)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` with the setting: a generator or coroutine has it while it runs, not while it waits."""
        if inspect.isclass(function) or isinstance(function, torch.nn.Module):
            kind = f"the class {function.__name__}" if inspect.isclass(function) else "a module"
            raise TypeError(
                f"a setting decorates functions and methods, not {kind}: decorate its forward, or use `with` where it "
                "is called"
            )
        return decorate(self, function)


class TraceableSetting(Setting):
    """A setting that Dynamo can write into a graph: what is traced after ``enter_traced`` has it."""

    @abstractmethod
    def enter_traced(self) -> None:
        """Puts it in force in the graph."""

    def __enter__(self) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            return super().__enter__()
        return self.enter_traced()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not torch.compiler.is_dynamo_compiling():
            super().__exit__(kind, error, traceback)
            return
        if self.mode is not None:
            self.mode.__exit__(kind, error, traceback)
        leave_traced()
