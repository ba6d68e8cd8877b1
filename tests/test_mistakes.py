"""Type checkers find the mistakes that users make: each line of tests/typing/mistakes.py that says so, and no other."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MISTAKES = ROOT / "tests" / "typing" / "mistakes.py"
WRONG = {i for i, line in enumerate(MISTAKES.read_text().splitlines(), 1) if line.endswith("# wrong")}
COMMANDS = {
    "mypy": ("--strict", "--config-file=", "--python-version=3.11"),
    "pyright": ("--pythonpath", sys.executable),
}


def test_there_are_forty() -> None:
    assert len(WRONG) >= 40


@pytest.mark.parametrize("checker", COMMANDS)
def test_a_checker_finds_every_mistake_and_no_other(checker: str) -> None:
    pytest.importorskip(checker)
    command = [sys.executable, "-m", checker, *COMMANDS[checker], str(MISTAKES.relative_to(ROOT))]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    found = {int(line) for line in re.findall(r"mistakes\.py:(\d+):(?:\d+)?:? (?:- )?error", said)}
    lines = MISTAKES.read_text().splitlines()
    assert [lines[i - 1] for i in sorted(WRONG - found)] == [], "not found"
    assert [lines[i - 1] for i in sorted(found - WRONG)] == [], said
