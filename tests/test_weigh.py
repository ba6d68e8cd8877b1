"""Plain terms beside a mean over parts and ranks, and what is refused because the gradient would be another one.

``MASKED_TENSOR_STEPS=500`` tries so many random steps; without it there are a few.
"""

import itertools
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt
from masked_tensor.train import group_mean

from .helpers.ranks import gathered

FORMS = ("plain", "ddp", "fsdp2", "fsdp2 copies", "fsdp2 evaluated")
STEPS = int(os.environ.get("MASKED_TENSOR_STEPS", "25"))
ROWS = 16


class Step:
    """A random step: data, what is valid, where micro-batches end, which of them are skipped, what was there before."""

    def __init__(self, seed: int, ranks: int = 1) -> None:
        random = torch.Generator().manual_seed(seed)
        self.x = torch.randn(ROWS, 3, dtype=torch.float64, generator=random)
        self.y = torch.randn(ROWS, 2, dtype=torch.float64, generator=random)
        self.valid = torch.rand(ROWS, 2, generator=random) < torch.rand((), generator=random) + 0.1
        parts = ranks * int(torch.randint(1, 5, (), generator=random))
        inner = torch.randint(ROWS + 1, (parts - 1,), generator=random).sort().values.tolist()
        cuts = [0, *inner, ROWS]
        self.parts = [slice(start, stop) for start, stop in itertools.pairwise(cuts)]
        self.acts = torch.rand(parts, generator=random).tolist()
        self.before, self.late = (torch.rand(2, generator=random) < 0.5).tolist()

    def loss(self, net: Callable[[Tensor], Tensor], rows: slice) -> Tensor:
        return F.mse_loss(net(self.x[rows]), mt.masked_tensor(self.y[rows], self.valid[rows]))

    def count(self, rows: slice) -> int:
        return int(self.valid[rows].sum())


def model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(3, 2, dtype=torch.float64)


def penalty(net: Callable[[Tensor], Tensor], parameters: list[Tensor], x: Tensor) -> Tensor:
    """Of the weights, and of what the network makes of plain data."""
    decay = torch.stack([p.square().sum() for p in parameters]).sum()
    return 0.3 * decay + net(x).square().sum() / 7


@pytest.mark.parametrize("seed", range(STEPS))
def test_terms_are_weighted_by_the_counts_of_their_parts(seed: int) -> None:
    """Against one loss of all kept rows; parts are skipped or fail; earlier gradients stay or are zeroed in between."""
    step = Step(seed)
    net, one = model(), model()
    for m in (net, one):
        penalty(m, list(m.parameters()), step.x[:1]).backward()
    mean, kept = mt.mean_over(parameters=net.parameters()), []
    for rows, act in zip(step.parts, step.acts, strict=True):
        with mean:
            loss = step.loss(net, rows)
        if act < 0.2:
            mean.skip()
            continue
        loss = loss + mean.weigh(penalty(net, list(net.parameters()), step.x[rows]))
        if not kept and not step.before:
            net.zero_grad(set_to_none=step.late)
            one.zero_grad()
        kept.append(rows)
        loss.backward()
    if not kept:
        return
    total = sum(step.count(rows) for rows in kept)
    together = torch.cat([torch.arange(ROWS)[rows] for rows in kept])
    if total:
        step.loss(one, together).backward()  # type: ignore[arg-type]
        for rows in kept:
            (penalty(one, list(one.parameters()), step.x[rows]) * (step.count(rows) / total)).backward()
    with nullcontext() if total else pytest.warns(mt.MaskedLossWarning, match="no part has a valid entry"):
        found = mean.finish()
    expected = step.loss(one, together).filled(-1).item() if total else -1  # type: ignore[arg-type]
    assert found.filled(-1).item() == pytest.approx(expected)
    wanted = [torch.zeros_like(p) if p.grad is None else p.grad for p in one.parameters()]
    torch.testing.assert_close([p.grad for p in net.parameters()], wanted, rtol=1e-12, atol=1e-14)


def test_a_loss_that_is_used_once_leaves_its_term_alone() -> None:
    mean, net = mt.mean_over(), model()
    with mean:
        loss = F.mse_loss(net(torch.zeros(2, 3).double()), mt.masked_tensor([[1.0, None]] * 2, dtype=torch.float64))
    assert mean.weigh(net.weight.sum()).item() == net.weight.sum().item()
    assert loss.isfinite()
    for wrong, kind in ((0.3, "float"), (torch.tensor(3), r"torch\.int64")):
        with pytest.raises(TypeError, match=f"expects a floating-point tensor.*got {kind}"):
            mean.weigh(wrong)


