"""Models on a GPU: training steps in bfloat16 by autocast with AdamW, half of the batch padding, beside a mask by hand.

Each model runs eagerly, compiled and captured in a CUDA graph; by hand, masked, packed and flat.  Making the batch is
part of an eager and of a compiled step, and is done once before a capture, which replays one batch.

``python -m benchmarks.models_cuda`` takes less than four minutes on an H100.  It prints a table for
``benchmarks/cost_cuda.md``; what raises is named there.  ``--device cpu --small`` shows that it runs, without
the captures.
"""

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import masked_tensor as mt

from .flat_models import Case, Size, bert, encoder, llama

KINDS = ("by hand", "masked", "packed", "flat")
WAYS = ("eager", "compiled", "captured")
COMPILED = ("BERT, 4 layers, 32 x 128", "encoder 64 x 128")  #: to compile one for each kind takes the longest
CASES: dict[str, tuple[Callable[[Size], Case], Size]] = {
    "BERT-base 32 x 128": (bert, Size("", 12, 768, 32, 128, 30000, 0.1)),
    "BERT-base 16 x 512": (bert, Size("", 12, 768, 16, 512, 30000, 0.1)),
    "BERT-base 128 x 512": (bert, Size("", 12, 768, 128, 512, 30000, 0.1)),
    "Llama 16 x 512": (llama, Size("", 12, 768, 16, 512, 30000)),
    "BERT, 4 layers, 32 x 128": (bert, Size("", 4, 768, 32, 128, 30000, 0.1)),
    "encoder 64 x 128": (encoder, Size("", 6, 512, 64, 128, 0, 0.1)),
}
SMALL = {"layers": 1, "width": 32, "sequences": 3, "time": 8, "vocabulary": 50, "dropout": 0.0}
ROUNDS, WARM = 7, 3


class Step:
    """A whole step of one kind: the batch, the model, the loss, gradients, AdamW."""

    def __init__(self, case: Case, kind: str, device: str) -> None:
        self.case, self.kind, self.device = case, kind, device
        self.model = copy.deepcopy(case.model).to(device).train()
        if kind == "flat":
            mt.flat(self.model)
        self.called: Any = self.model
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), 1e-4, fused=device == "cuda", capturable=device == "cuda"
        )
        self.data, self.valid, self.targets = (x.to(device) for x in (case.data, case.valid, case.targets))
        self.lengths = case.valid.sum(1).tolist()  # as a collate function has them, on the host
        self.batch: Any = None  #: made before, for a capture

    def made(self) -> Any:
        """The batch, as its kind wants it."""
        if self.kind == "by hand":
            return self.data
        return mt.from_lengths(self.data, self.lengths, packed=self.kind != "masked")

    def loss(self) -> Tensor:
        """Of one batch."""
        batch = self.made() if self.batch is None else self.batch
        with torch.autocast(self.device, torch.bfloat16, cache_enabled=self.batch is None):
            if self.kind == "by hand":
                return self.case.by_hand(self.called, batch, self.valid, self.targets)
            return self.case.ours(self.called, batch, self.targets).filled(0.0)  # type: ignore[attr-defined, no-any-return]

    def __call__(self) -> None:
        """The step."""
        self.optimizer.zero_grad(set_to_none=True)
        self.loss().backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def compiled(self) -> "Step":
        """With its model compiled; the loss is eager."""
        self.called = torch.compile(self.model)
        return self

    def captured(self) -> Callable[[], None]:
        """A CUDA graph of the step, for one batch."""
        self.batch = self.made()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM):
                self()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.loss().backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
        return graph.replay


def now(device: str) -> float:
    """Seconds, when the GPU is idle."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def medians(steps: dict[str, Callable[[], object]], device: str, rounds: int) -> dict[str, float]:
    """Milliseconds of each, in turn; they have run before."""
    times: dict[str, list[float]] = {kind: [] for kind in steps}
    for _ in range(rounds):
        for kind, step in steps.items():
            start = now(device)
            step()
            times[kind].append(now(device) - start)
    return {kind: 1e3 * statistics.median(taken) for kind, taken in times.items()}


def measured(case: Case, way: str, device: str, rounds: int) -> tuple[dict[str, float], list[str]]:
    """Milliseconds of each kind that runs, and what is said of the others."""
    steps: dict[str, Callable[[], object]] = {}
    failed = []
    for kind in KINDS:
        try:
            step = Step(case, kind, device)
            run = {"eager": lambda s=step: s, "compiled": step.compiled, "captured": step.captured}[way]()
            for _ in range(WARM if rounds > 1 else 1):
                run()
            now(device)  # a GPU tells later
            steps[kind] = run
        except Exception as error:  # the others are measured all the same
            failed.append(f"{kind}: {type(error).__name__}: {str(error).partition(chr(10))[0][:160]}")
    return medians(steps, device, rounds), failed


def table(found: dict[tuple[str, str], dict[str, float]], where: str) -> str:
    """In Markdown: by hand in milliseconds, the others as multiples of it."""
    head = ["training step", "", "by hand, ms", *KINDS[1:]]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for (name, way), times in found.items():
        by_hand = times.get(KINDS[0])
        cells = [f"{times[kind] / by_hand:.2f}" if by_hand and kind in times else "" for kind in KINDS[1:]]
        lines.append(f"| {' | '.join([name, way, f'{by_hand:.1f}' if by_hand else '', *cells])} |")
    return "\n".join([*lines, "", f"({where})"])


def run(device: str, small: bool, names: list[str], ways: list[str]) -> dict[tuple[str, str], dict[str, float]]:
    """Each case in each way; prints what it finds at once."""
    found = {}
    for name in names or CASES:
        make, size = CASES[name]
        torch.manual_seed(0)
        case = make(replace(size, **SMALL) if small else size)  # type: ignore[arg-type]  # numbers
        for way in ways:
            if way == "compiled" and not small and name not in COMPILED:
                continue
            start = time.perf_counter()
            torch.compiler.reset()
            times, failed = measured(case, way, device, 1 if small else ROUNDS)
            found[name, way] = times
            said = "  ".join(f"{kind} {ms:.2f}" for kind, ms in times.items())
            print(f"{name}, {way}: {said} ms; {time.perf_counter() - start:.0f} s", flush=True)
            print("".join(f"    left out: {what}\n" for what in failed), end="", flush=True)
            if device == "cuda":
                torch.cuda.empty_cache()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[*CASES, []])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny sizes, one round: does it run?")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=[])
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    on_gpu = options.device == "cuda"
    ways = options.ways or (list(WAYS) if on_gpu else ["eager"])
    found = run(options.device, options.small, options.names, ways)
    where = torch.cuda.get_device_name() if on_gpu else "CPU"
    print(f"\n{table(found, f'{where}, bf16 autocast, AdamW, half padding; torch {torch.__version__}')}")


if __name__ == "__main__":
    main()
