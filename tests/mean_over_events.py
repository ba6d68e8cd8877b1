"""``python -m tests.mean_over_events [ranks ...]``: what happens to real training loops between a loss and its step.

Every loss x event x wrapper: a micro-batch raises, is skipped, is empty or wholly masked, is tried again; steps have
different numbers of micro-batches, run in an optimizer's closure, or end in a metric of which a rank has no batch.
Loss and gradients are those of one process that has what was kept.  What only some ranks do ends in an error on every
rank.
"""

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import masked_tensor as mt

from .distributed import LOSSES, data, gradients, model, shard, shared, wrapped
from .distributed import without_sync as wrapper_without_sync
from .helpers.ranks import start_ranks

WRAPPERS = ("plain", "plain sum", "ddp", "fsdp2", "fsdp2 sum", "tensor")
EVENTS = ("none", "raises", "raises before", "skips", "skips inside", "empty", "masked", "all masked", "retries")
EVENTS += ("raises late", "fewer parts", "closure", "metric")
ONE_SIDED = ("one skips", "one raises", "one raises in backward", "one has fewer", "one takes a metric", "one ends")
NOT_POSSIBLE = (("both", "closure"), ("both", "raises late"))  # a known count has nothing to finish, and gives no total
PARTS, AT = 3, 1  # of PARTS parts, that at AT is the odd one
TIMEOUT = 8  # seconds; of the one-sided events
Case = tuple[str, str, str]
Plan = list[tuple[Tensor, str]]


class Odd(Exception):
    """What goes wrong in a part."""


def plan(event: str, rank: int, ranks: int, parts: int = PARTS) -> Plan:
    """The rows of each part on a rank, and what becomes of it."""
    found = [(shard(rank, part, ranks, parts), "keeps") for part in range(parts)]
    rows, first = found[min(AT, parts - 1)][0], rank == 0
    nothing = torch.tensor([0, 1])  # of which no target is valid
    odd = {
        "raises": (rows, "raises"),
        "raises before": (rows, "raises before"),
        "skips": (rows, "skips"),
        "skips inside": (rows, "skips inside"),
        "empty": (rows[:0] if first else rows, "keeps"),
        "masked": (nothing if first else rows, "keeps"),
        "retries": (rows, "retries" if first else "keeps"),
        "raises late": (rows, "raises late"),
        "one skips": (rows, "skips" if first else "keeps"),
        "one raises": (rows, "raises" if first else "keeps"),
        "one raises in backward": (rows, "raises in backward" if first else "keeps"),
        "one takes a metric": (rows, "takes a metric" if first else "keeps"),
        "one ends": (rows, "ends" if first else "keeps"),
    }
    if event in odd:
        found[min(AT, parts - 1)] = odd[event]
    if event == "all masked":
        found[0] = nothing, "keeps"
    if event == "one has fewer" and first:
        found.pop()
    return found


def kept(event: str, ranks: int, parts: int = PARTS) -> Tensor:
    """All rows that count, of all ranks."""
    everything = [part for rank in range(ranks) for part in plan(event, rank, ranks, parts)]
    return torch.cat([rows for rows, act in everything if act in ("keeps", "retries", "raises late")])


def whole_count(loss: str, rows: Tensor) -> list[float]:
    targets, labels = data()[1][rows], data()[2][rows]
    return [float(targets.count()), float(labels.count())]


def take(m: nn.Module, mean: Any, loss: str, rows: Tensor, act: str) -> Tensor:
    """One micro-batch as a user writes it."""
    out = m(data()[0][rows])
    with mean:
        if act in ("raises before", "retries"):
            raise Odd
        value = LOSSES[loss](out, rows)
        if act == "raises":
            raise Odd
        if act == "raises in backward":
            value.backward()
            raise Odd
        if act == "skips inside":
            mean.skip()
    if act == "skips":
        mean.skip()
    if act.startswith("skips"):
        return value.detach() * 0
    value.backward()
    if act == "raises late":
        raise Odd
    return value.detach()


