"""After the law tests: how many entries and samples each family ran."""

from collections import defaultdict
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    entries: dict[str, set[str]] = defaultdict(set)
    samples: dict[str, int] = defaultdict(int)
    for report in terminalreporter.stats.get("passed", []):
        for key, value in report.user_properties:
            if key == "law":
                family, name, checked = value
                entries[family].add(name)
                samples[family] += checked
    if entries:
        terminalreporter.section("laws over torch's operator database")
        for family in sorted(entries):
            terminalreporter.line(f"{family:12} {len(entries[family]):4} entries {samples[family]:7} samples")
        total = sum(map(len, entries.values())), sum(samples.values())
        terminalreporter.line(f"{'all':12} {total[0]:4} entries {total[1]:7} samples")
