"""The benchmarks run: each of them once, in small. What they measure is printed by ``python -m benchmarks``."""

import json
import os
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import torch

import masked_tensor as mt
from benchmarks import (
    balance,
    everyday,
    front,
    growth,
    models_cuda,
    packed,
    pictures,
    steps,
    stream,
    thresholds,
    timing,
)
from benchmarks.__main__ import NAMES, merged, written
from benchmarks.everyday_case import FINITE, Case
from masked_tensor import settings


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("name", [name for name in NAMES if name != "packed"])  # which takes long
def test_a_benchmark_runs_in_small(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    lines: list[timing.Line] = []
    monkeypatch.setattr(timing, "LEAST", True)
    monkeypatch.setattr(timing, "LINES", lines)
    monkeypatch.setattr(timing, "FAILED", [])
    import_module(f"benchmarks.{name}").run(True)
    assert lines
    assert not timing.FAILED
    assert all(seconds > 0 for line in lines for seconds in (line.seconds, *line.ratios.values()))
    page = written([("A table: of one benchmark.", line) for line in lines], "cpu", 1)
    assert all(f"| {line.title} |" in page for line in lines)
    assert lines[0].title in capsys.readouterr().out


@pytest.mark.parametrize("name", ["BERT-base 32 x 128", "Llama 16 x 512", "encoder 64 x 128"])
def test_the_benchmark_for_a_gpu_runs_in_small(name: str, capsys: pytest.CaptureFixture) -> None:
    """Four kinds of a step, of one value each: what a GPU measures is right."""
    if not name.startswith("encoder"):
        pytest.importorskip("transformers")
    found = models_cuda.run("cpu", True, [name], ["eager"])
    assert [*found[name, "eager"]] == [*models_cuda.KINDS]
    assert f"| {name} | eager |" in models_cuda.table(found, "here")
    assert "left out" not in capsys.readouterr().out
    make, size = models_cuda.CASES[name]
    case = make(replace(size, **models_cuda.SMALL))
    losses = [models_cuda.Step(case, kind, "cpu").loss().item() for kind in models_cuda.KINDS]
    torch.testing.assert_close(losses, [losses[0]] * 4, rtol=2e-2, atol=0)


LINES = [case for case in everyday.CASES if case.heavy] if os.environ.get("MASKED_TENSOR_EVERYDAY") else []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LINES, ids=lambda case: case.title)
def test_a_heavy_everyday_line_is_by_hands_value_by_value(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``MASKED_TENSOR_EVERYDAY=1``; the others are compared whenever the benchmark runs."""
    monkeypatch.setattr(timing, "FAILED", [])
    everyday.check(case.title, case.make(case.sizes[0], torch.float32), case.tolerance)
    assert timing.FAILED == []


def test_an_everyday_line_is_compared_value_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "FAILED", [])
    one, two, masked = torch.ones(2), torch.tensor([1.0, 2.0]), mt.masked_tensor([1.0, None])
    for hand, ours in ((one, masked.filled(1)), (torch.tensor([1.0, torch.nan]), masked)):
        everyday.check("line", {"plain": lambda: one, "by hand": lambda h=hand: h, "masked": lambda o=ours: o}, 1e-6)
    assert timing.FAILED == []
    everyday.check("a", {"by hand": lambda: one, "masked": lambda: two}, 1e-6)
    everyday.check("b", {"by hand": lambda: two, FINITE: lambda: one, "masked": lambda: two}, 1e-6)
    everyday.check("c", {"by hand": lambda: None, "masked": lambda: two}, 1e-6)
    everyday.check("d", {"by hand": lambda: one, "masked": lambda: torch.tensor([1.0, torch.nan])}, 1e-6)
    assert [line.partition(":")[0] for line in timing.FAILED] == [
        "a, by hand",
        f"b, {FINITE}",
        "c, by hand",
        "d, by hand",
    ]


def test_packed_rows_run_in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "LEAST", True)
    monkeypatch.setattr(timing, "LINES", [])
    packed.run(True, ("encoder", "stack", "recurrent"))
    assert {kind for line in timing.LINES for kind in line.saved} == {"plain", "masked", "packed"}
    assert not timing.FAILED


@pytest.mark.parametrize("name", steps.CASES)
def test_a_training_step_keeps_what_the_plain_one_keeps(name: str) -> None:
    """For backward: a tenth more at most, masks included."""
    make, size, _ = steps.CASES[name]
    _, losses = make(min(size, 32))
    assert timing.saved(losses["masked"]) <= 1.1 * timing.saved(losses["plain"])


def test_what_raises_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """On a GPU that nobody watches, one line must not cost the others; what is ours makes the command fail."""

    def fails() -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(timing, "LEAST", True)
    monkeypatch.setattr(timing, "LINES", [])
    monkeypatch.setattr(timing, "FAILED", [])
    timing.row("op", {"plain": lambda: None, "masked": lambda: None, "torch.masked": fails, "numpy.ma": lambda: None})
    timing.row("op 2", {"plain": lambda: None, "masked": fails})
    timing.row("op 3", {"plain": fails, "masked": lambda: None})
    assert [list(line.ratios) for line in timing.LINES] == [["masked", "numpy.ma"], []]
    assert timing.FAILED == ["op 2, masked: RuntimeError: no kernel", "op 3, plain: RuntimeError: no kernel"]
    assert "left out: op, torch.masked" in capsys.readouterr().out


def test_sizes_are_written_in_their_unit() -> None:
    assert timing.sizes({"plain": 1536, "masked": 768, "packed": 64 * 2**20}) == "1.5 KiB; masked 0.5, packed 43,691"
    assert timing.sizes({"plain": 12}) == "12 B"
    assert timing.sizes({"plain": 0, "masked": 1536}) == "plain 0 B, masked 1.5 KiB"
    assert timing.sizes({"masked": 64 * 2**20}) == "masked 64 MiB"
    assert timing.sizes({}) == ""


def test_a_table_of_the_page_is_measured_anew() -> None:
    def page(**tables: float) -> str:
        return written([(f"{name}.", timing.Line("op", seconds, {}, "")) for name, seconds in tables.items()], "cpu", 1)

    assert merged(page(a=1, b=1, c=1), page(b=2)) == page(a=1, b=2, c=1)
    assert merged("nothing was run", page(a=1)) == page(a=1)
    assert merged(page(a=1), page(b=1)) == page(a=1, b=1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axis", growth.AXES)
def test_what_the_pictures_show_runs_in_small(axis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "peak", lambda call: 1)
    points = growth.measured(axis, True)
    assert {p["op"] for p in points} >= {"add", "sum", "softmax"}
    assert all(seconds > 0 for p in points for seconds in p["seconds"].values())
    assert json.loads(pictures.rounded({axis: points, "steps": {"A": (1, 1.0)}}))[axis][0]["op"] == points[0]["op"]


def test_the_peak_of_memory() -> None:
    def work() -> None:
        first = torch.empty(1000)
        second = first + 1
        del first
        second.add_(1).exp()

    assert 2 * 4000 <= timing.peak(work) < 2 * 4000 + 100  # numbers are tensors, too, for a moment


def test_no_tuning_number_makes_a_step() -> None:
    """As measured; a number that is changed is measured anew: ``python -m benchmarks.growth --axes``."""
    data = json.loads(growth.DATA.read_text())
    assert {name: size for name, (size, _) in data["steps"].items()} == {
        name: getattr(settings, name) for name in thresholds.EDGES
    }
    assert all(ratio <= pictures.STEP for _, ratio in data["steps"].values())
    assert pictures.page(data) == (growth.DATA.parent / "curves.md").read_text()


def test_a_simulated_plan_loses_less_than_a_random_one(capsys: pytest.CaptureFixture) -> None:
    balance.simulate(balance.lengths_of(4000), 8)
    busy, random = re.search(r"busy ([\d.]+)% of the time instead of ([\d.]+)%", capsys.readouterr().out).groups()
    assert float(busy) > 99 > 90 > float(random)


def test_a_table_on_a_disk_is_read_both_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Statistics by hand and masked are the same; an epoch runs."""
    pytest.importorskip("pyarrow")
    for name, size in {"GROUP": 100, "COLUMNS": 3, "BATCH": 50}.items():
        monkeypatch.setattr(stream, name, size)
    path = tmp_path / "table.parquet"
    stream.write(path, 300)
    theirs, ours = stream.ByHand(), mt.RunningStatistics(3, correction=0)
    for batch in stream.batches(path):
        theirs.update(stream.with_nan(batch))
        ours.update(mt.masked_tensor(batch))
    torch.testing.assert_close(ours.var.filled(0), theirs.squares / theirs.count, rtol=1e-6, atol=0)
    assert torch.equal(ours.amin.filled(0), theirs.low.double())
    assert all(seconds > 0 for seconds in stream.times(path, "epoch").values())


@pytest.mark.parametrize("page", front.PAGES, ids=lambda page: page.name)
def test_pages_begin_with_lines_of_what_was_measured(page: Path) -> None:
    """The tables of the README and of the pages on cost are those that ``python -m benchmarks.front`` writes.

    A page on cost has all training steps of its device, the README some of both.
    """
    text = page.read_text()
    assert front.filled(text) == text
    assert front.steps({"README.md": "", "cost.md": "CPU", "cost_cuda.md": "GPU"}[page.name]) in text


def test_each_training_step_is_of_a_cpu_or_a_gpu() -> None:
    rows = [front.steps(device).splitlines()[2:] for device in ("", "CPU", "GPU")]
    assert [row for row in rows[1] + rows[2] if row in rows[0]] == rows[0]
    assert len(rows[1] + rows[2]) == len(front.STEPS)
    assert min(map(len, rows)) > 2


def test_no_line_is_a_multiple_of_nothing() -> None:
    """A second import takes microseconds: nothing is divided by it."""
    for device, table in front.FULL.items():
        lines = front.lines(device)
        assert len(lines) > 100, table
        imported = [cells for (_, title), cells in lines.items() if title.startswith("import, after torch")]
        assert all(cells["masked"] == cells["masked / by hand"] == "" for cells in imported)


def test_pages_quote_what_packed_rows_cost() -> None:
    """The page on packed batches has the numbers of ``benchmarks/cost.md``."""
    names = ("encoder, 50%", "encoder, 75%", "encoder, 0%", "Bert, 50%", "Llama, 50%")
    shown = [front.lines("CPU")["Packed rows", f"{name} padding"]["packed"] for name in names]
    page = (front.ROOT / "docs" / "packed.md").read_text()
    assert [number for number in shown if f" {number} " not in page and f" {number}," not in page] == []


def test_pages_quote_what_small_models_cost() -> None:
    """The page on compiling has the ratio of ``benchmarks/cost.md``, rounded."""
    small = float(front.lines("CPU")["Everyday work", "MLP b256 h64"]["masked / by hand"])
    assert f"takes {small:.1f} times" in (front.ROOT / "docs" / "compiling.md").read_text()