def state(mean: mt.mean_over) -> dict[str, Any]:
    """What it has added up."""
    found = {name: value for name, value in vars(mean).items() if name not in ("_uses", "_part")}
    return {name: value.tolist() if isinstance(value, Tensor) else value for name, value in found.items()}


def test_what_is_refused_leaves_all_as_it_was() -> None:
    x, y = torch.ones(2, requires_grad=True), mt.masked_tensor([2.0, None])
    loss = lambda x: F.mse_loss(x, y)  # noqa: E731

    def two(x: Tensor) -> Tensor:
        return F.mse_loss(x, y) + F.l1_loss(x, y)

    def failing(x: Tensor) -> Tensor:
        raise MemoryError(loss(x))

    refused = {
        "inside a checkpoint": lambda: checkpoint(loss, x, use_reentrant=True),
        "checkpoint, whose": lambda: checkpoint(loss, x, use_reentrant=False),
        "inside vmap": lambda: torch.vmap(loss)(torch.ones(3, 2)),
        "second mean": lambda: two(x),
        "saw no mean": lambda: None,
        "valid": lambda: failing(x),
        "call it after that block": lambda: mean.weigh(loss(x)),
    }
    for first in (False, True):
        mean = mt.mean_over(parameters=[x])
        if first:
            with mean:
                kept = loss(x)
            kept.backward()
        for message, act in refused.items():
            before = state(mean)
            with pytest.raises((RuntimeError, MemoryError), match=message), mean:
                act()
            assert state(mean) == before, message
            with pytest.raises(RuntimeError, match="after that block"):
                mean.weigh(x.sum())
            with pytest.raises(RuntimeError, match=r"nothing to (skip|finish)"):
                mean.skip() if message != "saw no mean" else mt.mean_over([x]).finish()
        if first:
            assert mean.finish().item() == 1
    known = mt.mean_over(count=1)
    with known:
        loss(x)
    with pytest.raises(RuntimeError, match="add the term itself"):
        known.weigh(x.sum())


def test_a_vmapped_share_and_a_differentiated_mean() -> None:
    y = mt.masked_tensor([2.0, None])
    with mt.mean_over(count=3):
        assert torch.vmap(lambda x: F.mse_loss(x, y))(torch.ones(3, 2)).sum().item() == 1
    mean = mt.mean_over(parameters=[torch.ones(2)])
    with mean:
        grad = torch.func.grad(lambda x: F.mse_loss(x, y).filled(0))(torch.ones(2))
    assert grad.tolist() == [-2, 0]
    assert mean.finish().item() == 1
    with torch.inference_mode(), mt.mean_over():
        assert F.mse_loss(torch.ones(2), y).item() == 1


def test_losses_have_signs_of_their_own() -> None:
    """By which ranks are told that another one takes another loss."""
    from masked_tensor.engine import table

    names = {str(op) for op in table.ENTRIES if "loss" in str(op) or "cross_entropy" in str(op) or "kl_div" in str(op)}
    names |= {"mean", "cross_entropy", "nll_loss", "ctc_loss", "triplet_margin_loss", "cosine_embedding_loss", ""}
    names |= {"multi_margin_loss", "multilabel_margin_loss"}
    assert len(names) > 30
    assert len({group_mean.loss_sign(name) for name in names}) == len(names)


# ---------------------------------------------------------------------------------------------------------- two ranks


