"""Which ops a program runs."""

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class _Seen(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func._schema.name)
        return func(*args, **(kwargs or {}))


def dispatched(program: Callable[[], Any]) -> set[str]:
    """The names of the ops that ``program`` runs below autograd."""
    with _Seen() as seen:
        program()
    return seen.names
