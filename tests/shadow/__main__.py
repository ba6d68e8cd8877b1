"""Runs test files with a shadow; the status is 1 where a difference is not explained."""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from .mode import Shadow


class Plugin:
    """Enters the shadow around each test."""

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        self.shadow.test = item.nodeid
        with self.shadow:
            yield


def told(shadow: Shadow) -> Iterator[str]:
    """What a run found, in lines."""
    report = shadow.report
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for found in report.found:
        groups[found.name, found.detail.split(":")[0]].append(found)
    for (name, _), several in sorted(groups.items(), key=lambda group: group[0]):
        first = several[0]
        yield f"{name} ({len(several)}): {first.which}: {first.detail}\n    ({first.call})\n    {first.test}"
    for title, counter in (("refused with the documented error", report.refused), ("declared", report.reasons)):
        yield f"--- {title}: " + ", ".join(f"{what} {number}" for what, number in counter.most_common(60))
    yield f"--- {len(report.functions)} functions: " + ", ".join(f"{number} {what}" for what, number in report.counts.most_common())


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.shadow", description=__doc__)
    parser.add_argument("--garbage", action="store_true", help="random masks, with garbage under them")
    parser.add_argument("--record", metavar="NAME", help="write the counts into docs/shadow.md")
    parser.add_argument("--log", type=argparse.FileType("w"), help="a file for each difference, as it is found")
    options, rest = parser.parse_known_args()
    shadow = Shadow(options.garbage, options.log)
    pytest.main(["-q", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line", *rest], plugins=[Plugin(shadow)])
    print(*told(shadow), sep="\n")
    return int(bool(shadow.report.found))


if __name__ == "__main__":
    sys.exit(main())
