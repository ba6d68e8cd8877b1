"""Links of the pages lead somewhere, in a plain view of the repository and on the site."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def linked(text: str) -> list[str]:
    """The files of a page's links, without code."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"\]\(([^)#\s]+)", prose)
    return [link for link in found if not link.startswith(("http", "mailto:"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    assert [link for link in linked(page.read_text()) if not (page.parent / link).exists()] == []


def test_links_are_found() -> None:
    assert sum(len(linked(page.read_text())) for page in PAGES) > 150


def test_the_site_links_to_the_pages_that_are_made_from_the_files() -> None:
    links = runpy.run_path(str(ROOT / "docs/links.py"))
    for file in links["MADE"]:
        assert (ROOT / "docs" / file).exists()
    text = "[a](../benchmarks/cost.md#packed-rows), [b](../tutorials/16_text.py), [c](limits.md), [d](numpy_ma.py)"
    assert links["of_the_site"](text) == (
        "[a](_generated/measurements.md#packed-rows), [b](_generated/tutorials/16_text), [c](limits.md), "
        "[d](_generated/numpy_ma.md)"
    )
    readme = links["of_the_readme"]("[a](tutorials/README.rst), [b](docs/limits.md#padding), [c](#install)")
    assert readme == "[a](docs/_generated/tutorials/index), [b](docs/limits.md#padding), [c](#install)"
    assert not [p.name for p in (ROOT / "docs").glob("*.md") if "](../" in links["of_the_site"](p.read_text())]


TASKS = {  # what people look for, and the page that answers it
    "NaN in my targets": "targets",
    "padding in an LSTM": "series",
    "missing sensor values": "series",
    "pad tokens": "padding",
    "mean pooling": "padding",
    "masked image pixels": "images",
    "class imbalance": "targets",
    "ignored labels": "targets",
    "attention mask for my own transformer": "padding",
}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_two_clicks_from_the_readme(task: str) -> None:
    """The page has it in the index, which the search shows; the README links to the page, or to the list of tasks."""
    page = ROOT / "docs" / f"{TASKS[task]}.md"
    assert f"! {task}" in page.read_text().partition("\n```\n")[0]
    readme = linked((ROOT / "README.md").read_text())
    assert "docs/find.md" in readme
    assert f"docs/{page.name}" in readme or page.name in linked((ROOT / "docs/find.md").read_text())
