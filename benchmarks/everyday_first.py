"""The first second of ``everyday.py``: what a process does once, in fresh processes, in seconds of processor time.

Modules are read from bytecode, as pip leaves them: a first process, which is not counted, writes it.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from . import timing

ROUNDS = 5
BEFORE = """
import sys, time
import torch
import masked_tensor as mt
from torch.nn import functional as F
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
seen = torch.tensor([[True, False], [True, True]])
y = mt.masked_tensor(x, seen, requires_grad=True)
model = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
"""
IMPORT = "import sys, time\nimport torch"
IMPORTED = {"plain": "torch", "by hand": "torch", "masked": "masked_tensor"}
EAGER = "backend='aot_eager')"
Programs = dict[str, tuple[str, str]]
#: Plain imports torch a second time, which takes no time: nothing is a multiple of it.
IMPORTS: Programs = {kind: (IMPORT, f"import {name}") for kind, name in IMPORTED.items()}
LINES: dict[str, tuple[str, Programs]] = {  # title: goal for what ours adds, what runs before and what is timed
    "import, after torch": ("+0.35 s", IMPORTS),
    "first backward()": (
        "+5 ms",
        {
            "plain": (BEFORE + "loss = x.square().mean()", "loss.backward()"),
            "by hand": (BEFORE + "loss = torch.where(seen, x, 0).square().sum() / seen.sum()", "loss.backward()"),
            "masked": (BEFORE + "loss = y.square().mean()", "loss.backward()"),
        },
    ),
    "first backward(gradient)": (
        "+5 ms",
        {
            "plain": (BEFORE + "loss = x.square()", "loss.backward(torch.ones(2, 2))"),
            "by hand": (BEFORE + "loss = torch.where(seen, x, 0).square()", "loss.backward(torch.ones(2, 2))"),
            "masked": (BEFORE + "loss = y.square()", "loss.backward(mt.masked_tensor(torch.ones(2, 2), seen))"),
        },
    ),
    "first call of a compiled model": (
        "",
        {
            "plain": (BEFORE + f"run = torch.compile(model, {EAGER}", "run(x)"),
            "by hand": (BEFORE + f"run = torch.compile(lambda a: model(torch.where(seen, a, 0)), {EAGER}", "run(x)"),
            "masked": (BEFORE + f"run = torch.compile(model, {EAGER}", "run(y)"),
        },
    ),
}  # fmt: skip
TIMED = "{before}\nstart = time.process_time()\n{timed}\nprint(time.process_time() - start)"


def seconds(before: str, timed: str) -> float:
    """Processor time of ``timed`` in a fresh process that ran ``before``."""
    said = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TIMED.format(before=before, timed=timed)],
        check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent,
        env=said | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return float(run.stdout.split()[-1])


def run(small: bool) -> None:
    lines = {title: line for title, line in LINES.items() if timing.MATCH in title}
    for title, (goal, programs) in list(lines.items())[: 1 if small else None]:
        times: dict[str, list[float]] = {kind: [] for kind in programs}
        for turn in range(1 if small else ROUNDS + 1):
            for kind, program in programs.items():
                found = seconds(*program)
                times[kind] += [found] * (small or turn > 0)
        middle = {kind: max(median(values), 1e-9) for kind, values in times.items()}
        plain, masked = middle["plain"], middle["masked"]
        ratios = {kind: value / plain for kind, value in middle.items() if kind != "plain"}
        ratios["masked / by hand"] = masked / middle["by hand"]
        added = f"{title}: {(masked - middle['by hand']) * 1e3:+.1f} ms"
        timing.report(timing.Line(added, plain, {} if programs is IMPORTS else ratios, goal))
