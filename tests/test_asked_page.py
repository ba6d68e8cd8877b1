"""What people asked for: each line of the page runs and does what the page says."""

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

PAGE = (Path(__file__).parent.parent / "docs" / "asked.md").read_text()
SETUP = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ROW = re.compile(
    r"^\| \[(.+?#\d+)\]\((\S+)\) \| (.+?) \| (?:`(.+)`)? ?\| (works|loud|differs|not offered) \|$", re.MULTILINE
)
OUTCOMES = re.compile(r"^\| (works|loud|differs|not offered) \| .* \| (\d+) \|$", re.MULTILINE)


class Row(NamedTuple):
    request: str
    address: str
    wanted: str
    line: str
    outcome: str

    @property
    def code(self) -> str:
        return self.line.partition("  # ")[0]

    @property
    def result(self) -> str:
        return self.line.partition("  # ")[2]


ROWS = [Row(*(cell.replace("\\|", "|") for cell in found)) for found in ROW.findall(PAGE)]
LINES = [pytest.param(row, id=row.request) for row in ROWS if row.line]


@pytest.fixture(scope="module")
def setup() -> dict[str, Any]:
    """The names of the page; no line changes what another reads."""
    pytest.importorskip("pandas")
    assert SETUP is not None
    room = dict[str, Any]()
    exec(compile(SETUP[1], "asked.md", "exec"), room)
    return room


def test_the_page_has_its_rows() -> None:
    assert len(ROWS) >= 120
    assert len(ROWS) == len(re.findall(r"^\| \[", PAGE, re.MULTILINE))
    assert max(Counter(row.request for row in ROWS).values()) == 1
    assert all(row.outcome == "not offered" for row in ROWS if not row.line)
    assert all(row.line for row in ROWS if row.outcome != "not offered")
    assert {outcome: int(number) for outcome, number in OUTCOMES.findall(PAGE)} == Counter(r.outcome for r in ROWS)


def test_a_link_leads_to_its_number() -> None:
    for row in ROWS:
        repository, number = row.request.split("#")
        assert row.address in [f"https://github.com/{repository}/{kind}/{number}" for kind in ("issues", "pull")]


def test_most_lines_say_what_they_give() -> None:
    """By a result, or by a comparison."""
    compared = r"==|\bis\b|\bsame\(|\balone\(|\b(?:all|allclose|equal|isclose)\(|\.is_packed$"
    checked = [row for row in ROWS if row.result or re.search(compared, row.code)]
    assert len(checked) > 0.8 * len(ROWS)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("row", LINES)
def test_a_line_does_what_the_page_says(row: Row, setup: dict[str, Any]) -> None:
    room = dict(setup)
    if row.outcome == "loud":
        with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)) as raised:
            _run(row.code, room)
        assert str(raised.value)
        return
    result = _run(row.code, room)
    _check_finite(result)
    if isinstance(result, bool) or (not row.result and _plain(result) in (True, False)):
        assert result, row.code
    if row.result:
        _check_equal(_plain(result), ast.literal_eval(row.result))


def _run(code: str, room: dict[str, Any]) -> Any:
    """The value of an expression, or what a statement calls ``out``."""
    if isinstance(ast.parse(code).body[0], ast.Expr):
        return eval(code, room)
    exec(code, room)
    return room["out"]


def _plain(result: Any) -> Any:
    return result.tolist() if isinstance(result, torch.Tensor) else result


def _check_finite(result: Any) -> None:
    assert all(abs(value) < float("inf") for value in _values(_plain(result)))


def _values(result: Any) -> list[float]:
    if isinstance(result, list):
        return [value for part in result for value in _values(part)]
    return [result] if isinstance(result, int | float) else []


def _check_equal(found: Any, expected: Any) -> None:
    """To the digits that the page shows; masked entries are None."""
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _check_equal(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=6e-5)
    else:
        assert type(found) is type(expected)
        assert found == expected
