"""The public names: a list that shows every change, and names that were retired."""

import re
import warnings
from pathlib import Path

import pytest

import masked_tensor as mt
from masked_tensor.api import retired

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


@pytest.fixture
def old_name(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(retired.NAMES, "Couple", retired.Retired("masked_tensor.extend.Pair", "0.3"))
    return "Couple"


def test_a_retired_name_works_and_warns(old_name: str) -> None:
    message = "masked_tensor.Couple is masked_tensor.extend.Pair now; the old name will be removed in version 0.3"
    with pytest.warns(DeprecationWarning, match=f"^{re.escape(message)}$") as seen:
        assert getattr(mt, old_name) is mt.extend.Pair
    assert seen[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="Couple"):
        from masked_tensor import Couple  # noqa: F401


def test_a_retired_name_is_not_public(old_name: str) -> None:
    assert old_name not in dir(mt)
    assert old_name not in mt.__all__


def test_other_names_do_not_warn(old_name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not hasattr(mt, "Triple")
        assert mt.testing.check_rule


def release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def test_retired_names_lead_somewhere_and_end() -> None:
    """A name in the table is removed in the version that it names: then its entry goes."""
    for name, (_, until) in retired.NAMES.items():
        assert release(mt.__version__) < release(until), f"remove {name}"
        with pytest.warns(DeprecationWarning, match=name):
            assert getattr(mt, name) is not None
