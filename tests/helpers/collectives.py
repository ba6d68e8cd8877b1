"""One call of each collective on several ranks, compared with what it means: each case raises where it is wrong."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
import torch
import torch.distributed._functional_collectives as functional
import torch.distributed.nn as differentiable
from torch import Tensor
from torch import distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt

R = dist.ReduceOp
REDUCTIONS: dict[str, tuple[Any, Callable[[Tensor], Tensor]]] = {
    "sum": (R.SUM, lambda all: all.sum(0)),
    "avg": (R.AVG, lambda all: all.mean(0)),
    "max": (R.MAX, lambda all: all.amax(0)),
    "min": (R.MIN, lambda all: all.amin(0)),
    "product": (R.PRODUCT, lambda all: all.prod(0)),
}


def given(rank: int, shape: tuple[int, ...] = (2, 3), dtype: torch.dtype = torch.float64) -> Tensor:
    """What a rank has: garbage under the mask, another mask on each."""
    generator = torch.Generator().manual_seed(rank)
    data = (torch.randn(shape, generator=generator, dtype=torch.float64) * 3).to(dtype)
    mask = torch.rand(shape, generator=generator) < 0.6
    garbage = torch.full((), float("nan") if dtype.is_floating_point else 99, dtype=dtype)
    return mt.as_masked_tensor(torch.where(mask, data, garbage), mask)


def empty(*shape: int) -> Tensor:
    return mt.as_masked_tensor(torch.zeros(shape, dtype=torch.float64), False)


def same(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


class Cases:
    """Each method is a case."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        self.every = [given(i) for i in range(ranks)]
        self.all, self.own = torch.stack(self.every), self.every[rank]

    def broadcast(self) -> None:
        for dtype in (torch.float64, torch.int32, torch.bool, torch.bfloat16):
            x = given(self.rank, dtype=dtype)
            dist.broadcast(x, 1)
            same(x, given(1, dtype=dtype))
        x = mt.as_masked_tensor(torch.complex(torch.ones(2) * self.rank, torch.ones(2)), torch.arange(2) >= self.rank)
        dist.broadcast(x, 0, async_op=True).wait()
        assert x.tolist() == [1j, 1j]

    def all_reduce(self) -> None:
        for op, expected in REDUCTIONS.values():
            x = self.own.clone()
            dist.all_reduce(x, op)
            same(x, expected(self.all))
        whole = given(self.rank, dtype=torch.int64)
        dist.all_reduce(whole, R.MAX, async_op=True).wait()
        same(whole, torch.stack([given(i, dtype=torch.int64) for i in range(self.ranks)]).amax(0))

    def reduce(self) -> None:
        x = self.own.clone()
        dist.reduce(x, 1)
        same(x, self.all.sum(0) if self.rank == 1 else self.own)

    def all_gather(self) -> None:
        parts = [empty(2, 3) for _ in self.every]
        dist.all_gather(parts, self.own)
        same(parts, self.every)
        for out in (empty(2 * self.ranks, 3), empty(self.ranks, 2, 3)):
            dist.all_gather_into_tensor(out, self.own)
            same(out, self.all.view_as(out))

    def reduce_scatter(self) -> None:
        out, parts = empty(2, 3), [self.own * (i + 1) for i in range(self.ranks)]
        dist.reduce_scatter(out, parts)
        same(out, self.all.sum(0) * (self.rank + 1))
        out = empty(2, 3)
        dist.reduce_scatter_tensor(out, torch.cat(parts), R.AVG)
        same(out, self.all.mean(0) * (self.rank + 1))

    def scatter(self) -> None:
        out = empty(2, 3)
        dist.scatter(out, list(self.every) if self.rank == 0 else None, 0)
        same(out, self.own)

    def gather(self) -> None:
        parts = [empty(2, 3) for _ in self.every] if self.rank == 0 else None
        dist.gather(self.own, parts, 0)
        if parts:
            same(parts, self.every)

    def bits(self) -> None:
        ways: dict[Any, tuple[Any, int]] = {
            R.BAND: (torch.bitwise_and, -1), R.BOR: (torch.bitwise_or, 0), R.BXOR: (torch.bitwise_xor, 0),
        }  # fmt: skip
        every = [given(i, dtype=torch.int64) for i in range(self.ranks)]
        valid = torch.stack([x.get_mask() for x in every]).any(0)  # type: ignore[attr-defined]
        for op, (combine, neutral) in ways.items():
            x = every[self.rank].clone()
            dist.all_reduce(x, op)
            expected = reduce(combine, [y.filled(neutral) for y in every])  # type: ignore[attr-defined]
            same(x, mt.masked_tensor(expected, valid))

    def coalesced(self) -> None:
        x = [self.own.clone(), self.own + 1]
        dist.all_reduce_coalesced(x)
        same(x, [self.all.sum(0), (self.all + 1).sum(0)])
        found = functional.all_reduce_coalesced([self.own, self.own + 1], "sum", list(range(self.ranks)))
        same([y * 1 for y in found], [self.all.sum(0), (self.all + 1).sum(0)])
        found = functional.all_gather_into_tensor_coalesced([self.own, self.own + 1], list(range(self.ranks)))
        same([y * 1 for y in found], [torch.cat(self.every), torch.cat(self.every) + 1])

    def others_who_hold_the_memory(self) -> None:
        data = torch.arange(6.0).view(2, 3)
        whole, part = mt.as_masked_tensor(data, True), mt.as_masked_tensor(data, data > 3)
        dist.broadcast(part, 0)
        same(whole, mt.masked_tensor(torch.arange(6.0).view(2, 3), True))

    def all_to_all(self) -> None:
        parts, expected = [empty(2, 3) for _ in self.every], [x + self.rank for x in self.every]
        dist.all_to_all(parts, [self.own + i for i in range(self.ranks)])
        same(parts, expected)
        out = empty(2 * self.ranks, 3)
        dist.all_to_all_single(out, torch.cat([self.own + i for i in range(self.ranks)]))
        same(out, torch.cat(expected))
        rows = [i + 1 for i in range(self.ranks)]  # to rank i
        out = empty((self.rank + 1) * self.ranks, 3)
        dist.all_to_all_single(out, given(self.rank, (sum(rows), 3)), [self.rank + 1] * self.ranks, rows)
        sent = [given(i, (sum(rows), 3)).split(rows)[self.rank] for i in range(self.ranks)]
        same(out, torch.cat(sent))

    def point_to_point(self) -> None:
        if self.rank == 0:
            dist.send(self.own, 1)
            dist.send(self.own, 1)
        elif self.rank == 1:
            for source in (0, None):
                x = empty(2, 3)
                assert dist.recv(x, source) == 0
                same(x, self.every[0])
        if self.rank > 1:
            return
        peer = 1 - self.rank
        for _ in range(2):
            x = empty(2, 3)
            for work in (dist.isend(self.own, peer), dist.irecv(x, peer)):
                work.wait()
            same(x, self.every[peer])
        x = empty(2, 3)
        ops = [dist.P2POp(dist.isend, self.own, peer), dist.P2POp(dist.irecv, x, peer)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        same(x, self.every[peer])

    def objects(self) -> None:
        parts: list[Any] = [None] * self.ranks
        dist.all_gather_object(parts, self.own)
        same(parts, self.every)

    def leaves(self) -> list[Tensor]:
        return [mt.masked_tensor(x, requires_grad=True) for x in self.every]

    def functional_reduction(self) -> None:
        for name in ("sum", "avg"):
            here, there = self.leaves(), self.leaves()
            x = functional.all_reduce(here[self.rank], name, dist.group.WORLD)
            expected = REDUCTIONS[name][1](torch.stack(there))
            same(x.detach(), expected.detach())
            (x * (self.rank + 1)).sum().backward()
            (expected * sum(range(1, self.ranks + 1))).sum().backward()
            same(here[self.rank].grad, there[self.rank].grad)
        for name in ("max", "min", "product"):
            same(functional.all_reduce(self.own, name, dist.group.WORLD), REDUCTIONS[name][1](self.all))
        several = torch.cat([self.own] * self.ranks)
        same(functional.reduce_scatter_tensor(several, "sum", 0, dist.group.WORLD), self.all.sum(0))

    def functional_move(self) -> None:
        world = dist.group.WORLD
        same(functional.broadcast(self.own, 1, world), self.every[1])
        for move in (
            lambda x: functional.all_gather_tensor(x, 0, world),
            lambda x: functional.all_to_all_single(torch.cat([x] * self.ranks), None, None, world),
        ):
            here = self.leaves()[self.rank]
            x = move(here)
            same(x.detach(), torch.cat(self.every))
            x.sum().backward()
            same(here.grad, here.detach() * 0 + self.ranks)

    def differentiable(self) -> None:
        here = self.leaves()[self.rank]
        x = differentiable.functional.all_reduce(here)
        same(x.detach(), self.all.sum(0))
        x.sum().backward()
        same(here.grad, here.detach() * 0 + self.ranks)

    def wrappers(self) -> None:
        """Masked buffers under DistributedDataParallel; masked parameters nowhere."""
        m = torch.nn.Linear(3, 2).double()
        m.register_buffer("mean", given(self.rank, (3,)))
        ways = "broadcast_buffers=False"
        refused(lambda: DistributedDataParallel(m), ways)
        wrapped = DistributedDataParallel(m, init_sync=False, broadcast_buffers=False)
        for x in (*m.parameters(), m.mean):
            dist.broadcast(x.detach(), 0)
        same(m.mean, given(0, (3,)))
        wrapped(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
        m.weight = torch.nn.Parameter(given(self.rank, (2, 3)))
        del m.mean
        for wrap in (DistributedDataParallel, fully_shard, on_cpu):
            refused(lambda wrap=wrap: wrap(m), "the mask as a buffer")


def refused(call: Callable[[], Any], way_out: str) -> None:
    with pytest.raises(TypeError, match=way_out):
        call()


def on_cpu(m: torch.nn.Module) -> torch.nn.Module:
    return FullyShardedDataParallel(m, device_id=torch.device("cpu"))


CASES = [name for name in vars(Cases) if not name.startswith("_") and name != "leaves"]


def outcomes(rank: int, ranks: int) -> dict[str, str]:
    """What each case has to say, "" if nothing."""
    import warnings

    warnings.simplefilter("ignore")  # torch's notices of functions that have new names
    cases, found = Cases(rank, ranks), {}
    for name in CASES:
        try:
            getattr(cases, name)()
            found[name] = ""
        except Exception as reason:
            found[name] = f"{type(reason).__name__}: {reason}"[:500]
    return found
