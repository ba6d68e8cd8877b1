"""Every entry of torch's operator database is covered, refused with the documented error, or listed with its reason."""

from pathlib import Path

import pytest

from .helpers import database
from .helpers.pinned import with_pinned
from .oracles import ORACLES
from .sweep import REASONS, SKIPPED, judge, score

DOCUMENTED = Path(__file__).parent / "score.md"


@pytest.mark.parametrize("name", sorted(set(database.ENTRIES) - set(ORACLES) - set(SKIPPED)))
@pytest.mark.filterwarnings("ignore")  # the database's samples make torch itself warn
def test_entry(name: str) -> None:
    verdict = judge(name, limit=3)
    expected = "refused" if name in REASONS else "passes"
    assert verdict.outcome in (expected, "skipped"), f"{verdict.outcome}: {verdict.detail}"


@with_pinned
@pytest.mark.filterwarnings("ignore")
def test_the_documented_score_is_up_to_date() -> None:
    """What passes the laws is the business of the law tests: here every entry runs once, forward and backward."""
    current = score([judge(name, laws=False) for name in database.ENTRIES])
    assert current == DOCUMENTED.read_text(), "run: python -m tests.sweep > tests/score.md"
