"""Triton's interpreter, faster: it searches Triton's language anew for each function that a kernel calls."""

import inspect
from typing import Any


def search_once() -> None:
    """Of each module and class the search is kept; what is patched already, because its caller is, stays as it is."""
    from triton.runtime import interpreter  # which is not there where these tests are only collected

    found: dict[Any, list[tuple[str, Any]]] = {}

    def patch_builtin(owner: Any, builder: Any, scope: Any) -> None:
        if owner not in found:
            members = inspect.getmembers(owner)
            found[owner] = [(name, x) for name, x in members if interpreter.tl.core.is_builtin(x)]
        if all(getattr(owner, name) is x for name, x in found[owner][:1]):
            for name, x in found[owner]:
                interpreter._patch_attr(owner, name, x, builder, scope)

    interpreter._patch_builtin = patch_builtin
