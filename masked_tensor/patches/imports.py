"""Modules that are not imported yet: one finder in ``sys.meta_path`` reports when one of them is imported."""

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
        self.before: dict[str, list[Callable[[], object]]] = {}
        self.families: dict[tuple[str, str], Act] = {}  #: by the start of a name, and what else is in it

    def wait(self, name: str, act: Act) -> None:
        """Calls ``act`` with the module ``name`` once it is imported."""
        self.waiting.setdefault(name, []).append(act)
        self._stand()

    def wait_for_start(self, name: str, act: Callable[[], object]) -> None:
        """Calls ``act`` when ``name`` is imported, before it is there."""
        self.before.setdefault(name, []).append(act)
        self._stand()

    def wait_for_family(self, start: str, within: str, act: Act) -> None:
        """Calls ``act`` with each module whose name begins with ``start`` and holds ``within``, once it is imported."""
        self.families[start, within] = act
        self._stand()

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """How to import ``name``, if something waits for it."""
        of_family = [act for (start, within), act in self.families.items() if name.startswith(start) and within in name]
        if name not in self.waiting and name not in self.before and not of_family:
            return None
        others = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if finder is not self)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and spec.loader is not None:
            create, load = spec.loader.create_module, spec.loader.exec_module

            def create_module(spec: ModuleSpec) -> ModuleType | None:
                for act in self.before.pop(name, ()):
                    act()
                return create(spec)

            def exec_module(module: ModuleType) -> None:
                load(module)
                for act in [*self.stop_waiting(name), *of_family]:
                    act(module)

            setattr(spec.loader, "create_module", create_module)  # noqa: B010 (a loader's own, which may be any object)
            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 (the same)
        return spec

    def stop_waiting(self, name: str) -> list[Act]:
        """What waited for ``name``."""
        acts = self.waiting.pop(name, [])
        if acts and not self.waiting and not self.before and not self.families:
            sys.meta_path.remove(self)
        return acts

    def _stand(self) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)


FINDER = ImportFinder()


def when_imported(name: str, act: Act) -> None:
    """Calls ``act`` with the module ``name``: now if it is there, else as soon as it is imported."""
    if name in sys.modules:
        act(sys.modules[name])
    else:
        FINDER.wait(name, act)


def before_import(name: str, act: Callable[[], object]) -> None:
    """Calls ``act`` when ``name`` is imported, before that module exists; now, if it already exists."""
    if name in sys.modules:
        act()
    else:
        FINDER.wait_for_start(name, act)


def when_each_imported(start: str, within: str, act: Act) -> None:
    """The same for each module whose name begins with ``start`` and holds ``within``."""
    for name, module in list(sys.modules.items()):
        if name.startswith(start) and within in name:
            act(module)
    FINDER.wait_for_family(start, within, act)
