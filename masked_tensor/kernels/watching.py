"""Which kernel served a call, and why another did not, for ``explain``."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from .. import settings
from .table import ANY, KERNELS, MISSING, Kernel

#: Tell more while a call is watched, such as what is compiled; those of a device are added with its kernels.
TELLERS: list[Callable[[list[str]], AbstractContextManager[None]]] = []


@contextmanager
def watched() -> Iterator[list[str]]:
    """While it lasts, a line for each kernel that is asked.  The table looks for it in no other call."""
    lines: list[str] = []
    before = dict(KERNELS)
    for (name, device), kernel in before.items():
        KERNELS[name, device] = _watch(kernel, f"{name}, on {'any device' if device == ANY else device}", lines)
    try:
        with ExitStack() as stack:
            for teller in TELLERS:
                stack.enter_context(teller(lines))
            yield lines
    finally:
        KERNELS.update(before)
        lines += [f"none on {device}: {why}" for device, why in MISSING.items()]


def _watch(kernel: Kernel, said: str, lines: list[str]) -> Kernel:
    def serves(*given: Any) -> str | None:
        least = getattr(settings, kernel.least) if kernel.least else 0
        if given[0].numel() < least:
            why: str | None = f"of fewer than {least} elements the formula costs less"
        else:
            why = None if kernel.serves is None else kernel.serves(*given)
        lines.append(f"{said}: {'serves' if why is None else 'does not serve: ' + why}")
        return why

    other = None if kernel.otherwise is None else _watch(kernel.otherwise, said, lines)
    return replace(kernel, serves=serves, least="", otherwise=other)
