"""Writes ``masked_tensor/functional/__init__.pyi``: what editors and type checkers know of the functional forms.

    python tools/forms.py

The signatures are those in the code; what they give depends on what they are given: masked in, masked out; plain in,
plain out.  The docstring is with the first: editors look for it here.  A test runs this and compares.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

from masked_tensor import functional

TARGET = Path(__file__).parent.parent / "masked_tensor" / "functional" / "__init__.pyi"
MASKS = {"mask", "target_mask", "input_mask", "other_mask", "key_mask"}  # plain, but in CHOOSE
CHOOSE = {"masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_", "masked_select"}
PLAIN = {"running_mean", "running_var", "attn_mask"}
HEAD = '''"""Made by tools/forms.py from the functional forms: not to be edited."""

# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false
# ruff: noqa

from collections.abc import Sequence
from typing import Literal, TypeVar, overload

import torch
from torch import Tensor

from ..engine import methods
from ..engine.tensor import MaskedTensor
from .entrance import Dim as Dim, Number as Number
'''


def text() -> str:
    """The stub, as it is written."""
    names = sorted(functional.__all__)
    own = [f"from .{home} import {name} as {name}" for home, name in _aliases()]
    lines = [HEAD + "\n".join(own), "", 'T = TypeVar("T", Tensor, MaskedTensor)', "", f"__all__ = {names!r}", ""]
    for name in names:
        variants = list(_variants(_source(name)))
        variants[0] = f'{variants[0].removesuffix(" ...")}\n    """{getattr(functional, name).__doc__}"""'
        for variant in variants:
            lines += ["@overload"] * (len(variants) > 1) + [variant]
    return "\n".join(lines) + "\n"


def _aliases() -> Iterator[tuple[str, str]]:
    """Names of literals, and the class, that signatures use."""
    yield from (("reductions.rank", "Ties"), ("series.rolling", "Closed"), ("series.rolling", "Rolling"))
    yield from (("series.filling", name) for name in ("Area", "Direction", "Lengths", "Method", "Side", "Times"))
    yield ("entrance", "Mode")


def _source(name: str) -> ast.FunctionDef:
    function = inspect.unwrap(getattr(functional, name))
    source = inspect.getsource(function)
    node = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(node, ast.FunctionDef)
    node.decorator_list = []
    if source[0] == " ":  # one of several functions that are made in one place
        gives = inspect.formatannotation(function.__annotations__["return"]).replace("torch.Tensor", "Tensor")
        node.name, node.returns = name, ast.parse(gives, mode="eval").body
    return node


def _variants(node: ast.FunctionDef) -> Iterator[str]:
    """The signature for each kind of input, and of result."""
    returns = ast.unparse(node.returns) if node.returns else "None"
    given = _inputs(node)
    named = returns.removeprefix("Tensor | ") if returns.startswith("Tensor | torch") else ""
    if node.name in ("unique", "unique_consecutive"):
        flags = {"return_inverse": "Literal[False]", "return_counts": "Literal[False]"}
        yield _signature(node, {"input": "T", **flags}, "T")
        yield _signature(node, {"input": "T"}, "tuple[T, ...]")
    elif named:  # a named tuple with a dim, and a tensor without
        if "Tensor" in _annotation(node, "dim"):  # the second of two tensors
            yield _signature(node, {"dim": "None"}, "T", {"input": "T"}, ("other",))
            yield _signature(
                node, {"input": "MaskedTensor", "dim": "int"}, _masked(named), skip=("other",), needs="dim"
            )
            yield _signature(node, {"dim": "int"}, named, skip=("other",), needs="dim")
            yield _signature(node, {"dim": "Tensor"}, "Tensor", skip=("other",), needs="dim")
            yield _signature(node, {"dim": "None", "other": "Tensor"}, "Tensor", needs="other")
        else:
            yield _signature(node, {"input": "T", "dim": "None"}, "T")
            yield _signature(node, {"input": "MaskedTensor", "dim": "int"}, _masked(named), needs="dim")
            yield _signature(node, {"dim": "int"}, named, needs="dim")
    elif returns.startswith("torch.return_types"):
        yield _signature(node, {"input": "MaskedTensor"}, _masked(returns))
        yield _signature(node, {}, returns)
    elif len(given) == 1 and "Tensor" in returns:
        yield _signature(node, dict.fromkeys(given, "T"), returns.replace("Tensor", "T"))
    elif given and "Tensor" in returns:
        yield from (_signature(node, {name: "MaskedTensor"}, _masked(returns)) for name in given)
        yield _signature(node, {}, returns)
    else:
        yield _signature(node, {}, returns)


def _inputs(node: ast.FunctionDef) -> list[str]:
    """The tensors of which a masked one makes the result masked: those that must be given."""
    needed = node.args.args[: len(node.args.args) - len(node.args.defaults)]
    if node.name.endswith("_"):  # in place: the input itself comes back
        return ["input"]
    kept = (a.arg for a in needed if a.annotation is not None and "Tensor" in ast.unparse(a.annotation))
    return [n for n in kept if n not in PLAIN and (n not in MASKS or node.name in CHOOSE)]


def _annotation(node: ast.FunctionDef, name: str) -> str:
    found = [a for a in (*node.args.args, *node.args.kwonlyargs) if a.arg == name]
    return ast.unparse(found[0].annotation) if found and found[0].annotation else ""


def _masked(kind: str) -> str:
    if kind.startswith("torch.return_types."):
        return f"methods._{kind.removeprefix('torch.return_types.')}_result"
    return kind.replace("Tensor", "MaskedTensor")


def _signature(
    node: ast.FunctionDef,
    kinds: dict[str, str],
    returns: str,
    more: dict[str, str] | None = None,
    skip: tuple[str, ...] = (),
    needs: str = "",
) -> str:
    """One line of the stub: with other annotations, without some arguments, and one of them required."""
    copy = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(copy, ast.FunctionDef)
    kinds = kinds | (more or {})
    for argument in (*copy.args.args, *copy.args.kwonlyargs):
        if argument.arg in kinds:
            argument.annotation = ast.Name(kinds[argument.arg])
    for i, argument in reversed(list(enumerate(copy.args.kwonlyargs))):
        if argument.arg in skip:
            del copy.args.kwonlyargs[i], copy.args.kw_defaults[i]
        elif argument.arg == needs:
            copy.args.kw_defaults[i] = None
    places = [a.arg for a in copy.args.args]
    if needs in places:  # and what stands before it
        copy.args.defaults = copy.args.defaults[places.index(needs) + 1 - len(places) :] if needs != places[-1] else []
    return f"def {copy.name}({ast.unparse(copy.args)}) -> {returns}: ..."


if __name__ == "__main__":
    TARGET.write_text(text())