@contextlib.contextmanager
def without_sync(m: nn.Module, last: bool) -> Iterator[None]:
    with contextlib.nullcontext() if type(m) is nn.Sequential else wrapper_without_sync(m, last):
        yield


def accumulate(m: nn.Module, mean: Any, loss: str, parts: Plan) -> Tensor:
    """All micro-batches of a step, some of which may go wrong."""
    total = torch.zeros((), dtype=torch.float64)
    for i, (rows, act) in enumerate(parts):
        with without_sync(m, i == len(parts) - 1):
            try:
                total = total + take(m, mean, loss, rows, act)
            except Odd:
                if act == "retries":
                    total = total + take(m, mean, loss, rows, "keeps")
        if act == "ends":
            os._exit(0)
        if act == "takes a metric":
            metric = mt.mean_over(())
            metric.mean(torch.ones(1))
            metric.finish()
    return total


def train(m: nn.Module, mean: Any, loss: str, parts: Plan, event: str, group: Any) -> float:
    """One step on this rank: the mean, as it is reported."""
    if event == "closure":
        optimizer, found = torch.optim.SGD(m.parameters(), lr=0.0), []

        def closure() -> Tensor:
            found.append(accumulate(m, mean, loss, parts[AT:]) * 0 + mean.finish())
            return found[-1]

        accumulate(m, mean, loss, [*parts[:AT], (parts[AT][0][:0], "keeps")])
        optimizer.step(closure)
        return float(found[-1])
    total = accumulate(m, mean, loss, parts)
    if loss != "both":
        return float(mean.finish())
    return float(shared(total.clone(), group))


def summed(m: nn.Module, kind: str) -> nn.Module:
    """Wrapped so that the gradients of the ranks are added, not averaged."""
    if kind == "fsdp2 sum":
        found = fully_shard(m)
        found.set_gradient_divide_factor(1.0)
        return found
    return m


def error(case: Case, mesh: Any) -> float:
    """The greatest absolute error of the loss and all gradients on this rank."""
    kind, loss, event = case
    group = mesh["data"].get_group() if kind == "tensor" else dist.group.WORLD
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    sums = kind.endswith("sum")
    m = summed(model(), kind) if sums or kind == "plain" else wrapped(kind, mesh)
    options: dict[str, Any] = {"group": group, "gradients": "sum" if sums else "mean"}
    if event == "metric":
        return metric_error(rank, ranks, group)
    rows = kept(event, ranks)
    if loss == "both":  # one process, and counts that are known
        mean = mt.mean_over(count=whole_count(loss, rows), **options)
    else:
        mean = mt.mean_over(m.parameters(), **options)
    worst = 0.0
    for parts in (PARTS, 1) if event == "fewer parts" else (PARTS,):
        m.zero_grad()
        rows = kept(event, ranks, parts)
        if loss == "both" and event == "fewer parts":
            mean = mt.mean_over(count=whole_count(loss, rows), **options)
        value = train(m, mean, loss, plan(event, rank, ranks, parts), event, group)
        found = gradients(m)
        if kind.startswith("plain"):
            for g in found:
                dist.all_reduce(g)
                g /= 1 if sums else ranks
        if sums and loss == "both":
            value *= ranks  # shares that are summed
        one = model()
        true = LOSSES[loss](one(data()[0][rows]), rows)
        true.backward()
        pairs = zip(found, [p.grad for p in one.parameters()], strict=True)
        worst = max(worst, abs(value - true.item()), *(float((g - t).abs().max()) for g, t in pairs))
    return worst


def metric_error(rank: int, ranks: int, group: Any) -> float:
    """Of a mean over batches of which rank ``r`` has ``r``, and rank 0 none where there are others."""
    metric, values = mt.mean_over(parameters=(), group=group), torch.arange(5.0, dtype=torch.float64)
    for n in range(rank if ranks > 1 else 1):
        metric.mean(mt.masked_tensor(values + n, values != rank))
    everything = [v for r in range(ranks) for n in range(r if ranks > 1 else 1) for v in (values + n)[values != r]]
    return abs(metric.finish().item() - float(torch.stack(everything).mean()))


