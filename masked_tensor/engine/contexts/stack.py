"""The stack of settings: what enters and leaves it, in ordinary code, compiled code and checkpoints.

Inside of a compiled function, entering and leaving are nodes of the graph, which take effect while it is traced.

``torch.utils.checkpoint`` runs a function again during backward, when its caller may have left the context; what runs
again is bound to the settings of the first run.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import get_ident
from typing import Any

from ... import compat
from ...callers import TORCH_FILES, first_caller
from ...patches import functions
from ...settings import NOTHING, STACK, Entered, InGraph, Settings, in_force
from ..dynamo import mark_opaque

_INSTALLED: list[bool] = []  # whether checkpoints are bound: only if anything was ever entered


def resume(use: Entered) -> None:
    """Puts ``use`` on top of what is in force here."""
    if not _INSTALLED:
        _INSTALLED.append(True)
        functions.bind_checkpoints(in_force, bind, NOTHING)
    STACK.set((*STACK.get(), use))
    if use.mode is not None and get_ident() not in use.threads:
        use.threads.append(get_ident())
        use.mode.__enter__()


def pause(use: Entered) -> None:
    """Takes ``use`` away here, wherever it lies; a task that was started with it still has it."""
    STACK.set(tuple(other for other in STACK.get() if other is not use and not other.over()))


def finish(use: Entered) -> None:
    """Ends ``use`` everywhere; its mode stays on the stacks of other threads, where it does nothing."""
    use.left = True
    pause(use)
    if use.threads and get_ident() in use.threads:
        compat.remove_mode(use.mode)


@contextmanager
def exactly(settings: Settings) -> Iterator[None]:
    """``settings``, whatever is in force: only where means are added up, and ops are counted, is as it is."""
    use = Entered(None, lambda now: replace(settings, over=now.over, reports=now.reports), settings.factories)
    flat = Entered(None, lambda now: now, settings.flat)  # that it has a mode of its own
    resume(use)
    resume(flat)
    try:
        yield
    finally:
        finish(flat)
        finish(use)


# ------------------------------------------------------------------------------------------------------- compiled code


def enter_chosen(**choices: Any) -> None:
    """A node of a graph: what is traced after it has these meanings."""
    _enter_traced(lambda before: replace(before, meaning=replace(before.meaning, **choices)))


def enter_factories() -> None:
    """A node of a graph: what is traced after it may use the factories' mode."""
    _enter_traced(lambda before: replace(before, factories=True))


def _enter_traced(change: Callable[[Settings], Settings]) -> None:
    function, _ = first_caller((TORCH_FILES, __file__, "<"))  # that was compiled
    resume(InGraph(change, function))


def leave_traced() -> None:
    """A node of a graph: the end of what was entered last."""
    here = [use for use in STACK.get() if type(use) is InGraph and not use.left]
    if here:
        finish(here[-1])


mark_opaque(enter_chosen, enter_factories, leave_traced)


# --------------------------------------------------------------------------------------------------------- checkpoints


def bind(function: Callable[..., Any], settings: Settings) -> Callable[..., Any]:
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
