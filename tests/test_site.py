"""The search of the built pages: what people type, and the page that it shows first.

``sphinx-build docs docs/_build`` builds the pages; node runs Sphinx's own search over their index.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "docs" / "_build"
FIRST = {
    "padding": "padding",
    "attention_mask": "padding",
    "variable length": "padding",
    "left padding": "padding",
    "nan": "missing",
    "missing values": "missing",
    "imputation": "missing",
    "read_csv": "tables",
    "ragged": "events",
    "resample": "events",
    "irregular": "events",
    "group by": "events",
    "rolling": "series",
    "metrics": "metrics",
    "class weights": "targets",
    "pandas": "have",
    "parquet": "streams",
    "ddp": "machines",
    "compile": "compiling",
    "jacobian": "transforms",
    "nested tensor": "njt",
    "numpy.ma": "_generated/numpy_ma",
    "speed": "cost",
    "hugging face": "flat",
    "nan in my targets": "targets",
    "padding in an lstm": "series",
    "missing sensor values": "series",
    "pad tokens": "padding",
    "mean pooling": "padding",
    "masked image pixels": "images",
    "class imbalance": "targets",
    "ignored labels": "targets",
    "attention mask for my own transformer": "padding",
    "sample weights": "targets",
    "weighted loss": "targets",
    "huber": "targets",
    "average": "targets",
    "r2": "metrics",
    "rmse per target": "metrics",
    "iou": "images",
    "miou": "images",
    "u-net": "images",
    "unet": "images",
}


@pytest.fixture(scope="module")
def searched() -> tuple[dict[str, Any], dict[str, list[tuple[str, str]]]]:
    """What the search ranks by, and for each query the pages in the order in which it shows them, with their kinds."""
    if not (BUILT / "searchindex.js").exists():
        pytest.skip("the pages are not built")
    if shutil.which("node") is None:
        pytest.skip("node runs the search")
    command = ["node", str(ROOT / "tests/helpers/site_search.js"), str(BUILT), *FIRST]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    ranks, *found = map(json.loads, lines)
    return ranks, dict(zip(FIRST, found, strict=True))


def test_the_search_shows_the_page_first_that_is_about_it(searched: Any) -> None:
    assert {query: pages[0][0] if pages else "nothing" for query, pages in searched[1].items()} == FIRST


def test_pages_of_everything_come_last(searched: Any) -> None:
    """Requests, changes and measurements have every word; what is about it stands before them and before ``extend``.

    Of entries of the index Sphinx shows those of minor importance after all else.
    """
    ranks, found = searched
    behind = 0
    for query, pages in found.items():
        shown = [page for page, kind in pages if kind != "index"]
        late = [page in ranks["last"] or page.startswith(ranks["extend"]) for page in shown]
        assert late == sorted(late), query
        behind += any(late)
    assert behind > 10
    assert {"asked", "changelog"} <= set(ranks["last"])


def test_the_scorer_repeats_the_numbers_of_sphinx(searched: Any) -> None:
    """A scorer replaces Sphinx's own: what it leaves out would be NaN."""
    tools = (BUILT / "_static/searchtools.js").read_text().partition("var Scorer = {")[2].partition("\n  };")[0]
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", tools, flags=re.DOTALL)
    own = {name: int(number) for name, number in re.findall(r"(\w+): (-?\d+)", code)}
    numbers = searched[0]["numbers"]
    assert numbers.pop("objPrio") | numbers == own


def test_the_sidebar_is_short() -> None:
    """Other pages are below one of these, and shown when it is opened."""
    trees = re.findall(r"```{toctree}\n(.*?)```", (ROOT / "docs/index.md").read_text(), re.DOTALL)
    entries = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    assert 15 <= len(entries) <= 25


def test_the_pages_are_short_enough_to_be_read() -> None:
    """60,000 words; evidence lies beside the benchmarks and the tests, and has pages of its own."""
    assert sum(len(page.read_text().split()) for page in (ROOT / "docs").glob("*.md")) <= 60_000


def test_every_query_has_a_page() -> None:
    """Pages that are made from the code are there once the documentation was built."""
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert {page for page in FIRST.values() if not page.startswith("_generated")} <= pages
