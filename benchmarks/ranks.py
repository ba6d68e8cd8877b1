"""A training step on two ranks (processes over gloo) with and without ``mean_over``; wall time, as ranks wait."""

import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from statistics import median

import torch
from torch import distributed as dist
from torch import multiprocessing, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt
from masked_tensor.shared.group_mean import own_group

from . import timing

RANKS = 2


KINDS = ("plain", "one all-reduce", "mean_over")


def step(kind: str) -> float:
    """Seconds of one step: as it is, with three numbers sent by hand through the same group, with the mean."""
    start = time.perf_counter()
    MODEL.zero_grad(set_to_none=True)
    out = MODEL(DATA)
    if kind == "one all-reduce":
        dist.all_reduce(torch.zeros(3, dtype=torch.float64), group=own_group(None))
    with mt.mean_over() if kind == "mean_over" else nullcontext():
        loss = F.mse_loss(out, TARGET)
    loss.backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - start


def work(rank: int, folder: str, rounds: int) -> None:
    """What each rank does: the steps in turn, and the medians of them."""
    global MODEL, DATA, TARGET
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    MODEL = DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)))
    DATA, TARGET = torch.randn(32, 64), mt.masked_tensor(torch.randn(32, 8), torch.rand(32, 8) < 0.3 + 0.4 * rank)
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for i in range(rounds + 3):
        for kind in KINDS if i % 2 else reversed(KINDS):
            times[kind].append(step(kind))
    torch.save({kind: median(seconds[3:]) for kind, seconds in times.items()}, Path(folder) / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def run(small: bool) -> None:
    if not dist.is_available() or timing.DEVICE != "cpu":
        return
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (folder, 1 if small else 300), nprocs=RANKS)
        times = torch.load(Path(folder) / "0.pt")
    plain = times.pop("plain")
    ratios = {kind: seconds / plain for kind, seconds in times.items()}
    timing.report(timing.Line("perceptron under DDP, batch 32", plain, ratios, "1.1"))
