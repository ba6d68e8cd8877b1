"""What ``.ci/gpu`` runs on a machine with a GPU, without one: its files and options are there, its parts run small."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import models_cuda
from benchmarks.__main__ import NAMES

ROOT = Path(__file__).parents[1]
SCRIPT = (ROOT / ".ci" / "gpu").read_text()
LINES = SCRIPT.replace("\\\n", " ").splitlines()


def commands() -> list[list[str]]:
    """What follows ``python -m`` in each line."""
    found = [re.search(r"python -m (.+?)( &)?$", line) for line in LINES if not line.startswith("#")]
    return [shlex.split(match[1]) for match in found if match]


def test_what_it_runs_is_there() -> None:
    assert subprocess.run(["sh", "-n", ROOT / ".ci" / "gpu"]).returncode == 0
    assert {words[0] for words in commands()} == {"pytest", "benchmarks", "benchmarks.models_cuda"}
    for words in commands():
        assert all((ROOT / w).exists() for w in words if w.startswith("tests/")), words


def test_it_takes_less_than_four_minutes() -> None:
    """The parts beside each other, then the others: their limits."""
    beside = [int(n) for n in re.findall(r"^ *beside [\w-]+ (\d+) ", SCRIPT, re.M)]
    assert beside
    assert max(beside) + sum(int(n) for n in re.findall(r"^timeout (\d+) ", SCRIPT, re.M)) <= 240


def test_tests_for_a_gpu_and_the_names_they_are_chosen_by_exist() -> None:
    words = [w for line in commands() if line[0] == "pytest" for w in line]
    assert words[words.index("-k") + 1] == "oracle and float32 or fill"
    text = "".join((ROOT / w).read_text() for w in set(words) if w.startswith("tests/"))
    assert all(re.search(rf"def test_\w*{name}", text) for name in ("oracle", "fill"))
    assert "id=f\"{case.name}-{str(dtype).removeprefix('torch.')}\"" in text
    marked = [path for path in (ROOT / "tests").glob("test_*.py") if "mark.cuda" in path.read_text()]
    assert len(marked) > 5
    assert 'os.environ.get("MASKED_TENSOR_KERNELS") == "on"' in (ROOT / "masked_tensor/kernels/table.py").read_text()


TABLES = pytest.mark.parametrize("words", [w for w in commands() if w[0].startswith("benchmarks")], ids=" ".join)


@TABLES
def test_what_its_tables_are_chosen_by_exists(words: list[str]) -> None:
    known = {*NAMES, *models_cuda.CASES, *models_cuda.WAYS, "--device", "cuda", "--write", "--ways"}
    assert set(words[1:]) <= known


@pytest.mark.skipif(not os.environ.get("MASKED_TENSOR_TABLES"), reason="takes half a minute")
@TABLES
def test_its_tables_run_on_the_cpu_when_small(words: list[str]) -> None:
    words = ["cpu" if w == "cuda" else w for w in words if w != "--write"]
    device = [] if "--device" in words else ["--device", "cpu"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", *words, *device, "--small"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "raise" not in run.stdout
