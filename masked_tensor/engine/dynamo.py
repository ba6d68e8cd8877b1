"""What Dynamo is told about this package: which calls it writes into a graph, and which frames it must leave alone.

Importing Dynamo takes longer than importing torch, so that it is told when somebody else imports it.
"""

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from .. import compat
from ..patches.imports import when_imported
from ..patches.places import DYNAMO, READ_ATTRIBUTE, wrap_when_imported
from ..settings import outside

COMPILED = "functional", "engine.contexts.decorators", "api.flat"  #: what Dynamo may compile
#: but these, which ask what a tensor stores
READING = (
    *(f"functional.series.{name}" for name in ("moving", "spans", "steps", "tokens")),
    *(f"api.flat.{name}" for name in ("call", "check", "compiled.nodes", "eager", "tokens", "verified")),
)


def mark_opaque(*functions: Callable[..., Any]) -> None:
    """Dynamo writes a call of one of these into the graph as it stands; the package's own frames it cannot follow."""
    for function in functions:
        _tell("allow_in_graph", function)


def leave_graph(function: Callable[..., Any], reason: str) -> None:
    """Dynamo ends its graph before a call of this; where it may not, its error gives the reason."""
    vars(function).update(_torchdynamo_disable=True, _torchdynamo_disable_msg=reason)


def trace_as_constant(function: Callable[..., Any]) -> None:
    """Dynamo calls this while it compiles, and takes what it gives for granted."""
    _tell("assume_constant_result", function)


def _tell(how: str, function: Callable[..., Any]) -> None:
    when_imported(DYNAMO, lambda module: getattr(module, how)(function))


def read_by_call(owner: type, name: str, method: str) -> None:
    """Dynamo compiles ``x.name`` of a tensor of class ``owner`` as ``x.method()``.

    What a property gives it takes for an attribute: one tensor, however often it is read, and whoever writes into it.
    """

    def wrap(read_attribute: Callable[..., Any]) -> Callable[..., Any]:
        def read(variable: Any, tx: Any, attribute: str) -> Any:
            if attribute == name and variable.python_type() is owner:
                return variable.call_method(tx, method, [], {})
            return read_attribute(variable, tx, attribute)

        return read

    wrap_when_imported(READ_ATTRIBUTE, wrap)


def told_settings() -> None:
    """What is being compiled depends on the settings: under others it is compiled anew."""
    if compat.current_trace() is not None:
        compat.guarded_by(outside)


def run_eagerly(package: str) -> None:
    """Marks what is defined in the package's loaded modules, save what may be compiled (``COMPILED``, ``READING``).

    Dynamo may inline the package's functions into a graph.  After a graph break it would otherwise compile their frames
    by themselves, and meet the engine at work, on tensors that are half made.  Until somebody imports it nobody asks.
    """
    loaded = dict[str, Any]()
    for name, module in list(sys.modules.items()):
        here, _, inside = name.partition(".")
        if here == package and (inside in READING or not inside.startswith(COMPILED)):
            loaded[name] = module

    def mark(_: Any) -> None:
        for name, module in loaded.items():
            for code in _codes(module, name):
                compat.run_eagerly(code)

    when_imported(DYNAMO, mark)


def _codes(owner: Any, module: str) -> Iterator[CodeType]:
    """The code of the functions, methods and closures that ``module`` defines inside of ``owner``."""
    if isinstance(owner, CodeType):
        yield owner
        yield from (code for part in owner.co_consts if isinstance(part, CodeType) for code in _codes(part, module))
        return
    for part in vars(owner).values():
        part = getattr(part, "fget", None) or getattr(part, "__func__", part)
        home = str(getattr(part, "__module__", ""))
        if isinstance(part, FunctionType) and home == module:
            yield from _codes(part.__code__, module)
        elif isinstance(part, type) and home in (module, module.partition(".")[0]):  # where users find it
            yield from _codes(part, module)
