"""The public names: a list that shows every change."""

import re
import runpy
import warnings
from pathlib import Path

import masked_tensor as mt

from . import names

ROOT = Path(__file__).parent.parent


def test_the_public_names_are_those_of_the_list() -> None:
    """After a change that is meant: ``python -m tests.names``, and a line in the changelog."""
    assert list(names.lines()) == names.FILE.read_text().splitlines()


def test_the_page_names_what_is_public() -> None:
    page = (ROOT / "docs/stability.md").read_text()
    listed = re.findall(r"`masked_tensor\.(\w+)(?:\.masks)?\.__all__`", page)
    assert set(listed) == {home.partition(".")[0] for home in names.SUBMODULES}
    assert "python -m tests.names" not in page
    assert f"`tests/{names.FILE.name}`" in page


def test_the_reference_has_a_place_for_each_public_name() -> None:
    sections = runpy.run_path(str(ROOT / "docs/reference.py"))["_sections"]()
    assert set(mt.__all__) <= {name for section in sections for name in section.names}


def test_no_other_name_is_found() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not hasattr(mt, "Triple")
        assert mt.testing.check_rule
