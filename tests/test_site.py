"""The search of the built pages: what people type, and the page that it shows first.

``sphinx-build docs docs/_build`` builds the pages; node runs Sphinx's own search over their index.
"""

import shutil
import subprocess
from pathlib import Path

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
}


@pytest.mark.skipif(not (BUILT / "searchindex.js").exists(), reason="the pages are not built")
@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the search")
def test_the_search_shows_the_page_first_that_is_about_it() -> None:
    script = str(Path(__file__).parent / "helpers" / "site_search.js")
    command = ["node", script, str(BUILT), *FIRST]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert dict(zip(FIRST, found, strict=True)) == FIRST


def test_every_query_has_a_page() -> None:
    """Pages that are made from the code are there once the documentation was built."""
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert {page for page in FIRST.values() if not page.startswith("_generated")} <= pages
