"""A training step on two ranks (processes over gloo) with and without ``mean_over``; wall time, as ranks wait."""

import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from random import Random
from statistics import median

import torch
from torch import Tensor, multiprocessing, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt
from masked_tensor.extend.ranks import own_group

from . import timing

RANKS = 2


KINDS = ("plain", "plain again", "one all-reduce", "mean_over")


def step(kind: str) -> float:
    """Seconds of one step: as it is, with three numbers sent by hand through the same group, with the mean.

    The plain step is measured twice: what differs there is the machine.  All ranks begin together.
    """
    dist.barrier()
    start = time.perf_counter()
    MODEL.zero_grad(set_to_none=True)
    out = MODEL(DATA)
    if kind == "one all-reduce":
        dist.all_reduce(torch.zeros(3, dtype=torch.float64), group=own_group(None))
    with mt.mean_over() if kind == "mean_over" else nullcontext():
        loss = F.mse_loss(out, TARGET)
    loss.backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - start


def perceptron() -> tuple[nn.Module, Tensor, Tensor]:
    """A model of which a step takes less than a millisecond, its input and a target."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8))
    return model, torch.randn(32, 64), torch.randn(32, 8)


def encoder() -> tuple[nn.Module, Tensor, Tensor]:
    """A transformer of the size of BERT-mini (4 layers of 256, 3 million parameters), its input and a target."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 4), nn.Linear(256, 8))
    return model, torch.randn(8, 64, 256), torch.randn(8, 64, 8)


def work(rank: int, folder: str, make: Callable[[], tuple[nn.Module, Tensor, Tensor]], rounds: int) -> None:
    """What each rank does: the steps in turn, and the medians of them."""
    global MODEL, DATA, TARGET
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    model, DATA, target = make()
    MODEL, TARGET = DistributedDataParallel(model), mt.masked_tensor(target, torch.rand_like(target) < 0.3 + 0.4 * rank)
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    turns = Random(0)  # one order on all ranks
    for _ in range(rounds + 3):
        for kind in turns.sample(KINDS, len(KINDS)):
            times[kind].append(step(kind))
    torch.save({kind: median(seconds[3:]) for kind, seconds in times.items()}, Path(folder) / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def run(small: bool) -> None:
    if not dist.is_available() or timing.DEVICE != "cpu":
        return
    cases = [("perceptron under DDP, batch 32", perceptron, 300, "1.3 of one all-reduce")]
    cases += [] if small else [("encoder (4 x 256) under DDP, batch 8 x 64", encoder, 40, "1.02")]
    for name, make, rounds, goal in cases:
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.spawn(work, (folder, make, 1 if small else rounds), nprocs=RANKS)
            times = torch.load(Path(folder) / "0.pt")
        plain = times.pop("plain")
        ratios = {kind: seconds / plain for kind, seconds in times.items()}
        timing.report(timing.Line(name, plain, ratios, goal))
