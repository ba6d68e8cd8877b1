"""Times as all benchmarks take them: in one process, the candidates in turn, medians over the rounds."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

ROUNDS = 9

Candidates = dict[str, Callable[[], object]]


def medians(
    candidates: Candidates, rounds: int = ROUNDS, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each candidate, after one round that warms up."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds + 1):
        for name, candidate in candidates.items():
            start = clock()
            candidate()
            times[name].append(clock() - start)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def many(candidate: Callable[[], object], calls: int) -> Callable[[], None]:
    """``candidate`` called many times: what is too short for the clock."""

    def run() -> None:
        for _ in range(calls):
            candidate()

    return run


def training_step(module: nn.Module, loss: Callable[[], Tensor], compiled: bool) -> Callable[[], Tensor]:
    """Forward and backward of ``loss``, which uses ``module``; the parameters' gradients are made anew."""
    run = torch.compile(loss, fullgraph=True) if compiled else loss

    def step() -> Tensor:
        module.zero_grad(set_to_none=True)
        value = run()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    return step


def row(title: str, candidates: Candidates, target: str = "", rounds: int = ROUNDS) -> None:
    """Prints the candidates as ratios to the one called ``plain``."""
    times = medians(candidates, rounds)
    plain = times.pop("plain")
    cells = "".join(f"{name} {seconds / plain:7.2f}x   " for name, seconds in times.items())
    print(f"{title:34}{plain * 1e3:9.3f} ms   {cells}{target and f'target {target}'}", flush=True)
