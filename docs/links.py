"""Links of the pages: a file of the repository in its plain view, the page that is made from it on the site."""

import re
from typing import Any

MADE = {  # the file that a page links to, and the page of the site
    "../README.md": "index.md",
    "../benchmarks/cost.md": "_generated/measurements.md",
    "../benchmarks/cost_cuda.md": "_generated/measurements_cuda.md",
    "../masked_tensor/__init__.py": "_generated/api.md",
    "../masked_tensor/op.py": "_generated/semantics.md",
    "../masked_tensor/sparse/__init__.py": "_generated/sparse_forms.md",
    "../tests/scores.md": "_generated/scores.md",
    "../tutorials/README.rst": "_generated/tutorials/index",
    "numpy_ma.py": "_generated/numpy_ma.md",
}


def of_the_site(text: str) -> str:
    """The text of a page with the links that it has on the site."""
    text = re.sub(r"\]\(([^)#\s]+)", lambda found: "](" + MADE.get(found[1], found[1]), text)
    return re.sub(r"\]\(\.\./tutorials/(\d\d_\w+)\.py", r"](_generated/tutorials/\1", text)


def of_the_readme(text: str) -> str:
    """The text of the README, whose links begin at the root, as the first page of the site includes it."""
    return re.sub(r"\]\(([^)#\s]+)", lambda found: "](" + _below_docs(found[1]), text)


def _below_docs(link: str) -> str:
    return f"docs/{MADE['../' + link]}" if "../" + link in MADE else link


def on_include_read(app: Any, path: Any, parent: str, text: list[str]) -> None:
    """Sphinx's event ``include-read``."""
    del app, parent
    if str(path).endswith("README.md"):
        text[0] = of_the_readme(text[0])


def on_source_read(app: Any, page: str, text: list[str]) -> None:
    """Sphinx's event ``source-read``; the pages below ``docs`` alone are written so."""
    del app
    if not page.startswith("_generated"):
        text[0] = of_the_site(text[0])
