"""Writes ``masked_tensor/engine/methods.pyi``: what editors and type checkers know of a masked tensor's methods.

    python tools/stub.py

Every method and operator that torch's own stub types as giving a Tensor gives a MaskedTensor, save those in ``PLAIN``;
the package's own methods are those that it gives the class, with their docstrings.  A test runs this and compares.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import torch

from masked_tensor.api.batches import packing, unbatch
from masked_tensor.api.leave import convert
from masked_tensor.api.make import hard_mask
from masked_tensor.engine.tensor import MaskedTensor

TARGET = Path(__file__).parent.parent / "masked_tensor" / "engine" / "methods.pyi"
PLAIN = {  # what is plain even for a masked tensor
    "col_indices", "ccol_indices", "crow_indices", "row_indices", "indices", "_indices", "new", "new_tensor",
    "nonzero", "masked_select", "bincount", "histc",
}  # fmt: skip
BUILTIN = re.compile(r"\b(int|float|bool|complex)\b")  # in the class these are methods
OWN = (convert, unbatch, hard_mask, packing)
IN_PYTHON = """
    # Methods of torch's that are written in Python, and have no types there.
    def detach(self) -> MaskedTensor: ...
    def detach_(self) -> MaskedTensor: ...
    def norm(
        self, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: _dtype | None = None
    ) -> MaskedTensor: ...
    def split(self, split_size: Any, dim: int = 0) -> tuple[MaskedTensor, ...]: ...
    def unique(
        self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any: ...
    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any: ...
    def unflatten(self, dim: Any, sizes: Any) -> MaskedTensor: ...
    def __iter__(self) -> Iterator[MaskedTensor]: ...
    def __reversed__(self) -> MaskedTensor: ...
    def __setitem__(self, indices: Any, value: Any) -> None: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]: ...
    def __arrow_c_schema__(self) -> Any: ...
    @property
    def is_packed(self) -> bool: ...
    @property
    def mask(self) -> Tensor: ...
    def __neg__(self) -> MaskedTensor: ...
    def __pos__(self) -> MaskedTensor: ...
    def __abs__(self) -> MaskedTensor: ...
"""
BINARY = ("pow", "rpow", "ipow", "rsub", "rdiv", "truediv", "rtruediv", "itruediv", "mod", "rmod", "floordiv")
BINARY += ("rfloordiv", "rmatmul", "rlshift", "rrshift")


def text() -> str:
    """The stub, as it is written."""
    home = Path(torch.__file__).parent
    source = ast.parse((home / "_C" / "__init__.pyi").read_text())
    tuples = ast.parse((home / "return_types.pyi").read_text()).body
    returned = {n.name: n for n in tuples if isinstance(n, ast.ClassDef)}
    base = next(n for n in source.body if isinstance(n, ast.ClassDef) and n.name == "TensorBase")
    body = [*_attributes(base), *_methods(base)]
    results = sorted({name for line in body for name in returned if f"_{name}_result" in line.split("->")[-1]})
    classes = [_result(returned[name]) for name in results]
    methods = textwrap.indent("\n".join(body), "    ")
    own = textwrap.indent("\n".join(_own()), "    ") + _renamed(IN_PYTHON)
    operators = [f"    def __{name}__(self, other: Any) -> MaskedTensor: ..." for name in BINARY]
    lines = "\n".join([*classes, "class Methods(Tensor):", methods, own.rstrip(), *operators]) + "\n"
    return f"{_head()}{_imports(source, lines)}\n\n{lines}"


def _head() -> str:
    return (
        '"""Made by tools/stub.py from torch\'s own stub: not to be edited."""\n\n'
        '# mypy: disable-error-code="override, assignment, misc, overload-overlap, overload-cannot-match"\n'
        '# mypy: disable-error-code="attr-defined, type-arg"\n'
        "# pyright: basic, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false\n"
        "# pyright: reportPrivateImportUsage=false\n"
        "# ruff: noqa\n\n"
    )


