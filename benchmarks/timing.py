"""Times as all benchmarks take them: in one process, the candidates in turn, medians over the rounds.

On the CPU it is processor time, which other work on the machine does not add to; on a GPU the time until it is idle.
``torch.utils.benchmark`` measures one candidate after the other, so that a slow minute of the machine falls on one of
them; here it falls on all.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

ROUNDS = 9
DEVICE = "cpu"  #: where tensors are made while nothing is timed: torch's default device slows every call
LEAST = False  #: one round of one call, to see whether all of them run

Candidates = dict[str, Callable[[], object]]


@dataclass
class Line:
    """One line of a table: what the plain candidate takes, and the others as multiples of it."""

    title: str
    seconds: float
    ratios: dict[str, float]
    target: str
    saved: dict[str, float] = field(default_factory=dict)


LINES: list[Line] = []  #: all that were printed, for whoever makes a page of them


def clock() -> float:
    """Seconds that this process has worked, or that have gone by when the GPU is idle."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def settle() -> None:
    """From here on tensors are made on ``DEVICE``."""
    torch.set_default_device(None if DEVICE == "cpu" else DEVICE)


def medians(candidates: Candidates, rounds: int = ROUNDS, clock: Callable[[], float] = clock) -> dict[str, float]:
    """Median seconds of each candidate, after one round that warms up."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    torch.set_default_device(None)
    for _ in range(rounds + 1):
        for name, candidate in candidates.items():
            start = clock()
            candidate()
            times[name].append(clock() - start)
    settle()
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def many(candidate: Callable[[], object], calls: int) -> Callable[[], None]:
    """``candidate`` called many times: what is too short for the clock."""

    def run() -> None:
        for _ in range(calls):
            candidate()

    return run


def training_step(module: nn.Module, loss: Callable[[], Tensor], compiled: bool = False) -> Callable[[], Tensor]:
    """Forward and backward of ``loss``, which uses ``module``; the parameters' gradients are made anew."""
    run = torch.compile(loss, fullgraph=True) if compiled else loss

    def step() -> Tensor:
        module.zero_grad(set_to_none=True)
        value = run()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    return step


def saved(loss: Callable[[], object]) -> float:
    """MiB that ``loss`` keeps for backward, each memory once."""
    kept: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        if type(x) is Tensor or type(x) is nn.Parameter:
            kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        loss()
    return sum(kept.values()) / 2**20


def peak(call: Callable[[], object]) -> int:
    """The bytes that ``call`` needs at its peak beyond what is there before, as torch's allocator counts them."""
    call()
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    now = most = 0
    for event in profile.profiler.kineto_results.events():  # type: ignore[union-attr]  # in the order of time
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most


def row(
    title: str,
    candidates: Candidates,
    target: str = "",
    rounds: int = ROUNDS,
    calls: int = 1,
    memory: Candidates | None = None,
) -> None:
    """Prints the candidates as ratios to the one called ``plain``, each called ``calls`` times in a round.

    ``memory``: of these, what is kept for backward, too.
    """
    rounds, calls = (1, 1) if LEAST else (rounds, calls)
    run = candidates if calls == 1 else {name: many(candidate, calls) for name, candidate in candidates.items()}
    times = {name: seconds / calls for name, seconds in medians(run, rounds).items()}
    plain = times.pop("plain")
    ratios = {name: seconds / plain for name, seconds in times.items()}
    kept = {name: saved(candidate) for name, candidate in (memory or {}).items()}
    report(title, plain, ratios, target, kept)


def report(
    title: str, plain: float, ratios: dict[str, float], target: str = "", kept: dict[str, float] | None = None
) -> None:
    """Prints a line of a table and remembers it."""
    kept = kept or {}
    LINES.append(Line(title, plain, ratios, target, kept))
    cells = "".join(f"{name} {ratio:7.2f}x   " for name, ratio in ratios.items())
    stored = "".join(f"{name} {mib:.1f} MiB   " for name, mib in kept.items())
    goal = target and f"goal {target}"
    print(f"{title:44}{plain * 1e3:9.3f} ms   {cells}{stored and f'saved: {stored}'}{goal}", flush=True)
