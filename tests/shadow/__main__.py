"""Runs test files with a shadow; the status is 1 where a difference is not explained, or the shadow itself failed."""

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .mode import TIMES, Shadow

PAGE = Path(__file__).parent / "score.md"
COLUMNS = {
    "equal": "computed",
    "with gradients": "gradients",
    "views and questions": "views and questions",
    "both raise": "both raise",
    "refused": "refused",
    "declared": "declared",
    "known faults": "known faults",
    "different": "DIFFERENT",
}


SUMMARY = 60.0  # seconds from one line of counts to the next


class Plugin:
    """Enters the shadow around each test; shuffles them, ends the run at a deadline, and says how far it is."""

    def __init__(self, shadow: Shadow, shuffle: int | None = None, deadline: float | None = None) -> None:
        self.shadow, self.shuffle = shadow, shuffle
        self.start = self.said = time.monotonic()
        self.deadline = None if deadline is None else self.start + deadline
        self.ended: str | None = None  #: why not all tests were run

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.shuffle is not None:
            random.Random(self.shuffle).shuffle(items)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        self.shadow.test = item.nodeid
        with self.shadow:
            yield

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        now = time.monotonic()
        if now - self.said > SUMMARY:
            self.said = now
            print(f"\n{now - self.start:.0f} s, {nodeid}: {summary(self.shadow)}", file=sys.stderr, flush=True)

    def pytest_runtest_protocol(self, item: Any) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            self.ended = f"ended at the deadline, before {item.nodeid}"
            item.session.shouldstop = self.ended


def summary(shadow: Shadow) -> str:
    """The counts of a run so far, in one line."""
    counted = ", ".join(f"{number} {what}" for what, number in shadow.report.counts.most_common())
    return f"{len(shadow.report.functions)} functions: {counted}"


def told(shadow: Shadow) -> Iterator[str]:
    """What a run found, in lines."""
    report = shadow.report
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for found in report.found:
        groups[found.name, found.detail.split(":")[0]].append(found)
    for (name, _), several in sorted(groups.items(), key=lambda group: group[0]):
        first = several[0]
        yield f"{name} ({len(several)}): {first.which}: {first.detail}\n    ({first.call})\n    {first.test}"
    for title, counter in (
        ("refused with the documented error", report.refused),
        ("declared and known", report.reasons),
    ):
        yield f"--- {title}: " + ", ".join(f"{what} {number}" for what, number in counter.most_common())
    yield f"--- {summary(shadow)}"


def row(name: str, shadow: Shadow) -> list[str]:
    """The line of one run in the table of the documentation."""
    counts = shadow.report.counts
    kind = "garbage" if shadow.garbage else "nothing masked"
    numbers = (counts[what] for what in COLUMNS.values())
    return [name, kind, str(len(shadow.report.functions)), *map(str, numbers)]


def record(name: str, shadow: Shadow) -> None:
    """Writes the line of ``name`` into the table, in place of an earlier one."""
    new = row(name, shadow)
    head = ["tests of", "comparison", "functions", *COLUMNS]
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines()] if PAGE.exists() else [head]
    found = [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]  # of an earlier form, perhaps
    kept = [[line.get(column, "not counted") for column in head] for line in found]
    kept = [line for line in kept if line[:2] != new[:2]]
    rule = "|---|---|" + "---:|" * (len(head) - 2)
    table = [f"| {' | '.join(line)} |" for line in sorted([*kept, new])]
    PAGE.write_text("\n".join([f"| {' | '.join(head)} |", rule, *table]) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.shadow", description=__doc__)
    parser.add_argument("--garbage", action="store_true", help="random masks, with garbage under them")
    parser.add_argument("--record", metavar="NAME", help="write the counts into tests/shadow/score.md")
    parser.add_argument("--log", type=argparse.FileType("w"), help="a file for each difference, as it is found")
    parser.add_argument("--times", type=int, default=TIMES, help="how often a call is repeated with other values")
    parser.add_argument("--most", type=int, metavar="CALLS", help="of one function in a test, such as x[i, j]")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="the tests in a random order")
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="begin no test after so long")
    options, rest = parser.parse_known_args()
    shadow = Shadow(options.garbage, options.log, options.times, options.most)
    plugin = Plugin(shadow, options.shuffle, options.deadline)
    pytest.main(["-q", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line", *rest], plugins=[plugin])
    print(*told(shadow), sep="\n")
    if plugin.ended:
        print(f"--- {plugin.ended}")
    if options.record and shadow.report.functions and not plugin.ended:
        record(options.record, shadow)
    return int(bool(shadow.report.found or shadow.report.failures()))


if __name__ == "__main__":
    sys.exit(main())
