"""Names that the examples in docstrings may use without importing them; the list of what was skipped."""

import builtins
import gc
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

import masked_tensor

collect_ignore = (
    [] if find_spec("sklearn") else ["masked_tensor/sklearn", "masked_tensor/stats/sklearn.py"]
)  # its examples need it
collect_ignore += ["masked_tensor/kernels/gpu", "tests/helpers/gpu_compiler.py"]  # no examples, and they import Triton
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # the workers share the cores


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace: dict[str, Any]) -> None:
    names = {name: getattr(masked_tensor, name) for name in masked_tensor.__all__ if not hasattr(builtins, name)}
    doctest_namespace.update(names, torch=torch, mt=masked_tensor)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--only", metavar="FILE", help="runs the tests, or files of tests, that FILE lists one per line")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if file := config.getoption("--only"):
        wanted = set(Path(file).read_text().splitlines())
        chosen = {item for item in items if not wanted.isdisjoint((item.nodeid, item.nodeid.partition("::")[0]))}
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def pytest_collection_finish() -> None:
    """The collected tests, and torch's database, are there to the end: a collection looks through them for 0.7 s.

    Few tests make cycles: the others need not be looked through after each 700 objects.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Writes what was skipped to the file that is named, for ``pytest --only FILE`` where more is installed."""
    if file := os.environ.get("MASKED_TENSOR_SKIPPED"):
        skipped = {report.nodeid for report in terminalreporter.stats.get("skipped", [])}
        Path(file).write_text("\n".join(sorted(skipped)))
    if terminalreporter.config.option.markexpr == "cuda":
        terminalreporter.write_line(_table_of_gpu_tests(terminalreporter.stats))


def _table_of_gpu_tests(stats: dict[str, list[Any]]) -> str:
    """What ran on a GPU, by test, for docs/cost_cuda.md."""
    counts: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        for report in stats.get(kind, []):
            found = counts.setdefault(report.nodeid.partition("[")[0].rpartition("/")[2], dict.fromkeys(KINDS, 0))
            found[kind] += 1
    rows = [
        f"| `{name}` | {' | '.join(str(found[kind]) for kind in KINDS)} |" for name, found in sorted(counts.items())
    ]
    return "\n".join(["| on a GPU | " + " | ".join(KINDS) + " |", "|---|---:|---:|---:|", *rows])


KINDS = ("passed", "failed", "skipped")
