"""The public names, with their parameters: ``python -m tests.names`` writes them into ``tests/public_names.txt``."""

import enum
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import masked_tensor as mt
from masked_tensor.api.python.other_names import Elsewhere

FILE = Path(__file__).parent / "public_names.txt"
SUBMODULES = (
    "extend",
    "extend.masks",
    "extend.data",
    "extend.libraries",
    "extend.means",
    "extend.ranks",
    "testing",
    "plot",
)  # what functional has is at the top level
HOMES = {"plot": "api.display.plot"}  #: where the module of that name stands
#: Classes that users do not make; of some only these members are public.
GIVEN: dict[type, tuple[str, ...]] = {mt.MaskedTensor: (), mt.extend.Packed: ("inner", "pair", "shape", "values")}


def parameters(thing: Any) -> str:
    """Names, kinds and defaults; types are those of the stubs, and every Python writes them in its own way."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


def kind_of(thing: Any) -> str:
    """What it is, with its parameters if it is called."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return f"error, a {', '.join(base.__name__ for base in thing.__bases__)}"
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        return f"enum {', '.join(thing.__members__)}"
    if inspect.isclass(thing):
        return "class" if thing in GIVEN else f"class {parameters(thing)}"
    if isinstance(thing, ModuleType):
        return "module"
    if isinstance(thing, property):
        return "property"
    return parameters(thing) if callable(thing) else "attribute"


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """What a class has beside what its bases have."""
    inherited = {name for base in kind.__mro__[1:] for name in dir(base)}
    for name in sorted(GIVEN.get(kind) or set(vars(kind)) - inherited):
        member = inspect.getattr_static(kind, name)
        if not name.startswith("_") and not isinstance(member, Elsewhere):
            yield name, member


def lines() -> Iterator[str]:
    """One for each public name."""
    for home in ("", *SUBMODULES):
        module: Any = mt if not home else import_module(f"masked_tensor.{HOMES.get(home, home)}")
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            full = f"{home}.{name}" if home else name
            yield f"{full} {kind_of(thing)}".rstrip()
            if inspect.isclass(thing) and not issubclass(thing, enum.Enum):
                yield from (f"{full}.{member} {kind_of(value)}".rstrip() for member, value in members(thing))


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
