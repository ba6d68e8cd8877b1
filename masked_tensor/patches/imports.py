"""Modules that are not imported yet: one finder in ``sys.meta_path`` says when somebody imports one of them."""

import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Act = Callable[[Any], None]


class ImportFinder(MetaPathFinder):
    """Finds a module as the other finders do, and has its loader call what waits for it.  A mere search loses nothing.

    It stands in ``sys.meta_path`` while something waits.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, list[Act]] = {}

    def wait(self, name: str, act: Act) -> None:
        """Calls ``act`` with the module ``name`` once it is imported."""
        if not self.waiting:
            sys.meta_path.insert(0, self)
        self.waiting.setdefault(name, []).append(act)

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """How to import ``name``, if something waits for it."""
        if name not in self.waiting:
            return None
        others = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if finder is not self)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                for act in self.stop_waiting(name):
                    act(module)

            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 (a loader's own, which may be any object)
        return spec

    def stop_waiting(self, name: str) -> list[Act]:
        """What waited for ``name``."""
        acts = self.waiting.pop(name, [])
        if acts and not self.waiting:
            sys.meta_path.remove(self)
        return acts


FINDER = ImportFinder()


def when_imported(name: str, act: Act) -> None:
    """Calls ``act`` with the module ``name``: now if it is there, else as soon as somebody imports it."""
    if name in sys.modules:
        act(sys.modules[name])
    else:
        FINDER.wait(name, act)
