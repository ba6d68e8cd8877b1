"""Leaves out what needs a GPU where there is none, and counts.

After the law tests: how many entries and samples each family ran; after the laws of sparse layouts and of packed
tensors: how many calls equal the strided ones; after the matrix: how many calls per layout.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from masked_tensor import masks

from .helpers.forced import packing

if os.environ.get("MASKED_TENSOR_PACKED"):

    @pytest.fixture(autouse=True)
    def everything_is_packed() -> Iterator[None]:
        """See ``helpers.forced``."""
        with packing():
            yield


# Of every seed torch keeps, for each kind of device that is not there, a call with the whole stack it came from: 0.7 ms
# as deep as a test lies, and seeds are set some ten thousand times.
for _kind in (torch.cuda, torch.xpu, torch.mtia):
    if not _kind.is_available():
        _kind.manual_seed_all = lambda seed: None


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if torch.cuda.is_available():
        return
    gpu = [item for item in items if item.get_closest_marker("cuda")]
    if "cuda" in config.getoption("-m"):  # asked for, they are skipped with their reason
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
        return
    config.hook.pytest_deselected(items=gpu)
    items[:] = [item for item in items if item not in set(gpu)]


def pytest_runtest_teardown() -> None:
    """Nobody wrote to the byte that all masks share that are known to be True."""
    assert masks.full((), torch.device("cpu")).item()


def table(outcomes: list[tuple[str, str, int]]) -> Iterator[str]:
    """One line per input layout, from (layout, outcome, calls)."""
    yield f"{'input':18}{'pass':>8}{'calls':>8}{'refused':>10}{'calls':>8}"
    for layout in dict.fromkeys(layout for layout, _, _ in outcomes):
        line = f"{layout:18}"
        for outcome, width in (("passes", 8), ("refused", 10)):
            calls = [n for where, what, n in outcomes if (where, what) == (layout, outcome)]
            line += f"{len(calls):{width}}{sum(calls):8}"
        yield line


def pytest_terminal_summary(terminalreporter: Any) -> None:
    outcomes: list[tuple[str, str, int]] = []
    sparse: Counter[str] = Counter()
    packed: Counter[str] = Counter()
    ragged: Counter[str] = Counter()
    entries: dict[str, set[str]] = defaultdict(set)
    samples: dict[str, int] = defaultdict(int)
    for report in terminalreporter.stats.get("passed", []):
        for key, value in report.user_properties:
            if key == "law":
                family, name, checked = value
                entries[family].add(name)
                samples[family] += checked
            elif key == "sparse law":
                sparse.update(value)
            elif key == "packed law":
                packed.update(value)
            elif key == "ragged law":
                ragged.update(value)
            elif key == "matrix":
                outcomes.append(value)
    if entries:
        terminalreporter.section("laws over torch's operator database")
        for family in sorted(entries):
            terminalreporter.line(f"{family:12} {len(entries[family]):4} entries {samples[family]:7} samples")
        total = sum(map(len, entries.values())), sum(samples.values())
        terminalreporter.line(f"{'all':12} {total[0]:4} entries {total[1]:7} samples")
    for title, counts in (
        ("rows and sparse layouts", sparse),
        ("packed against strided", packed),
        ("ragged batches against their sequences", ragged),
    ):
        if counts:
            terminalreporter.section(title)
            terminalreporter.line(", ".join(f"{number} {what}" for what, number in counts.items()))
    if outcomes:
        terminalreporter.section("functional forms by layout of the input")
        for line in table(outcomes):
            terminalreporter.line(line)
