"""Users' names of operators, and the dispatcher's operators that they stand for.

``torch.einsum``, ``nn.Conv1d``, ``F.mse_loss``, ``"x.sum"``, ``"@"``: a function of torch's own in Python is read for
the operators that its code names, a module for those of its ``forward``.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...compat import schema
from ...engine import table

SPACES = (functional, torch, Tensor, torch.linalg, torch.special, torch.fft, nn)
PREFIXES = ("", "linalg_", "special_", "fft_")
SYMBOLS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder", "**": "pow", "@": "matmul",
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "~": "bitwise_not", "<<": "bitwise_left_shift", ">>": "bitwise_right_shift", "[]": "index",
}  # fmt: skip
DUNDERS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "getitem": "index", "setitem": "index_put",
    "invert": "bitwise_not", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "radd": "add",
    "rsub": "sub", "rmul": "mul", "rtruediv": "div", "rpow": "pow", "rmatmul": "matmul",
}  # fmt: skip


def known_operators() -> set[str]:
    """The operators with a row, without the namespace of torch's own."""
    return {schema(e.overload).name.removeprefix("aten::") for e in table.ENTRIES.values()}


def operators_of(op: Any) -> list[str]:
    """The names of the operators with a row that ``op`` calls, most telling first; none if it has no such part."""
    names = known_operators()
    if isinstance(op, str):
        plain = _strip_namespace(op)
        found = _row(plain, names)
        if found or composite_of(op):
            return [found] if found else []
        return _follow_names(_object(plain), names)
    return _follow_names(op, names)


def composite_of(op: Any) -> str | None:
    """The operator of torch's without a rule that ``op`` is, if there is one: torch composes it of others."""
    name = _strip_namespace(op) if isinstance(op, str) else _name(op)
    return next((p + name for p in PREFIXES if name.isidentifier() and hasattr(torch.ops.aten, p + name)), None)


def module_of(op: Any) -> bool:
    """Whether ``op`` names a module or is one."""
    op = _object(_strip_namespace(op)) if isinstance(op, str) else op
    return isinstance(op, nn.Module) or (inspect.isclass(op) and issubclass(op, nn.Module))


def function_of(op: Any) -> Callable[..., Any] | None:
    """What is called for ``op``, a name or the function or module itself."""
    found = _object(_strip_namespace(op)) if isinstance(op, str) else op
    return found if callable(found) and not inspect.isclass(found) else None


def _strip_namespace(op: str) -> str:
    op = SYMBOLS.get(op.strip(), op.strip().removesuffix("()"))
    if op.endswith("]") and "[" in op:
        return SYMBOLS["[]"]
    name = op.rpartition(".")[2] if "::" not in op and op.partition(".")[0] in _MODULES else op
    dunder = name.strip("_") if name.startswith("__") else ""
    return DUNDERS.get(dunder, dunder) or DUNDERS.get(name, name)


_MODULES = ("torch", "nn", "F", "Tensor", "x", "mt", "masked_tensor", "linalg", "special", "functional")


def _row(name: str, names: set[str]) -> str | None:
    return next((prefix + name for prefix in PREFIXES if prefix + name in names), None)


def _object(name: str) -> Any:
    return next((getattr(space, name) for space in SPACES if hasattr(space, name)), None)


def _name(op: Any) -> str:
    """How a function is called; some of torch's know their name only by where they stand."""
    for space in (functional, torch):
        for name, value in vars(space).items():
            if value is op:
                return name
    return getattr(op, "__name__", "").removeprefix("linalg_").removeprefix("special_").removeprefix("fft_")


def _follow_names(op: Any, names: set[str]) -> list[str]:
    if op is None:
        return []
    if isinstance(op, nn.Module):
        op = type(op)
    found = None if inspect.isclass(op) else _row(_strip_namespace(_name(op)), names)
    if found or (not inspect.isclass(op) and composite_of(op)):
        return [found] if found else []
    called = list(dict.fromkeys(_called_operators(op, names, set())))
    telling = [name for name in called if not _is_view(name)]
    return telling or called


def _called_operators(op: Any, names: set[str], seen: set[Any]) -> Iterator[str]:
    """The operators that the code names, and those that the functions and methods it names do."""
    for code in _codes(op):
        if code in seen or len(seen) > 40:
            continue
        seen.add(code)
        for name in (*code.co_names, *_codes_inside(code)):
            if name in names:
                yield name
            elif hasattr(functional, name):
                yield from _called_operators(getattr(functional, name), names, seen)
            elif inspect.isclass(op) and inspect.isfunction(getattr(op, name, None)):
                yield from _called_operators(getattr(op, name), names, seen)


def _codes(op: Any) -> list[Any]:
    function: Callable[..., Any] | None = getattr(op, "forward", None) if inspect.isclass(op) else op
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
    return [] if code is None else [code]


def _codes_inside(code: Any) -> list[str]:
    return [name for part in code.co_consts if inspect.iscode(part) for name in part.co_names]


def _is_view(name: str) -> bool:
    return any(e.view for e in table.ENTRIES.values() if schema(e.overload).name == f"aten::{name}")
