"""Everyday work: ours and the same written by hand in plain torch, at ordinary sizes; 1e4 is 10,000 elements.

``by hand`` is what an expert writes without this package (``where``, ``nan_to_num``, a masked mean); ``on finite
data`` is what most people write, who multiply by the mask; ``plain`` is the op on data without a mask.  ``goal`` is for
``masked / by hand``.  Float32 and bfloat16, with one thread; float32 with two threads, too, which are timed by the
clock on the wall.  Every line compares the results value by value.
``--match TEXT`` measures the lines whose title contains the text.
"""

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from . import everyday_doors, everyday_first, everyday_models, everyday_ops, everyday_tables, timing
from .everyday_case import FINITE, Case
from .timing import Candidates, Line, able, many, medians, peak, report

CASES: list[Case] = [*everyday_models.CASES, *everyday_ops.CASES, *everyday_tables.CASES, *everyday_doors.CASES]
SECONDS = 0.6  #: about how long a line is measured


def run(small: bool) -> None:
    everyday_first.run(small)
    for case in [case for case in CASES if not (small and case.heavy)]:
        for size in case.sizes[:1] if small else case.sizes:
            kinds = [(torch.float32, 1)]
            if not small and timing.DEVICE == "cpu":
                kinds.append((torch.float32, 2))
            if not small and case.half:
                kinds.append((torch.bfloat16, 1))
            for dtype, threads in kinds:
                title = _title(case, size, dtype, threads)
                if timing.MATCH in title:
                    torch.manual_seed(0)
                    with _threads(threads):
                        attempt(title, case, size, dtype, threads)


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _title(case: Case, size: int, dtype: torch.dtype, threads: int) -> str:
    said = [case.title if len(case.sizes) == 1 else f"{case.title}, {size:.0e}".replace("e+0", "e")]
    return "; ".join(said + ["bf16"] * (dtype is torch.bfloat16)) + timing.TWO_THREADS * (threads == 2)


def attempt(title: str, case: Case, size: int, dtype: torch.dtype, threads: int) -> None:
    """The line of a case; one that raises is named at the end, and stops no other."""
    try:
        line(title, case.make(size, dtype), case.goal, threads, case.tolerance)
    except Exception:
        timing.FAILED.append(f"{title}:\n{traceback.format_exc()}")


def line(title: str, candidates: Candidates, goal: str, threads: int, tolerance: float) -> None:
    """Measures and reports one line."""
    candidates = able(title, candidates)
    if not {"plain", "by hand", "masked"} <= set(candidates):
        return
    check(title, candidates, tolerance)
    clock = timing.clock if threads == 1 else time.perf_counter
    seconds = sum(medians(candidates, 1, time.perf_counter, warm=True).values())
    calls = 1 if timing.LEAST else max(1, min(50, int(2e-3 * len(candidates) / seconds)))
    rounds = 1 if timing.LEAST else max(3, min(41, int(SECONDS / (seconds * calls))))
    run = {name: many(candidate, calls) for name, candidate in candidates.items()}
    times = {name: value / calls for name, value in medians(run, rounds, clock, warm=timing.LEAST).items()}
    times = {name: max(value, 1e-9) for name, value in times.items()}  # one call may be shorter than a tick
    plain = times.pop("plain")
    ratios = {name: value / plain for name, value in times.items()}
    ratios |= {f"masked / {name}": times["masked"] / times[name] for name in ("by hand", FINITE) if name in times}
    peaks = {}
    if threads == 1:
        peaks = {name: float(peak(candidates[name])) for name in ("plain", "by hand", "masked")}
    report(Line(title, plain, ratios, goal, peaks))


def check(title: str, candidates: Candidates, tolerance: float) -> None:
    """By hand and ours give one result, value by value, or it is said at the end."""
    ours = candidates["masked"]()
    for name in {"by hand", FINITE} & set(candidates):
        hand = candidates[name]()
        if not isinstance(hand, Tensor) or not isinstance(ours, Tensor):
            timing.FAILED.append(f"{title}, {name}: no tensors to compare: {type(hand)}, {type(ours)}")
            continue
        found = (ours.filled(0) if hasattr(ours, "filled") else ours).detach().float()
        wanted = hand.detach().nan_to_num(0).float()
        if not torch.allclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
            timing.FAILED.append(f"{title}, {name}: the results differ by {(found - wanted).abs().max():.3g}")
