"""Satellites: parts that import the top level and ``extend`` alone, and are loaded when somebody asks for them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .helpers.joined import over

ROOT = Path(__file__).parent.parent
SATELLITES = ("integrations", "stats", "testing", "train")
OTHERS = {"__init__", "__main__", "_pickle", "extend", "sklearn", *SATELLITES}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


MOVED = [
    ("api.statistics.running", "RunningStatistics"),
    ("api.statistics.last_valid", "LastValid"),
    ("api.batching", "balanced_batches"),
    ("api.distributed.mean_over", "mean_over"),
    ("api.losses.total", "total"),
]
LOADED = """
import sys, masked_tensor as mt
print(sorted(name for name in sys.modules if name.startswith(tuple("masked_tensor." + s for s in {satellites}))))
from importlib import import_module
for old, name in {moved}:
    assert getattr(import_module("masked_tensor." + old), name) is getattr(mt, name), old
"""


def test_they_are_loaded_when_asked_for_and_found_where_they_were() -> None:
    """Pickles of before name the old paths."""
    assert run(LOADED.format(satellites=SATELLITES, moved=MOVED)) == "[]\n"


def test_the_contract_names_all_that_is_private() -> None:
    package = ROOT / "masked_tensor"
    rooms = {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("*/__init__.py")}
    contract = (ROOT / "pyproject.toml").read_text().partition("satellites import the top level")[2].partition("[[")[0]
    assert set(re.findall(r'^    "masked_tensor\.(\w+)",', contract, re.MULTILINE)) == rooms - OTHERS
    sources = re.search(r"source_modules = \[(.*)\]", contract)
    assert sources is not None
    assert set(re.findall(r"masked_tensor\.(\w+)", sources[1])) == set(SATELLITES)


HIDDEN = """
import doctest, pkgutil, sys, torch, masked_tensor as mt, tests.helpers.hidden
from importlib import import_module
tests.helpers.hidden.hide()
for room in {satellites}:
    home = import_module(f"masked_tensor.{{room}}")
    for part in pkgutil.iter_modules(home.__path__):
        if part.name != "sklearn":  # which may not be installed
            module = import_module(f"masked_tensor.{{room}}.{{part.name}}")
            globs = dict(vars(module), torch=torch, mt=mt)
            found = doctest.testmod(module, globs=globs, optionflags=doctest.ELLIPSIS)
            assert not found.failed, module
            print(module.__name__, found.attempted)
outside = {{"__name__": "masked_tensor.stats.x", "__package__": "masked_tensor.stats"}}
try:
    exec("from ..engine import tensor", outside)
except ModuleNotFoundError as reason:
    print(reason)
"""


def test_their_examples_pass_with_the_private_packages_hidden() -> None:
    lines = run(HIDDEN.format(satellites=SATELLITES)).splitlines()
    assert lines.pop() == "masked_tensor.stats.x imports masked_tensor.engine, which nobody outside may"
    assert sum(int(line.split()[1]) for line in lines) > 50


@pytest.mark.skipif(not os.environ.get("MASKED_TENSOR_HIDDEN"), reason="MASKED_TENSOR_HIDDEN=1 runs all their tests")
@over(
    [
        "test_statistics.py",
        "test_statistics_laws.py",
        "test_statistics_tables.py",
        "test_last_valid.py",
        "test_mean_over.py",
        "test_total.py",
        "test_batching.py",
    ]
)
def test_all_their_tests_pass_with_the_private_packages_hidden(file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.helpers.hidden", f"tests/{file}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
