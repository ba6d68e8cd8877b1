"""Models that torch's tensor parallelism takes apart, and the step that compares them with the whole on one rank."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

import masked_tensor as mt


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(self.norm(x))))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        batch, time = x.shape[:2]
        q, k, v = (f(x).view(batch, time, -1, 2).transpose(1, 2) for f in (self.q, self.k, self.v))
        seen = F.scaled_dot_product_attention(q, k, v)
        return self.o(seen.transpose(1, 2).reshape(batch, time, -1))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.a, self.m = nn.LayerNorm(8), Attention(), Mlp()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.a(self.norm(x))
        return x + self.m(x)


C, R = ColwiseParallel, RowwiseParallel
KINDS = {"mlp": Mlp, "attention": Attention, "block": Block, "sequence": Mlp}


def plan(kind: str) -> dict[str, Any]:
    attention, mlp = {"q": C(), "k": C(), "v": C(), "o": R()}, {"up": C(), "down": R()}
    if kind == "sequence":
        part = Shard(1)
        whole = PrepareModuleInput(input_layouts=part, desired_input_layouts=part)
        down = R(output_layouts=part, use_local_output=False)
        return {"": whole, "norm": SequenceParallel(), "up": C(input_layouts=part), "down": down}
    if kind == "block":
        return {f"a.{k}": v for k, v in attention.items()} | {f"m.{k}": v for k, v in mlp.items()}
    return attention if kind == "attention" else mlp


def data() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(4, 8, 8, dtype=torch.float64, generator=generator) for _ in range(2))
    valid = (torch.arange(8) < torch.tensor([8, 3, 1, 5])[:, None])[..., None]
    return torch.where(valid, x, torch.nan), valid, y


def made(kind: str) -> nn.Module:
    torch.manual_seed(1)
    return KINDS[kind]().double()


def step(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    out: Any = m(x)
    loss = F.mse_loss(out.full_tensor() if hasattr(out, "full_tensor") else out, y)
    loss.backward()
    return loss


def worst(m: nn.Module, loss: Tensor, kind: str) -> float:
    """The greatest absolute error of the loss and all gradients, against the whole model on the whole batch."""
    x, valid, y = data()
    one = made(kind)
    true = step(one, mt.as_masked_tensor(x, valid), y)
    grads: Any = [p.grad for p in m.parameters()]
    grads = [g.full_tensor() if isinstance(g, DTensor) else g for g in grads]
    pairs = zip(grads, one.parameters(), strict=True)
    return max(abs(loss.item() - true.item()), *(float((g - p.grad).abs().max()) for g, p in pairs))


def tensor_parallel(rank: int, ranks: int) -> dict[str, float]:
    """The error of each kind of model under ``parallelize_module``."""
    mesh = init_device_mesh("cpu", (ranks,))
    x, valid, y = data()
    found = {}
    for kind in KINDS:
        m = parallelize_module(made(kind), mesh, plan(kind))
        given = [t.chunk(ranks, 1)[rank].contiguous() if kind == "sequence" else t for t in (x, valid)]
        found[kind] = worst(m, step(m, mt.as_masked_tensor(*given), y), kind)
    return found


def sharded_and_parallel(rank: int, ranks: int) -> float:
    """FSDP2 over one dimension of the mesh, whose ranks see uneven shards, tensor parallelism over the other."""
    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("data", "tensor"))
    x, valid, y = data()
    m = parallelize_module(made("block"), mesh["tensor"], plan("block"))
    fully_shard(m, mesh=mesh["data"])
    rows = slice(0, 1) if mesh["data"].get_local_rank() == 0 else slice(1, 4)
    with mt.mean_over(group=mesh["data"]):
        loss = step(m, mt.as_masked_tensor(x[rows], valid[rows]), y[rows])
    return worst(m, loss, "block")


def uneven(rank: int, ranks: int) -> list[str]:
    """What is wrong with shards of different length, in which a row may end in a masked entry, and with terms."""
    mesh = init_device_mesh("cpu", (ranks,))
    values = torch.arange(15.0).view(5, 3)
    wrong = []
    for name, valid in {"last": values % 4 > 0, "row": values[:, :1] < 12, "column": values[:1] > 0}.items():
        x = mt.as_masked_tensor(values.clone(), valid)
        for placement in (Shard(0), Shard(1), Replicate()):
            for given in (x, mt.as_masked_tensor(values.clone(), valid)):
                y = distribute_tensor(given, mesh, [placement])
                found = [y, y.redistribute(mesh, [Shard(1)]), y.redistribute(mesh, [Shard(0)]), y.detach() * 1]
                wrong += [f"{name} {placement}" for z in found if z.full_tensor().tolist() != x.tolist()]
    if values.tolist() != torch.arange(15.0).view(5, 3).tolist():
        wrong.append("what was given was written")
    terms = mt.as_masked_tensor(torch.tensor([[2.0, torch.nan, 3.0], [torch.nan, 5.0, 4.0]])[rank], EACH[rank])
    for reduction, last in {"sum": 7.0, "product": 12.0, "max": 4.0, "min": 3.0}.items():
        whole = DTensor.from_local(terms, mesh, [Partial(reduction)]).full_tensor()
        wrong += [reduction] * (whole.tolist() != [2.0, 5.0, last])
    return wrong


class First(nn.Module):
    """A stage that sends data and mask, which the next one puts together."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, data: Tensor, valid: Tensor) -> Any:
        x: Any = self.up(mt.as_masked_tensor(data, valid)).tanh()
        return x.filled(0), x.get_mask().contiguous()


class Second(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.down = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, data: Tensor, valid: Tensor) -> Tensor:
        return self.down(self.norm(mt.as_masked_tensor(data, valid)))


def staged(rank: int, ranks: int) -> float:
    """The error of two pipeline stages between which masks travel."""
    x, valid, y = data()
    valid = valid.expand(x.shape).contiguous()
    torch.manual_seed(2)
    stages = First().double(), Second().double()
    whole = F.mse_loss(stages[1](*stages[0](x, valid)), mt.masked_tensor(y, valid))
    whole.backward()
    grads = [p.grad for p in stages[rank].parameters()]
    stages[rank].zero_grad()
    stage = PipelineStage(stages[rank], rank, ranks, torch.device("cpu"))
    over = mt.mean_over(count=[int(valid.sum())], group=alone_in(rank))
    losses: list[Tensor] = []

    def loss(out: Tensor, target: Tensor) -> Tensor:
        with over:
            return F.mse_loss(out, target)

    schedule = ScheduleGPipe(stage, 2, loss_fn=loss, scale_grads=False)
    schedule.step(*((x, valid) if rank == 0 else ()), **({} if rank == 0 else {"target": y, "losses": losses}))
    errors = [float((p.grad - g).abs().max()) for p, g in zip(stages[rank].parameters(), grads, strict=True)]
    return max(errors + ([] if rank == 0 else [abs(sum(losses).item() - whole.item())]))


def alone_in(rank: int) -> Any:
    """A group of this rank alone."""
    return dist.new_group([rank], use_local_synchronization=True)


def all_on_two_ranks(rank: int, ranks: int) -> dict[str, Any]:
    return {
        "tensor parallel": max(tensor_parallel(rank, ranks).values()),
        "with fsdp": sharded_and_parallel(rank, ranks),
        "uneven": uneven(rank, ranks),
        "staged": staged(rank, ranks),
    }


EACH = torch.tensor([[True, False, True], [False, True, True]])
