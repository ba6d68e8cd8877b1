"""``python -m tests.distributed [ranks ...]``: every wrapper, loss and number of parts against one process.

Ranks are processes that meet over gloo.  Each configuration trains one step on uneven shards, of which one has nothing
valid, and compares the loss and all gradients with those of one process that has everything.  With ``--again 50`` all
of it is done so often, with new processes each time: a wrong order of collectives would hang now and then.
"""

import argparse
import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt

from .helpers.ranks import start_ranks

ROWS = 24
WRAPPERS = ("ddp", "fsdp2", "fsdp1", "tensor", "pipeline")
Loss = Callable[[Tensor, Tensor], Tensor]
Case = tuple[str, str, int]


def data() -> tuple[Tensor, Any, Any]:
    """Inputs, targets and labels, partly masked; the first third has few valid targets, its start has none."""
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


def counts(loss: str) -> list[float]:
    """How many targets (or what sum of weights) each mean of a loss has in all."""
    targets, labels = data()[1], data()[2]
    number = {"squares": int(targets.count()), "classes": int(labels.count())}
    number["weighted"] = float(WEIGHT[labels.compressed()].sum())
    return [number["squares"], number["classes"]] if loss == "both" else [number[loss]]


def model() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()


def shard(rank: int, part: int, ranks: int, parts: int) -> Tensor:
    """The rows of one part on one rank: contiguous, and the longer the later."""
    cuts = [ROWS * i * (i + 1) // (ranks * parts * (ranks * parts + 1)) for i in range(ranks * parts + 1)]
    place = rank * parts + part
    return torch.arange(cuts[place], cuts[place + 1])


def wrapped(kind: str, mesh: Any) -> nn.Module:
    m = model()
    if kind == "ddp":
        return DistributedDataParallel(m)
    if kind == "fsdp1":
        return FullyShardedDataParallel(m, device_id=torch.device("cpu"), use_orig_params=True)
    if kind == "tensor":
        parallelize_module(m, mesh["other"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        return fully_shard(m, mesh=mesh["data"])
    return fully_shard(m)


@contextlib.contextmanager
def without_sync(m: Any, last: bool) -> Iterator[None]:
    """The wrapper adds up gradients in the last part only."""
    if isinstance(m, DistributedDataParallel | FullyShardedDataParallel):
        with contextlib.nullcontext() if last else m.no_sync():
            yield
    else:
        m.set_requires_gradient_sync(last)
        yield


def gradients(m: nn.Module) -> list[Tensor]:
    """All of them, whole, on every rank."""
    sharded = isinstance(m, FullyShardedDataParallel)
    whole = FullyShardedDataParallel.summon_full_params(m, with_grads=True) if sharded else contextlib.nullcontext()
    with whole:
        grads: Any = [p.grad for p in m.parameters()]
        return [(g.full_tensor() if hasattr(g, "full_tensor") else g).clone() for g in grads]


def train(m: nn.Module, loss: str, group: Any, parts: int) -> tuple[float, list[Tensor]]:
    """One step on this rank's shards: the mean, as it is reported, and all gradients."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    known = counts(loss) if loss == "both" else None
    if parts == 1:
        mean = mt.mean_over(group=group)
    else:  # one loss: its counts need not be known
        mean = mt.mean_over(None if known else m.parameters(), count=known, group=group)
    total = torch.zeros((), dtype=torch.float64)
    for part in range(parts):
        rows = shard(rank, part, ranks, parts)
        with without_sync(m, part == parts - 1):
            out = m(data()[0][rows])
            with mean:
                value = LOSSES[loss](out, rows)
            value.backward()
        total = total + value.detach()
    if parts > 1:
        total = shared(total, group) if known else mean.finish()
    return float(total), gradients(m)


def shared(total: Tensor, group: Any) -> Tensor:
    """The mean of which ``total`` is this rank's share."""
    total = total.filled(0) if mt.is_masked_tensor(total) else total  # type: ignore[attr-defined]
    dist.all_reduce(total, group=group)
    return total / dist.get_world_size(group)


def pipelined(loss: str, mesh: Any, parts: int) -> tuple[float | None, dict[str, Tensor]]:
    """The same through stages that take turns: the mean on the last, and of each stage the gradients by name."""
    group, at, stages = mesh["data"].get_group(), mesh["other"].get_local_rank(), mesh["other"].size()
    m = model()
    for i in ((2,) if at == 0 else (0, 1)) if stages == 2 else ():
        m[i] = nn.Identity()
    stage = PipelineStage(m, at, stages, torch.device("cpu"), group=mesh["other"].get_group())
    mean = mt.mean_over(count=counts(loss), group=mesh["data"])

    def over(out: Tensor, rows: Tensor) -> Tensor:
        with mean:
            return LOSSES[loss](out, rows)

    schedule = (ScheduleGPipe if parts == 1 else Schedule1F1B)(stage, parts, loss_fn=over, scale_grads=False)
    cuts = [0, ROWS] if mesh["data"].size() == 1 else [0, ROWS // 4, ROWS]  # micro-batches have one size
    rows = torch.arange(*cuts[mesh["data"].get_local_rank() :][:2])
    losses: list[Tensor] = []
    given = (data()[0][rows],) if at == 0 else ()
    schedule.step(*given, **({"target": rows, "losses": losses} if at == stages - 1 else {}))
    value = float(shared(sum(losses, torch.zeros(())).detach(), group)) if losses else None
    found = {name: shared(p.grad, group) for name, p in m.named_parameters() if p.grad is not None}
    return value, found


def expected(loss: str) -> tuple[float, dict[str, Tensor]]:
    m = model()
    value = LOSSES[loss](m(data()[0]), torch.arange(ROWS))
    value.backward()
    return value.item(), {name: p.grad for name, p in m.named_parameters() if p.grad is not None}


def configurations(wrappers: tuple[str, ...], several: tuple[int, ...]) -> list[Case]:
    every = itertools.product(wrappers, LOSSES, several)
    possible = lambda kind, parts: parts == 1 and kind != "pipeline"  # noqa: E731 (of a loss that is no sum of means)
    return [(kind, loss, parts) for kind, loss, parts in every if loss != "bent" or possible(kind, parts)]


def error(case: Case, mesh: Any) -> float:
    """The greatest absolute error of the loss and all gradients on this rank."""
    kind, loss, parts = case
    true, grads = expected(loss)
    value: float | None
    if kind == "pipeline":
        value, found = pipelined(loss, mesh, parts)
    else:
        group = mesh["data"].get_group() if kind == "tensor" else dist.group.WORLD
        value, all_of_them = train(wrapped(kind, mesh), loss, group, parts)
        found = dict(zip(grads, all_of_them, strict=True))
    errors = [float((g - grads[name]).abs().max()) for name, g in found.items()]
    assert errors, "no gradient arrived"
    return max([*errors, *([] if value is None else [abs(value - true)])])


def work(rank: int, ranks: int, folder: str, wrappers: tuple[str, ...], several: tuple[int, ...]) -> None:
    """What one rank does: every configuration, in one order."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=ranks)
    mesh = init_device_mesh("cpu", (max(1, ranks // 2), min(2, ranks)), mesh_dim_names=("data", "other"))
    worst = {case: error(case, mesh) for case in configurations(wrappers, several)}
    torch.save(worst, Path(folder) / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def worst_errors(
    ranks: int, wrappers: tuple[str, ...] = WRAPPERS, several: tuple[int, ...] = (1, 2, 3)
) -> dict[Case, float]:
    """The greatest absolute error of each configuration over all ranks."""
    with tempfile.TemporaryDirectory() as folder:
        start_ranks(work, ranks, folder, wrappers, several)
        found = [torch.load(Path(folder) / f"{rank}.pt") for rank in range(ranks)]
    return {key: max(each[key] for each in found) for key in found[0]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ranks", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--wrappers", nargs="*", default=WRAPPERS)
    parser.add_argument("--parts", nargs="*", type=int, default=(1, 2, 3))
    parser.add_argument("--again", type=int, default=1)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for time, number in itertools.product(range(options.again), options.ranks):
        errors = worst_errors(number, tuple(options.wrappers), tuple(options.parts))
        if time == 0:
            for key, value in errors.items():
                print(number, "ranks", *key, "parts", f"{value:.1e}", flush=True)
        print(f"{number} ranks, run {time + 1}: at most {max(errors.values()):.1e}", flush=True)