def _imports(source: ast.Module, lines: str) -> str:
    """torch's own imports, as far as the stub uses them."""
    words = {n.id for n in ast.walk(ast.parse(lines)) if isinstance(n, ast.Name)} | {"Callable", "Iterator", "Any"}
    kept = ["import torch", "from torch import Tensor, memory_format", "from .tensor import MaskedTensor"]
    kept += ["from torch.nn.utils.rnn import PackedSequence", "_Index = Any"]
    for node in source.body:
        if isinstance(node, ast.ImportFrom) and node.module != "torch._C":
            names = [a for a in node.names if (a.asname or a.name) in words - {"Tensor"}]
            if names:
                kept.append(ast.unparse(ast.ImportFrom(node.module, names, node.level)))
        elif isinstance(node, ast.Import):
            kept += [f"import {a.name}" for a in node.names if a.name in words and a.name != "torch"]
    inner = sorted(words & {"Generator", "Size", "Storage", "TensorBase"})
    if inner:
        kept.append(f"from torch._C import {', '.join(inner)}")
    return "\n".join(dict.fromkeys(kept)) + "\n"


def _attributes(base: ast.ClassDef) -> Iterator[str]:
    for node in base.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) in ("Tensor", "Tensor | None"):
            name = ast.unparse(node.target)
            if not name.startswith("_"):
                yield f"{name}: {_masked(ast.unparse(node.annotation))}"


def _methods(base: ast.ClassDef) -> Iterator[str]:
    """Every method of which an overload gives tensors, on one line each."""
    groups: dict[str, list[ast.FunctionDef]] = {}
    for node in base.body:
        if isinstance(node, ast.FunctionDef):
            groups.setdefault(node.name, []).append(node)
    for name, nodes in groups.items():
        elsewhere = name.strip("_") in BINARY or f"def {name}(" in IN_PYTHON
        tensors = any("Tensor" in _returns(n) or "return_types" in _returns(n) for n in nodes)
        if elsewhere or name in PLAIN or not tensors:
            continue
        for node in nodes:
            if node.decorator_list:
                yield from (f"@{ast.unparse(d)}" for d in node.decorator_list)
            yield f"def {name}({ast.unparse(node.args)}) -> {_masked(_returns(node))}: ..."


def _returns(node: ast.FunctionDef) -> str:
    if isinstance(node.returns, ast.Constant):  # in quotes, as what may be missing when the package is imported
        return str(node.returns.value)
    return ast.unparse(node.returns) if node.returns else "None"


def _masked(kind: str) -> str:
    if kind.startswith("torch.return_types."):
        return f"_{kind.removeprefix('torch.return_types.')}_result"
    return kind.replace("Tensor", "MaskedTensor")


def _result(node: ast.ClassDef) -> str:
    """A named tuple of torch's, with masked tensors in it."""
    lines = [f"class _{node.name}_result({', '.join(_masked(ast.unparse(b)) for b in node.bases)}):"]
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and any(ast.unparse(d) == "property" for d in part.decorator_list):
            lines += ["    @property", f"    def {part.name}(self) -> {_masked(_returns(part))}: ..."]
    return "\n".join(lines)


def _own() -> Iterator[str]:
    """The methods that this package gives the class: their own signatures, without the first parameter."""
    for module in OWN:
        for node in ast.parse(inspect.getsource(module)).body:
            function = getattr(module, node.name) if isinstance(node, ast.FunctionDef) else None
            if function is not None and getattr(MaskedTensor, node.name, None) is function:
                node.args.args[0] = ast.arg("self")
                yield _renamed(f"def {node.name}({ast.unparse(node.args)}) -> {_returns(node)}:")
                yield textwrap.indent(f'"""{inspect.getdoc(function)}\n"""', "    ")  # which editors show


def _renamed(types: str) -> str:
    """Python's own types under the names that they have inside of the class."""
    return BUILTIN.sub(r"_\g<0>", types)


if __name__ == "__main__":
    TARGET.write_text(text())
