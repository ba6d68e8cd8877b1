"""What is installed in torch when the first masked tensor of the process is made: plain tensors do not pay for it."""

from collections.abc import Callable
from threading import RLock

_ACTS: list[Callable[[], None]] = []
_LOCK = RLock()
_made = False


def when_first_made(act: Callable[[], None]) -> None:
    """Calls ``act`` before the first masked tensor is made; now, if there was one."""
    if _made:
        act()
    else:
        _ACTS.append(act)


def prepare() -> None:
    """Calls what waits; another thread waits until all of it is done."""
    global _made
    with _LOCK:
        while _ACTS:
            _ACTS.pop(0)()
        _made = True
