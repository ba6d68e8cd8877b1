"""What a compiled graph depends on besides its inputs: the package's code, users' rules, the meanings in force.

A graph that was cached, on disk or in memory, when one of them was another is not reused.
"""

import hashlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from ...op import Op
from ...settings import current

_RULES: list[str] = []  # one digest for each rule that was registered


def digest() -> str:
    """The digest of all that."""
    return hashlib.sha256(f"{_package()} {_RULES} {current()}".encode()).hexdigest()


def add_rule(op: Op) -> None:
    """A user's rule: its op, its code, and the file it stands in, where its helpers stand."""
    digest = hashlib.sha256(f"{op.name} {sorted(op.params.items())} {op.sparse and op.sparse.name}".encode())
    for part in _parts(op.rule):
        digest.update(part)
    _RULES.append(digest.hexdigest())


def _parts(rule: Callable[..., Any]) -> Iterator[bytes]:
    function = inspect.unwrap(rule)
    yield from _code(getattr(function, "__code__", None))
    defaults = getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)
    yield repr(defaults).encode()
    yield repr([cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]).encode()
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    if Path(file).is_file():
        yield Path(file).read_bytes()


def _code(code: CodeType | None) -> Iterator[bytes]:
    if code is not None:
        yield code.co_code + repr((code.co_names, code.co_varnames)).encode()
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from _code(constant)
            else:
                yield repr(constant).encode()


@cache
def _package() -> str:
    digest = hashlib.sha256()
    for file in files():
        digest.update(file.read_bytes())
    return digest.hexdigest()


def files() -> list[Path]:
    """The files of the package, in any room of which a rule's meaning may stand."""
    return sorted(Path(inspect.getfile(Op)).parent.rglob("*.py"))
