"""The code in the README and in the pages of the documentation runs, and says what is true."""

import ast
import doctest
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LIBRARY = re.compile(r"(?:^>>> (?:import|from) |# needs )(\w+)", re.MULTILINE)
WIDEST = 88  # what a page shows without cutting it off
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _runs_here(page: Path) -> bool:
    """The README runs by itself; extending.md registers operators, once in a process: tests/test_extending.py."""
    return page.name not in ("README.md", "extending.md") and BLOCK.search(page.read_text()) is not None


OTHERS = dict.fromkeys(
    ("flat.md", "using.md", "keras.md", "streams.md", "compiling.md"), pytest.mark.filterwarnings("default")
)  # they warn about themselves
RUN = [pytest.param(p, id=p.name, marks=OTHERS.get(p.name, ())) for p in PAGES[1:] if _runs_here(p)]
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", RUN)
def test_code_on_a_page_runs(page: Path) -> None:
    """Each block in a namespace of its own, after the first blocks of the page, of its section and of its part alone.

    A part whose packages are missing is left out, and named.
    """
    text, missing, outer = page.read_text(), set[str](), list[str]()
    for section in re.split(r"^(?=#{1,3} )", text, flags=re.MULTILINE):
        outer = outer if section.startswith("###") else BLOCK.findall(section)[:1]
        if absent := {library for library in LIBRARY.findall(section) if find_spec(library) is None}:
            missing |= absent
            continue
        blocks = BLOCK.findall(section)
        for code in blocks:
            torch.manual_seed(0)
            namespace = dict[str, Any]()
            for part in dict.fromkeys((BLOCK.findall(text)[0], *outer, blocks[0], code)):
                namespace = _run(part, namespace, f"{page.name}: {section.splitlines()[0].lstrip('# ')}")
    if missing:
        pytest.skip(f"ran, but for the sections that need {', '.join(sorted(missing))}")


def test_each_block_of_the_readme_runs_alone() -> None:
    """In a new interpreter, to which nothing is given; what a comment says is printed is printed."""
    blocks = BLOCK.findall(PAGES[0].read_text())
    assert len(PRINTED.findall("\n".join(blocks))) == sum(code.count("print(") for code in blocks) > 0
    for code in blocks:
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == PRINTED.findall(code)


def test_the_readme_is_short() -> None:
    assert len(PAGES[0].read_text().splitlines()) <= 90


def test_the_readme_counts_operators_and_libraries() -> None:
    """As the sweep over torch's operators, and the page of libraries, which are made from what was run."""
    text = " ".join(PAGES[0].read_text().split())
    last = (ROOT / "tests/score.md").read_text().splitlines()[-1]
    entries, forward, differentiable, backward, *_, without = map(int, re.findall(r"\d+", last))
    assert f"{forward} of the {entries - without} operators" in text
    assert f"of the {differentiable} differentiable ones, {backward} also work backward" in text
    libraries = re.search(r"functions of (\d+) libraries", (ROOT / "docs/libraries.md").read_text())
    assert libraries is not None
    assert f"from {libraries[1]} libraries" in text


def test_the_readme_links_to_pages() -> None:
    """Relative to the repository; the start page of the site includes it, and finds them in its own folder."""
    links = re.findall(r"\]\(([^)]*)\)", PAGES[0].read_text())
    assert len(links) >= 7
    page = re.compile(r"docs/\w+\.md|tutorials/README\.rst")
    assert [link for link in links if not page.fullmatch(link) or not (ROOT / link).exists()] == []


def _run(code: str, namespace: dict[str, Any], name: str) -> dict[str, Any]:
    """Runs a block, as a doctest if it shows results, and gives the names for the next."""
    if ">>>" not in code:
        exec(compile(code, name, "exec"), namespace)
        return namespace
    test = doctest.DocTestParser().get_doctest(code, namespace, name, name, 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False).failed == 0
    return test.globs


def test_the_gradient_is_nan_and_is_not_as_the_first_page_says() -> None:
    plain, masked = BLOCK.findall((ROOT / "docs/why.md").read_text())[:2]
    namespace = dict[str, Any]()
    exec(plain, namespace)
    assert namespace["loss"].isfinite()
    assert namespace["model"].weight.grad.isnan().all()
    exec(masked, namespace)
    torch.testing.assert_close(namespace["model"].weight.grad, torch.full((1, 3), 2 * _error(namespace)))


def _error(namespace: dict[str, Any]) -> float:
    return (namespace["model"](namespace["x"])[0] - namespace["target"][0]).item()


CODE = re.compile(r"^```\w*\n(.*?)^```$|^( {4}[^\n]*)$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(r"^```\{(?:include|index|image)\}.*?^```$", re.MULTILINE | re.DOTALL)  # holds no code
SHOWN = [*sorted((ROOT / "tutorials").rglob("*.py")), *sorted((ROOT / "masked_tensor").rglob("*.py"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_on_a_page_is_not_cut_off(page: Path) -> None:
    text = DIRECTIVE.sub("", page.read_text())
    blocks = [fenced or indented for fenced, indented in CODE.findall(text)]
    assert not [line for code in blocks for line in code.splitlines() if len(line) > WIDEST]


def test_code_of_tutorials_and_examples_is_not_cut_off() -> None:
    """Tutorials are shown whole; of the package, what doctest reads, with what it prints (messages are one line)."""
    assert not [(path.name, line) for path in SHOWN for line in _shown(path) if len(line) > WIDEST]


def _shown(path: Path) -> list[str]:
    if path.is_relative_to(ROOT / "tutorials"):
        return path.read_text().splitlines()
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = [ast.get_docstring(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    examples = [example for doc in docs if doc for example in doctest.DocTestParser().get_examples(doc)]
    return [
        line
        for example in examples
        for line in (example.source + ("" if example.exc_msg else example.want)).splitlines()
    ]