def trained(rank: int, ranks: int, seed: int, kind: str) -> float:
    """The error of the gradients of one step; half of its parts are of the other rank."""
    step, net, one = Step(seed, ranks), model(), model()
    mesh = init_device_mesh("cpu", (ranks, 1), mesh_dim_names=("copies", "shards"))
    wrapped: Any = net
    if kind == "ddp":
        wrapped = DistributedDataParallel(net)
    if kind.startswith("fsdp2"):
        wrapped = fully_shard(net, mesh=mesh if kind == "fsdp2 copies" else None)
    parameters = list(net.parameters())
    own = list(zip(step.parts[rank::ranks], step.parts[1 - rank :: ranks], strict=True))
    if kind == "fsdp2 evaluated":  # which leaves whole parameters in the model
        with torch.no_grad():
            net(step.x)
        assert not any(p is q for p, q in zip(net.parameters(), parameters, strict=True))
    mean = mt.mean_over(parameters=net.parameters(), group=mesh if kind == "fsdp2 copies" else None)
    if kind == "ddp":
        with wrapped.no_sync():
            step.x[rank : rank + 1].pow(2).mul(net.weight).sum().backward()
        (step.x[:2].pow(2).sum(0) * one.weight).sum().div(2).backward()
    total = step.count(slice(None))
    for i, (rows, others) in enumerate(own):
        if kind == "ddp":
            wrapped.require_backward_grad_sync = i == len(own) - 1
        with mean:
            loss = step.loss(wrapped, rows)
        term = torch.stack([getattr(p.square().sum(), "full_tensor", p.square().sum)() for p in parameters]).sum()
        if kind.startswith("fsdp2"):
            (loss + mean.weigh(0.3 * term)).backward()
        else:
            (loss + mean.weigh(penalty(net, parameters, step.x[rows]))).backward()
        share = (step.count(rows) + step.count(others)) / max(total, 1)
        for each in (rows, others):
            if kind.startswith("fsdp2"):
                (0.15 * share * torch.stack([p.square().sum() for p in one.parameters()]).sum()).backward()
            else:
                (penalty(one, list(one.parameters()), step.x[each]) * (share / 2)).backward()
    found = mean.finish()
    whole = step.loss(one, slice(None))
    if total:
        whole.backward()
    grads: list[Any] = [p.grad for p in parameters]
    if kind == "plain":
        for g in grads:
            dist.all_reduce(g)
            g /= ranks
    grads = [g.full_tensor() if hasattr(g, "full_tensor") else g for g in grads]
    errors = [float((g - p.grad).abs().max()) for g, p in zip(grads, one.parameters(), strict=True)]  # type: ignore[operator]
    return max(*errors, abs(found.filled(0).item() - whole.filled(0).item()))


def said(act: Callable[[], object]) -> str:
    try:
        act()
    except (RuntimeError, ValueError) as error:
        return str(error)
    return "no error"


def on_ranks(rank: int, ranks: int) -> dict[str, Any]:
    x, y = torch.ones(2, requires_grad=True), mt.masked_tensor([2.0, None])
    found: dict[str, Any] = {}

    def other_loss() -> None:
        with mt.mean_over():
            (F.l1_loss if rank else F.mse_loss)(x, y)

    found["other loss"] = said(other_loss)
    for kind in FORMS:
        found[kind] = max(trained(rank, ranks, seed, kind) for seed in range(4))
    mesh = init_device_mesh("cpu", (ranks, 1, 1), mesh_dim_names=("copies", "shards", "more"))
    net = model()
    fully_shard(net, mesh=mesh["copies", "shards"])
    parameters = list(net.parameters())

    def smaller(parameters: Any = None) -> None:
        with mt.mean_over(parameters, group=mesh["shards"]):
            F.mse_loss(net(torch.ones(1, 3).double()), mt.masked_tensor(torch.ones(1, 2).double(), [[True, False]]))

    found["smaller group"] = said(smaller)
    found["of these parameters"] = said(lambda: smaller(parameters))
    found["of others"] = said(lambda: smaller([x]))

    def part_of_all() -> None:
        with mt.mean_over(group=mesh["shards", "more"]):
            F.mse_loss(x, y)

    found["part of all"] = said(part_of_all)
    return found


@pytest.fixture(scope="module")
def ranked() -> list[dict[str, Any]]:
    return gathered(2, on_ranks)


@pytest.mark.parametrize("kind", FORMS)
def test_terms_on_ranks(kind: str, ranked: list[dict[str, Any]]) -> None:
    assert max(each[kind] for each in ranked) < 1e-13


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("other loss", "ranks do not take the same losses"),
        ("smaller group", "the mesh that fully_shard was given"),
        ("of these parameters", "the mesh that fully_shard was given"),
        ("of others", "no error"),
        ("part of all", "group=None for all ranks"),
    ],
)
def test_every_rank_is_told(what: str, message: str, ranked: list[dict[str, Any]]) -> None:
    for each in ranked:
        assert message in each[what]


def test_the_sign_of_a_loss_is_a_small_number() -> None:
    """Its square, times ranks², is exact in float64."""
    signs = [group_mean.loss_sign(f"loss {number}") for number in range(200)]
    assert all(0 <= sign < 4096 for sign in signs)
    assert len(set(signs)) > 150
