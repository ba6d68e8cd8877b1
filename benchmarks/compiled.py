"""Compiled training steps: batch and loss inside of the graph, half of the batch padding, beside the same by hand.

By hand is plain data with a mask that the code takes care of, compiled in the same way.  *Loss eager* compiles the
model alone, so that masked tensors enter and leave its graph.  Making the batch is part of every step.

``python -m benchmarks.compiled [model ...]`` prints the table of ``docs/compiling.md``.  With ``--batches 24`` it
trains on so many batches of random sizes instead, and prints how many graphs that makes and the seconds it takes.
"""

import argparse
import os
import random
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

import masked_tensor as mt

from .flat_models import TAGS, Case, Size, bert, encoder, llama
from .packed import check
from .timing import row, training_step

MODELS: dict[str, tuple[Callable[[Size], Case], Size]] = {
    "one layer": (encoder, Size("1 x 32, 8 x 32", 1, 32, 8, 32)),
    "four layers": (encoder, Size("4 x 32, 8 x 32", 4, 32, 8, 32)),
    **(
        {
            "BERT": (bert, Size("2 x 64, 8 x 32", 2, 64, 8, 32)),
            "Llama": (llama, Size("2 x 128, 8 x 32", 2, 128, 8, 32)),
        }
        if find_spec("transformers")
        else {}
    ),
}
LEAST = Size("1 x 16, 3 x 8", 1, 16, 3, 8)
SPARE = 1.1  #: a capacity beyond the valid steps, as a batch of another day needs
GOALS = {"one layer": "1.05, packed 1.1, capacity 1.25"}


def steps(case: Case, backend: str) -> dict[str, Callable[[], Tensor]]:
    """The losses to compute, all of one value, each by graphs of its own."""
    data, targets, lengths, model = case.data, case.targets, case.valid.sum(1), case.model
    capacity = int(SPARE * int(lengths.sum()))

    def inside(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return torch.compile(function, backend=backend, fullgraph=True)

    def loss(x: Any, targets: Tensor) -> Tensor:
        return case.ours(model, x, targets).filled(0.0)  # type: ignore[attr-defined, no-any-return]

    by_hand = inside(lambda x, valid, targets: case.by_hand(model, x, valid, targets))
    masked = inside(lambda x, lengths, targets: loss(mt.from_lengths(x, lengths), targets))
    packed = inside(loss)
    full = inside(lambda x, lengths, targets: loss(mt.from_lengths(x, lengths).packed(capacity=capacity), targets))
    alone: Any = torch.compile(model, backend=backend)

    def eager_loss(x: Any) -> Tensor:
        return case.ours(alone, x, targets).filled(0.0)  # type: ignore[attr-defined, no-any-return]

    return {
        "plain": lambda: by_hand(data, case.valid, targets),
        "masked": lambda: masked(data, lengths, targets),
        "packed": lambda: packed(case.masked().packed(), targets),
        "capacity": lambda: full(data, lengths, targets),
        "masked, loss eager": lambda: eager_loss(case.masked()),
        "packed, loss eager": lambda: eager_loss(case.masked().packed()),
    }


def run(small: bool, names: list[str] | None = None, rounds: int = 25) -> None:
    """The table."""
    for name in names or [*MODELS][: 1 if small else None]:
        make, size = MODELS[name]
        torch.manual_seed(0)
        torch.compiler.reset()
        case = make(LEAST if small else size)
        losses = steps(case, "aot_eager" if small else "inductor")
        title = f"{name} ({LEAST.name if small else size.name})"
        check(title, losses, 1e-3)
        timed = {kind: training_step(case.model, loss) for kind, loss in losses.items()}
        row(title, timed, GOALS.get(name, ""), rounds, calls=10)


def seconds() -> float:
    """That this process and the compilers it has called worked."""
    return sum(os.times()[:4])


def step_of(case: Case, kind: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The loss of a batch, by hand or masked."""

    def by_hand(data: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        return case.by_hand(case.model, data, torch.arange(data.shape[1]) < lengths[:, None], targets)

    def masked(data: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        return case.ours(case.model, mt.from_lengths(data, lengths), targets).filled(0.0)  # type: ignore[attr-defined, no-any-return]

    return by_hand if kind == "by hand" else masked


def batches(name: str, number: int, backend: str, small: bool = False) -> dict[str, tuple[int, float]]:
    """Graphs and seconds of training on so many batches of random sizes, by hand and masked."""
    make, size = MODELS[name]
    found = {}
    for kind in ("by hand", "masked"):
        torch.manual_seed(0)
        torch.compiler.reset()
        case, draw = make(LEAST if small else size), random.Random(0)
        counter = CompileCounterWithBackend(backend)
        step = torch.compile(step_of(case, kind), backend=counter, fullgraph=True)
        start = seconds()
        for _ in range(number):
            shape = draw.randint(2, 12), draw.randint(4, 48)
            lengths = torch.randint(1, shape[1] + 1, shape[:1])
            if case.data.dtype is torch.long:
                data, targets = torch.randint(5, size.vocabulary, shape), torch.randint(0, TAGS, shape)
            else:
                data = targets = torch.randn(*shape, case.data.shape[2])
            step(data, lengths, targets).backward()  # type: ignore[no-untyped-call]
            case.model.zero_grad()
        found[kind] = counter.frame_count, seconds() - start
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[*MODELS, []])
    parser.add_argument("--batches", type=int, default=0, help="count graphs over so many instead")
    parser.add_argument("--backend", nargs="*", default=["aot_eager", "inductor"], help="of --batches")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--small", action="store_true", help="one tiny model, traced only: does it run?")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.batches:
        run(options.small, options.names, options.rounds)
        return
    torch.compiler.config.force_disable_caches = True
    for name in options.names or MODELS:
        for backend in options.backend:
            found = batches(name, options.batches, backend, options.small)
            said = "  ".join(f"{kind}: {graphs} graphs, {s:.1f} s" for kind, (graphs, s) in found.items())
            print(f"{name}, {backend}: {said}; {found['masked'][1] / found['by hand'][1]:.2f} times", flush=True)


if __name__ == "__main__":
    main()
