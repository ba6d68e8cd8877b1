"""Parts of the package that are loaded on first use: which name is in which.

A satellite imports the top level and ``extend`` alone, as a package of somebody else would.
"""

import sys
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..patches.imports import before_import

#: The module of each name of the top level; a module that has no such name is meant itself.
HOMES = {
    "LastValid": "stats.last_valid",
    "RunningStatistics": "stats.running",
    "balanced_batches": "train.batching",
    "mean_over": "train.mean_over",
    "testing": "testing",
    "total": "train.total",
}

#: Libraries, and the file of ``integrations`` that is loaded before they are.
LIBRARIES = {
    **{name: name for name in ("accelerate", "ignite", "lightning", "monai", "open_clip", "pytorch_metric_learning")},
    **{name: name for name in ("sentence_transformers", "soft_moe_pytorch", "tensordict", "torch_geometric")},
    **{name: name for name in ("torchcrf", "torchmetrics", "transformers")},
    "lightning_fabric": "lightning",
    "pytorch_lightning": "lightning",
}

#: Modules that moved: pickles of before name them.
_MOVED = {
    "api.statistics": "stats",
    "sklearn.scaler": "stats.sklearn",
    "api.batching": "train.batching",
    "api.distributed.mean_over": "train.mean_over",
    "api.losses.total": "train.total",
}


def load(name: str) -> Any:
    """What a name of the top level stands for; it is found there from now on."""
    top = __name__.partition(".")[0]
    module = import_module(f"{top}.{HOMES[name]}")
    found = getattr(module, name, module)
    setattr(sys.modules[top], name, found)
    return found


def watch_libraries() -> None:
    """Has each integration loaded as soon as its library is imported; now, if it is there."""
    for library, name in LIBRARIES.items():
        before_import(library, partial(import_module, f"{__name__.partition('.')[0]}.integrations.{name}"))


class _Moved(MetaPathFinder, Loader):
    """Finds a module by the path that it had before: another module with what it has."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if self._new_name(name) is None:
            return None
        return ModuleSpec(name, self, is_package=name.rpartition(".")[2] in ("statistics",))

    def exec_module(self, module: ModuleType) -> None:
        new = import_module(str(self._new_name(module.__name__)))
        vars(module).update({name: value for name, value in vars(new).items() if not name.startswith("__")})

    def _new_name(self, name: str) -> str | None:
        top = __name__.partition(".")[0]
        for old, new in _MOVED.items():
            if f"{name}.".startswith(f"{top}.{old}."):
                return f"{top}.{new}{name.removeprefix(f'{top}.{old}')}"
        return None


sys.meta_path.append(_Moved())
