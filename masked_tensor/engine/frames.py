"""Dynamo may inline this package's functions into a graph, but must not compile their frames by themselves.

After a graph break it would otherwise meet the engine at work, on tensors that are half made.
"""

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from .. import compat


def run_eagerly(package: str) -> None:
    """Marks what is defined in the package's loaded modules, save the functional forms, which may be compiled."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and not name.startswith(f"{package}.functional"):
            for code in _codes(module, name):
                compat.run_eagerly(code)


def _codes(owner: Any, module: str) -> Iterator[CodeType]:
    """The code of the functions, methods and closures that ``module`` defines inside of ``owner``."""
    if isinstance(owner, CodeType):
        yield owner
        yield from (code for part in owner.co_consts if isinstance(part, CodeType) for code in _codes(part, module))
        return
    for part in vars(owner).values():
        part = getattr(part, "fget", None) or getattr(part, "__func__", part)
        if getattr(part, "__module__", None) == module:
            if isinstance(part, FunctionType):
                yield from _codes(part.__code__, module)
            elif isinstance(part, type):
                yield from _codes(part, module)
