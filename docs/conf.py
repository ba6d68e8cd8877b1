"""Sphinx configuration.  Build: ``sphinx-build -W -n docs docs/_build``; this also runs the tutorials."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import generate
import links

import masked_tensor

project = "masked_tensor"
author = copyright = "the masked_tensor authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",  # links to the source
    "sphinx_gallery.gen_gallery",
    "sphinx_design",  # cards, and what can be folded
    "sphinx_copybutton",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
html_theme = "furo"
html_logo = html_favicon = "_generated/logo.svg"
html_title = f"masked_tensor {masked_tensor.__version__}"  # on every page
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False  # tables; the entries stand below them
sphinx_gallery_conf = {
    "examples_dirs": "../tutorials",
    "gallery_dirs": "_generated/tutorials",
    "filename_pattern": r"/\d\d_",  # which of them are run: all
    "within_subsection_order": "generate.AsNeeded",
    "default_thumb_file": str(Path(__file__).parent / "_generated/thumbnail.png"),
    "image_scrapers": ("matplotlib", "generate.chart"),
    "capture_repr": (),  # what they print, not the value of the last line
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}
if tags.has("online"):  # noqa: F821 (Sphinx puts it there): names of other packages become links
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3/", None),
        "torch": ("https://docs.pytorch.org/docs/stable/", None),
        "numpy": ("https://numpy.org/doc/stable/", None),
    }
nitpicky = True
# torch's and Python's own objects are named in docstrings; a build without a network has no inventories of theirs.
nitpick_ignore_regex = [
    ("py:.*", r"(torch|numpy|pandas|pyarrow|enum|typing|collections|contextlib)\b.*"),
    (
        "py:.*",
        r"(Tensor|Any|optional|callable|number|int|float|bool|str|tuple|list|dict|sequence|iterable|iterator|table|None)",
    ),
    ("py:.*", r"(PackedSequence|Placement|ProcessGroup|DeviceMesh|matplotlib Axes|context manager)"),
    ("py:.*", r"(StorageRule|Report|Rolling|ArrowTable|Column)"),  # results that are not made by name
]

generate.write(Path(__file__).parent / "_generated")


def setup(app: Any) -> None:
    """Links to files of the repository become links to the pages that are made from them."""
    app.connect("source-read", links.on_source_read)
    app.connect("include-read", links.on_include_read)
