"""Type checkers find the mistakes that users make, and nothing wrong with everyday lines.

Each line of tests/typing/mistakes.py that says so is a mistake, and no other; tests/everyday.py has none.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MISTAKES = ROOT / "tests" / "typing" / "mistakes.py"
EVERYDAY = ROOT / "tests" / "everyday.py"
WRONG = {i for i, line in enumerate(MISTAKES.read_text().splitlines(), 1) if line.endswith("# wrong")}
COMMANDS = {  # a good part of torch is untyped
    "mypy": ("--strict", "--allow-untyped-calls", "--config-file=", "--python-version=3.11"),
    "pyright": ("--pythonpath", sys.executable),
}
ERROR = re.compile(r"(\w+)\.py:(\d+):(?:\d+)?:? (?:- )?error")


def test_there_are_forty() -> None:
    assert len(WRONG) >= 40


@pytest.mark.parametrize("checker", COMMANDS)
def test_a_checker_finds_every_mistake_and_no_other(checker: str) -> None:
    """Both files at once: a checker reads torch for longer than it checks them."""
    pytest.importorskip(checker)
    files = [str(file.relative_to(ROOT)) for file in (MISTAKES, EVERYDAY)]  # pyright ignores other paths
    command = [sys.executable, "-m", checker, *COMMANDS[checker], *files]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    places = ERROR.findall(said)
    assert "everyday" not in {name for name, _ in places}, said
    found = {int(line) for name, line in places if name == "mistakes"}
    lines = MISTAKES.read_text().splitlines()
    assert [lines[i - 1] for i in sorted(WRONG - found)] == [], "not found"
    assert [lines[i - 1] for i in sorted(found - WRONG)] == [], said
