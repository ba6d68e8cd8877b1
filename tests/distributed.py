"""``python -m tests.distributed [ranks ...]``: every wrapper, loss and number of parts against one process.

Ranks are processes that meet over gloo.  Each configuration trains one step on uneven shards, of which one has nothing
valid, and compares the loss and all gradients with those of one process that has everything.
"""

import contextlib
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt

ROWS = 24
WRAPPERS = ("ddp", "fsdp2")
Loss = Callable[[Tensor, slice | Tensor], Tensor]


def data() -> tuple[Tensor, Any, Any]:
    """Inputs, targets with holes, and labels with holes; the first third has few valid targets, its start has none."""
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(ROWS, n, dtype=torch.float64, generator=generator) for n in (3, 2))
    share = torch.where(torch.arange(ROWS) < ROWS // 3, 0.2, 0.9).unsqueeze(1)
    valid = torch.rand(ROWS, 2, generator=generator) < share
    valid[: ROWS // 12] = False
    labels = torch.randint(0, 2, (ROWS,), generator=generator)
    return x, mt.masked_tensor(y, valid), mt.masked_tensor(labels, valid[:, 0])


def squares(out: Tensor, rows: Tensor) -> Tensor:
    return F.mse_loss(out, data()[1][rows])


def classes(out: Tensor, rows: Tensor) -> Tensor:
    return F.cross_entropy(out, data()[2][rows])


def weighted(out: Tensor, rows: Tensor) -> Tensor:
    return F.cross_entropy(out, data()[2][rows], weight=WEIGHT)


def both(out: Tensor, rows: Tensor) -> Tensor:
    return squares(out, rows) + classes(out, rows)


def bent(out: Tensor, rows: Tensor) -> Tensor:
    """A use of means that is not linear: exact only if each mean is the whole one."""
    return squares(out, rows).sqrt() + classes(out, rows).exp()


WEIGHT = torch.tensor([0.25, 2.0], dtype=torch.float64)
LOSSES: dict[str, Loss] = {f.__name__: f for f in (squares, classes, weighted, both, bent)}  # type: ignore[misc]
COUNTED = ("both",)  # over several parts: their counts must be known


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()


def shard(rank: int, part: int, ranks: int, parts: int) -> Tensor:
    """The rows of one part on one rank: contiguous, and the longer the later."""
    cuts = [ROWS * i * (i + 1) // (ranks * parts * (ranks * parts + 1)) for i in range(ranks * parts + 1)]
    place = rank * parts + part
    return torch.arange(cuts[place], cuts[place + 1])


def wrapped(kind: str) -> nn.Module:
    m = model()
    if kind == "ddp":
        return DistributedDataParallel(m)
    fully_shard(m)
    return m


@contextlib.contextmanager
def without_sync(m: Any, last: bool) -> Iterator[None]:
    """The wrapper adds up gradients in the last part only."""
    if isinstance(m, DistributedDataParallel):
        with contextlib.nullcontext() if last else m.no_sync():
            yield
    else:
        m.set_requires_gradient_sync(last)
        yield


def train(m: nn.Module, loss: str, rank: int, ranks: int, parts: int) -> tuple[float, list[Tensor]]:
    """One step on this rank's shards: the mean, as it is reported, and all gradients."""
    counts = [int(data()[1].count()), int(data()[2].count())] if loss in COUNTED else None
    mean = mt.mean_over() if parts == 1 else mt.mean_over(count=counts) if counts else mt.mean_over(m.parameters())
    total = torch.zeros((), dtype=torch.float64)
    for part in range(parts):
        rows = shard(rank, part, ranks, parts)
        with without_sync(m, part == parts - 1):
            out = m(data()[0][rows])
            with mean:
                value = LOSSES[loss](out, rows)
            value.backward()
        total = total + value.detach()
    if parts > 1 and not counts:
        total = mean.finish()
    elif parts > 1:
        total = total.filled(0) if mt.is_masked_tensor(total) else total  # this rank's share
        dist.all_reduce(total)
        total = total / ranks
    grads = [p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad for p in m.parameters()]
    return float(total), [g.clone() for g in grads]


def expected(loss: str) -> tuple[float, list[Tensor]]:
    m = model()
    value = LOSSES[loss](m(data()[0]), torch.arange(ROWS))
    value.backward()
    return value.item(), [p.grad for p in m.parameters()]  # type: ignore[misc]


def configurations(wrappers: tuple[str, ...], several: tuple[int, ...]) -> list[tuple[str, str, int]]:
    every = itertools.product(wrappers, LOSSES, several)
    return [(kind, loss, parts) for kind, loss, parts in every if parts == 1 or loss != "bent"]


def work(rank: int, ranks: int, folder: str, wrappers: tuple[str, ...], several: tuple[int, ...]) -> None:
    """What one rank does: every configuration, in one order."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=ranks)
    worst: dict[tuple[str, str, int], float] = {}
    for kind, loss, parts in configurations(wrappers, several):
        value, grads = train(wrapped(kind), loss, rank, ranks, parts)
        true, gradients = expected(loss)
        errors = [abs(value - true), *(float((g - e).abs().max()) for g, e in zip(grads, gradients, strict=True))]
        worst[kind, loss, parts] = max(errors)
    torch.save(worst, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


def worst_errors(
    ranks: int, wrappers: tuple[str, ...] = WRAPPERS, several: tuple[int, ...] = (1, 2, 3)
) -> dict[tuple[str, str, int], float]:
    """The greatest absolute error of each configuration over all ranks."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (ranks, folder, wrappers, several), nprocs=ranks)
        found = [torch.load(Path(folder) / f"{rank}.pt") for rank in range(ranks)]
    return {key: max(each[key] for each in found) for key in found[0]}


if __name__ == "__main__":
    for number in [int(n) for n in sys.argv[1:]] or [1, 2, 4]:
        for key, error in worst_errors(number).items():
            print(number, "ranks", *key, "parts", f"{error:.1e}", flush=True)
