"""What editors and type checkers know of the package."""

import ast
import functools
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

import masked_tensor as mt

from .helpers.pinned import with_pinned

ROOT = Path(__file__).parent.parent
EVERYDAY = ROOT / "tests" / "everyday.py"
STUB = ROOT / "masked_tensor" / "engine" / "methods.pyi"


def test_everyday_lines_run(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EVERYDAY))
    assert capsys.readouterr().out


@with_pinned
def test_the_stub_of_the_functional_forms_is_what_the_tool_makes() -> None:
    stub = ROOT / "masked_tensor" / "functional" / "__init__.pyi"
    assert stub.read_text() == runpy.run_path(str(ROOT / "tools" / "forms.py"))["text"]()


@with_pinned
def test_the_stub_is_what_the_tool_makes() -> None:
    assert STUB.read_text() == runpy.run_path(str(ROOT / "tools" / "stub.py"))["text"]()


@functools.cache
def methods() -> dict[str, str]:
    """The methods of the stub that need no argument, and what they are said to give."""
    body = next(n for n in ast.parse(STUB.read_text()).body if getattr(n, "name", "") == "Methods").body
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.returns is not None and not node.name.startswith("_"):
            needed = len(node.args.args) - len(node.args.defaults) - 1
            if needed == 0 and all(d is not None for d in node.args.kw_defaults):
                found[node.name] = ast.unparse(node.returns)
    return found


@pytest.mark.filterwarnings("ignore:torch.(cholesky|qr|symeig|lu|geqrf).* is deprecated")  # once per process
@pytest.mark.parametrize("name", methods())
def test_a_method_gives_what_the_stub_says(name: str) -> None:
    for x in (
        mt.masked_tensor([[1.0, None], [0.5, 0.25]]),
        mt.masked_tensor([[1, None], [2, 3]]),
        mt.masked_tensor([True, None]),
    ):
        try:
            result: Any = getattr(x, name)()
        except (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError, IndexError):
            continue
        if methods()[name] == "MaskedTensor":
            assert type(result) is mt.MaskedTensor
        elif methods()[name] == "Tensor":
            assert isinstance(result, torch.Tensor)
            assert type(result) is not mt.MaskedTensor
