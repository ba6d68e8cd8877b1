"""Run as a program: what importing the package changes in torch, and what the first masked tensor and setting change.

``python -m tests.helpers.importing torch.distributed.tensor ...`` imports these modules before; prints JSON: for each
stage the names of what changed, the dispatch keys and ops that are new, and what ``sys.meta_path`` waits for.
"""

import importlib
import json
import sys
from multiprocessing.reduction import ForkingPickler
from types import ModuleType
from typing import Any

import torch

#: What torch fills by itself when ops are defined, looked up or imported.
CACHES = (
    "torch._library.custom_ops.OPDEF_TO_LIB",
    "torch.jit._builtins._builtin_table",
    "torch.library._defs",
    "torch.library._impls",
    "torch.ops.",
)

FINDERS: list[Any] = []  # of ``sys.meta_path`` before the package is imported


def contents(value: Any) -> Any:
    """What a table holds, by identity."""
    return sorted(map(id, value.values() if isinstance(value, dict) else value))


def snapshot() -> dict[str, Any]:
    """Every attribute of torch's modules and classes, and what its tables hold."""
    found: dict[str, Any] = {"multiprocessing.reduction.ForkingPickler": contents(ForkingPickler._extra_reducers)}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "torch" or not isinstance(module, ModuleType):
            continue
        for attribute, value in list(vars(module).items()):
            where = f"{name}.{attribute}"
            found[where] = contents(value) if isinstance(value, dict | list | set) and attribute[:2] != "__" else value
            if isinstance(value, type) and str(value.__module__).partition(".")[0] == "torch":
                owner = f"{value.__module__}.{value.__qualname__}"
                found |= {f"{owner}.{key}": member for key, member in vars(value).items()}
    return found


def registrations() -> set[tuple[str, str]]:
    """Which op has a kernel at which dispatch key."""
    found = set()
    for key in (*torch._C.DispatchKey.__members__, "TESTING_ONLY_GenericWrapper"):  # which torch does not list
        try:
            ops = torch._C._dispatch_get_registrations_for_dispatch_key(key)
        except RuntimeError:  # no key of the dispatcher's table
            continue
        found |= {(key, op) for op in ops}
    return found


def awaited() -> list[str]:
    """What new finders in ``sys.meta_path`` wait for; of one that does not tell, its type."""
    new = [finder for finder in sys.meta_path if finder not in FINDERS]
    names = {name for finder in new for name in getattr(finder, "waiting", [type(finder).__name__])}
    return sorted(names | {"*".join(parts) for finder in new for parts in getattr(finder, "families", ())})


def everything() -> tuple[dict[str, Any], set[tuple[str, str]], set[str], list[str]]:
    return snapshot(), registrations(), set(torch._C._dispatch_get_all_op_names()), awaited()


def same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is list and type(b) is list and a == b)


def changes(before: Any, after: Any) -> dict[str, list[str]]:
    names = {name for name in before[0] | after[0] if not same(before[0].get(name), after[0].get(name))}
    return {
        "names": sorted(name for name in names if not name.startswith(CACHES)),
        "keys": sorted({key for key, op in after[1] - before[1]}),
        "ops": sorted(after[2] - before[2]),
        "finders": [name for name in after[3] if name not in before[3]],
        "gone": sorted(map(str, before[1] - after[1])) + sorted(before[2] - after[2]),
    }


def main(modules: list[str]) -> dict[str, Any]:
    for name in (*modules, "torch.nn.modules.linear_cross_entropy"):  # which this package imports, where torch has it
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            assert name == "torch.nn.modules.linear_cross_entropy"
    FINDERS[:] = sys.meta_path
    states = [everything()]
    package = importlib.import_module("masked_tensor")
    states.append(everything())
    package.masked_tensor([1.0, None])
    states.append(everything())
    with package.strict():
        pass
    states.append(everything())
    stages = ("import", "first masked tensor", "first setting")
    found = {stage: changes(*states[i : i + 2]) for i, stage in enumerate(stages)}
    if "torch._dynamo" in sys.modules:  # which torch imports there
        torch.func.grad(torch.sum)(package.masked_tensor([1.0, None]))
        found["first transform"] = changes(states[-1], everything())
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
