"""Importing: what the package adds to ``import torch``, in fresh processes; the goal is 0.35 s on top."""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from . import timing

ROUNDS = 7
PROGRAMS = {"plain": "import torch", "masked": "import torch, masked_tensor"}


def seconds(program: str) -> float:
    """Processor time of a process that runs ``program``."""
    before = os.times()
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent.parent)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def run(small: bool) -> None:
    if timing.DEVICE != "cpu":
        return
    times: dict[str, list[float]] = {kind: [] for kind in PROGRAMS}
    for _ in range(1 if small else ROUNDS):
        for kind, program in PROGRAMS.items():
            times[kind].append(seconds("" if small else program))
    plain, masked = (median(times[kind]) for kind in PROGRAMS)
    goal = f"{1 + 0.35 / plain:.2f}" if plain else ""
    timing.report(timing.Line(f"import: {masked - plain:+.2f} s", plain, {"masked": masked / max(plain, 1e-9)}, goal))
