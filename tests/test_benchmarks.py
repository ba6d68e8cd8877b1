"""The benchmarks run: each of them once, in small. What they measure is printed by ``python -m benchmarks``."""

from importlib import import_module

import pytest

from benchmarks import timing
from benchmarks.__main__ import NAMES, written


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("name", [name for name in NAMES if name != "packed"])  # which wants transformers
def test_a_benchmark_runs_in_small(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    lines: list[timing.Line] = []
    monkeypatch.setattr(timing, "LEAST", True)
    monkeypatch.setattr(timing, "LINES", lines)
    import_module(f"benchmarks.{name}").run(True)
    assert lines
    assert all(seconds > 0 for line in lines for seconds in (line.seconds, *line.ratios.values()))
    page = written([("A table: of one benchmark.", line) for line in lines], "cpu", 1)
    assert all(f"| {line.title} |" in page for line in lines)
    assert lines[0].title in capsys.readouterr().out