def notices(ranks: int) -> bool:
    """Whether gradients that FSDP2 adds are told from those that it averages."""
    m, rows = summed(model(), "fsdp2 sum"), torch.arange(4)
    out = m(data()[0][rows])
    try:
        with mt.mean_over():
            LOSSES["squares"](out, rows)
    except RuntimeError as error:
        return ranks > 1 and "set_gradient_divide_factor" in str(error)
    return ranks == 1


def configurations(wrappers: tuple[str, ...], losses: tuple[str, ...], events: tuple[str, ...]) -> list[Case]:
    possible = [loss for loss in losses if loss != "bent"]  # not a sum of means
    return [c for c in product(wrappers, possible, events) if c[1:] not in NOT_POSSIBLE]


def work(rank: int, ranks: int, folder: str, cases: list[Case]) -> None:
    """What one rank does: every configuration, in one order."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=ranks)
    mesh = init_device_mesh("cpu", (max(1, ranks // 2), min(2, ranks)), mesh_dim_names=("data", "other"))
    assert notices(ranks)
    torch.save({case: error(case, mesh) for case in cases}, Path(folder) / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def worst_errors(ranks: int, cases: list[Case]) -> dict[Case, float]:
    """The greatest absolute error of each configuration over all ranks."""
    with tempfile.TemporaryDirectory() as folder:
        start_ranks(work, ranks, folder, cases)
        found = [torch.load(Path(folder) / f"{rank}.pt") for rank in range(ranks)]
    return {key: max(each[key] for each in found) for key in found[0]}


def clash(rank: int, ranks: int, folder: str, case: Case) -> None:
    """What one rank sees of an event that not all have: the error, and after how long."""
    torch.set_num_threads(1)
    kind, loss, event = case
    given = {"rank": rank, "world_size": ranks, "timeout": timedelta(seconds=TIMEOUT)}
    dist.init_process_group("gloo", f"file://{folder}/meeting", **given)
    mesh = init_device_mesh("cpu", (ranks, 1), mesh_dim_names=("data", "other"))
    m = model() if kind == "plain" else wrapped(kind, mesh)
    mean = mt.mean_over(m.parameters())
    dist.barrier()
    start = time.monotonic()
    try:
        found = f"no error: {train(m, mean, loss, plan(event, rank, ranks), event, None)}"
    except RuntimeError as raised:
        found = f"{raised}"
    torch.save((found, time.monotonic() - start), Path(folder) / f"{rank}.pt")
    os._exit(0)  # the groups of a rank that failed may not be left in order


def clashes(ranks: int, case: Case) -> list[tuple[str, float]]:
    """The error of each rank that lives, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        start_ranks(clash, ranks, folder, case)
        paths = [Path(folder) / f"{rank}.pt" for rank in range(ranks)]
        return [torch.load(path) for path in paths if path.exists()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ranks", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--wrappers", nargs="*", default=WRAPPERS)
    parser.add_argument("--losses", nargs="*", default=tuple(LOSSES))
    parser.add_argument("--events", nargs="*", default=EVENTS)
    parser.add_argument("--one-sided", nargs="*", default=ONE_SIDED)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for number in options.ranks:
        wanted = configurations(tuple(options.wrappers), tuple(options.losses), tuple(options.events))
        errors = worst_errors(number, wanted) if wanted else {}
        for key, value in errors.items():
            if not value < 1e-12:
                print(number, "ranks", *key, f"{value:.1e}", flush=True)
        worst = max(errors.values(), default=0)
        print(f"{number} ranks, {len(errors)} configurations: at most {worst:.1e}", flush=True)
        for kind, event in product(("plain", "ddp", "fsdp2"), options.one_sided if number > 1 else ()):
            found = clashes(number, (kind, "squares", event))
            print(number, "ranks", kind, event, [(text[:90], round(seconds, 1)) for text, seconds in found], flush=True)
