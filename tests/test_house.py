"""The house rules that no tool checks."""

import ast
import inspect
from pathlib import Path

import pytest

import masked_tensor as mt
from masked_tensor import testing

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "masked_tensor").rglob("*.py"))
PUBLIC = sorted(mt.__all__)


def commands(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith("pip install -c constraints.txt")]


def test_ci_runs_the_readmes_commands_word_for_word() -> None:
    readme = commands((ROOT / "README.md").read_text())
    assert len(readme) == 2
    assert commands((ROOT / ".ci/run").read_text())[:2] == readme


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_stand_at_the_top(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not inner, f"{node.name} imports: the floors are wrong"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name: str) -> None:
    thing = getattr(mt, name)
    assert ">>> " in (inspect.getdoc(thing) or ""), f"{name} needs a docstring with an example that runs"


def test_public_tools_for_tests_are_documented() -> None:
    assert all(">>> " in (inspect.getdoc(getattr(testing, name)) or "") for name in testing.__all__ if name.islower())


def test_tutorials_ask_a_question() -> None:
    for script in sorted((ROOT / "tutorials").glob("*.py")):
        question, underline, _ = (ast.get_docstring(ast.parse(script.read_text())) or "").split("\n", 2)
        assert question.endswith("?"), script.name
        assert set(underline) == {"="}, script.name
