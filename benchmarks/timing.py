"""Times and memory as all benchmarks take them: in one process, the candidates in turn, medians over the rounds.

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
TWO_THREADS = "; 2 threads"  #: how the title of a line ends that was measured so
LEAST = False  #: one round of one call, to see whether all of them run
MATCH = ""  #: measure only the lines whose title contains this, where a benchmark asks

Candidates = dict[str, Callable[[], object]]


@dataclass
class Line:
    """One line of a table: what the plain candidate takes, and the others as multiples of it."""

    title: str
    seconds: float
    ratios: dict[str, float]
    target: str
    peaks: dict[str, float] = field(default_factory=dict)  #: bytes that each candidate needs beyond what was there
    saved: dict[str, float] = field(default_factory=dict)  #: bytes that are kept for backward


LINES: list[Line] = []  #: all that were printed, for whoever makes a page of them
FAILED: list[str] = []  #: what raised, and was left out: the others are measured all the same
PEERS = ("torch.masked", "numpy.ma", "polars", "pyarrow", "nested")  #: which are left out where they cannot
FOREIGN = ("numpy.ma", "polars", "pyarrow")  #: their memory is not torch's


def clock() -> float:
    """Seconds that this process has worked, or that have gone by when the GPU is idle."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def settle() -> None:
    """From here on tensors are made on ``DEVICE``."""
    torch.set_default_device(None if DEVICE == "cpu" else DEVICE)


def medians(
    candidates: Candidates, rounds: int = ROUNDS, clock: Callable[[], float] = clock, warm: bool = False
) -> dict[str, float]:
    """Median seconds of each candidate, after one round that warms up unless they are ``warm``."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    torch.set_default_device(None)
    for _ in range(rounds + (not warm)):
        for name, candidate in candidates.items():
            start = clock()
            candidate()
            times[name].append(clock() - start)
    settle()
    return {name: statistics.median(values[not warm :]) for name, values in times.items()}


def many(candidate: Callable[[], object], calls: int) -> Callable[[], None]:
    """``candidate`` called many times: what is too short for the clock."""

    def run() -> None:
        for _ in range(calls):
            candidate()

    return run


def spread(batch: int, steps: int, share: float) -> Tensor:
    """Lengths of which the mean leaves that share as padding, evenly spread about it."""
    mean = steps * (1 - share)
    reach = min(mean - 1, steps - mean)
    return torch.linspace(mean - reach, mean + reach, batch).round().long()


def training_step(module: nn.Module, loss: Callable[[], Tensor], compiled: bool = False) -> Callable[[], Tensor]:
    """Forward and backward of ``loss``, which uses ``module``; the parameters' gradients are made anew."""
    run = torch.compile(loss, fullgraph=True) if compiled else loss

    def step() -> Tensor:
        value = run()
        value.backward()  # type: ignore[no-untyped-call]
        module.zero_grad(set_to_none=True)
        return value

    return step


def saved(loss: Callable[[], object]) -> float:
    """The bytes that ``loss`` keeps for backward, each memory once."""
    kept: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        if type(x) is Tensor or type(x) is nn.Parameter:
            kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        loss()
    return sum(kept.values())


def peak(call: Callable[[], object]) -> int:
    """The bytes that ``call``, which ran before, needs at its peak beyond what is there, as torch counts them."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
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


def able(title: str, candidates: Candidates) -> Candidates:
    """Those that run; those of ours that do not are named in ``FAILED``."""
    found = {}
    for name, candidate in candidates.items():
        try:
            candidate()
            clock()  # a GPU tells later
            found[name] = candidate
        except Exception as error:  # whatever it is, the rest of the page is measured
            what = f"{title}, {name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
            print(f"{'left out' if name in PEERS else 'FAILED'}: {what}", flush=True)
            FAILED.extend([what] * (name not in PEERS))
    return found


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
    torch.set_default_device(None)
    candidates = able(title, candidates)
    settle()
    if "plain" not in candidates:
        return
    rounds, calls, warm = (1, 1, True) if LEAST else enough(candidates["plain"], rounds, calls)
    run = candidates if calls == 1 else {name: many(candidate, calls) for name, candidate in candidates.items()}
    times = {name: seconds / calls for name, seconds in medians(run, rounds, warm=warm).items()}
    plain = times.pop("plain")
    ratios = {name: seconds / plain for name, seconds in times.items()}
    torch.set_default_device(None)
    peaks = {name: float(peak(candidate)) for name, candidate in candidates.items() if name not in FOREIGN}
    kept = {name: saved(candidate) for name, candidate in (memory or {}).items() if name in candidates}
    settle()
    report(Line(title, plain, ratios, target, peaks, kept))


def enough(plain: Callable[[], object], rounds: int, calls: int) -> tuple[int, int, bool]:
    """Rounds and calls, and whether one call each was enough to warm up: few of what takes long.

    On a GPU, where a wait costs some microseconds, calls for two milliseconds.
    """
    start = clock()
    plain()
    seconds = clock() - start
    if DEVICE == "cuda":
        calls = max(calls, min(200, int(2e-3 / seconds)))
    return (min(rounds, 3), calls, True) if seconds > 0.3 else (rounds, calls, False)


def report(line: Line) -> None:
    """Prints a line of a table and remembers it."""
    LINES.append(line)
    cells = "".join(f"{name} {ratio:7.2f}x   " for name, ratio in line.ratios.items())
    peaks, kept = map(sizes, (line.peaks, line.saved))
    memory = (peaks and f"peak: {peaks}   ") + (kept and f"saved: {kept}   ")
    goal = line.target and f"goal {line.target}"
    print(f"{line.title:44}{line.seconds * 1e3:9.3f} ms   {cells}{memory}{goal}", flush=True)


def sizes(found: dict[str, float]) -> str:
    """``64 MiB; masked 1.02, by hand 2.25``: plain's, and the others as multiples of it; all in bytes without it."""
    plain, *others = found.values() if next(iter(found), None) == "plain" else (0.0,)
    if not plain:
        return ", ".join(f"{name} {size(number)}" for name, number in found.items())
    multiples = (f"{name} {multiple(number / plain)}" for name, number in zip([*found][1:], others, strict=True))
    return "; ".join(filter(None, [size(plain), ", ".join(multiples)]))


def multiple(number: float) -> str:
    """``0.5``, ``12.3``, ``44,000``."""
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def size(number: float) -> str:
    """``12 B``, ``1.5 KiB``, ``64 MiB``."""
    for unit in ("B", "KiB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} MiB"
