"""``x.packed(capacity=N)``: one size for every batch, and nothing of the steps that fill it up is ever seen."""

import copy
import os
import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.testing import CompileCounterWithBackend
from torch._functorch.aot_autograd import make_boxed_func

import masked_tensor as mt

from .helpers import forced
from .oracles import FAMILY
from .test_packed_law import NAMES, check_all, of_entry

B, T, CAPACITY = 3, 6, 12
LENGTHS = ([3, 5, 1], [6, 5, 1], [2, 0, 4], [1, 1, 1], [0, 6, 6])
GARBAGE = (float("nan"), float("inf"), 1e30)


def batch(lengths: list[int], fill: float, dtype: torch.dtype = torch.float32, width: int = 8) -> Any:
    mask = (torch.arange(T) < torch.tensor(lengths)[:, None])[..., None].expand(-1, -1, width)
    return mt.masked_tensor(torch.where(mask, torch.randn(len(lengths), T, width, dtype=dtype), fill), mask)


class Attention(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.qkv, self.causal = nn.Linear(8, 24), causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in self.qkv(x).split(8, -1))
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).flatten(2)


def layers() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.RMSNorm(8), nn.Dropout(0.0))


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


ALL = "MASKED_TENSOR_CAPACITY" in os.environ  #: all models compiled, not the small one alone
MODELS = {
    "layers": layers,
    "encoder": encoder,
    "attention": lambda: Attention(False),
    "causal": lambda: Attention(True),
}
COMPILED = list(MODELS) if ALL else ["attention"]


def alone(net: nn.Module, x: Any, lengths: list[int]) -> Tensor:
    rows = zip(x.get_data(), lengths, strict=True)
    return torch.cat([net(row[None, :n])[0] for row, n in rows if n]).square().mean()


def check(run: Any, net: nn.Module, x: Any, lengths: list[int]) -> None:
    twin = copy.deepcopy(net)
    net.zero_grad()
    loss = run(x)
    loss.backward()
    wanted = alone(twin, x, lengths)
    wanted.backward()
    torch.testing.assert_close(loss.get_data(), wanted)
    for mine, other in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_each_sequence_gives_alone_and_stays_packed(name: str) -> None:
    torch.manual_seed(0)
    net = MODELS[name]()
    with mt.extend.packing_report() as spread:
        for turn, lengths in enumerate(LENGTHS):
            x = batch(lengths, GARBAGE[turn % 3])
            check(lambda x: net(x.packed(capacity=CAPACITY)).square().mean(), net, x, lengths)
    assert not spread


@pytest.mark.parametrize("name", COMPILED)
def test_one_graph_for_all_batches(name: str) -> None:
    torch.manual_seed(0)
    torch.compiler.reset()
    net, draw = MODELS[name](), random.Random(0)
    counter = CompileCounterWithBackend("aot_eager")
    step = torch.compile(lambda x: net(x.packed(capacity=CAPACITY)).square().mean(), fullgraph=True, backend=counter)
    for turn in range(20):
        lengths = [draw.randint(0, T) for _ in range(B)] if turn > 1 else LENGTHS[turn]
        while not 0 < sum(lengths) <= CAPACITY:
            lengths = [draw.randint(0, T) for _ in range(B)]
        check(step, net, batch(lengths, GARBAGE[turn % 3]), lengths)
    assert counter.frame_count == 1


@pytest.mark.parametrize("name", COMPILED)
def test_packed_before_the_graph_it_is_one_graph_too(name: str) -> None:
    """Also of exactly as many steps as fit."""
    torch.manual_seed(0)
    torch.compiler.reset()
    net = MODELS[name]()
    counter = CompileCounterWithBackend("aot_eager")
    step = torch.compile(lambda x: net(x).square().mean(), fullgraph=True, backend=counter)
    for turn, lengths in enumerate(LENGTHS):
        x = batch(lengths, GARBAGE[turn % 3])
        check(lambda x: step(x.packed(capacity=CAPACITY)), net, x, lengths)
    assert counter.frame_count == 1


def test_attention_in_a_graph_with_gaps_and_padding_on_the_left() -> None:
    """Which stored steps are masked no size tells: they are put last, whatever lies there, and nothing is padded."""
    torch.manual_seed(0)
    torch.compiler.reset()
    net = Attention(True).double()
    step = torch.compile(lambda x: net(x.packed(capacity=CAPACITY)), fullgraph=True, backend="aot_eager")
    left = torch.arange(T).flip(0) < torch.tensor([3, 6, 0])[:, None]
    with mt.extend.packing_report() as spread:
        for turn, rows in enumerate((left, torch.rand(B, T) > 0.5, torch.zeros(B, T, dtype=torch.bool))):
            x = mt.masked_tensor(
                torch.where(rows[..., None], torch.randn(B, T, 8, dtype=torch.float64), GARBAGE[turn]), rows[..., None]
            )
            found = []
            for run in (step, net):
                out = run(x)
                net.zero_grad()
                out.sin().sum().filled(0.0).backward()
                found.append([out.filled(0).detach(), out.get_mask(), *(p.grad.clone() for p in net.parameters())])
            torch.testing.assert_close(*found)
    assert not spread


@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
def test_nothing_valid_all_that_fits_and_one_more(backend: str | None) -> None:
    if backend == "inductor" and not ALL:
        pytest.skip("compiles for seconds")
    torch.compiler.reset()

    def total(x: Any) -> Any:
        return (x.packed(capacity=7) * 2).sum()

    run = torch.compile(total, fullgraph=True, backend=backend) if backend else total
    none, exact, more = ([0, 0, 0], [3, 0, 4], [3, 1, 4])
    assert not run(batch(none, float("nan"))).get_mask()
    x = batch(exact, float("inf"))
    torch.testing.assert_close(run(x).get_data(), (x * 2).sum().get_data())
    with pytest.raises((ValueError, RuntimeError), match=r"packed\(capacity=7\).*steps are valid"):
        run(batch(more, 1e30))


def test_the_check_survives_where_only_shapes_are_asked_for() -> None:
    """The places depend on the check, and what is stored on the places."""
    torch.compiler.reset()
    run = torch.compile(lambda x: x.packed(capacity=2), fullgraph=True, backend="aot_eager")
    with pytest.raises(RuntimeError, match=r"packed\(capacity=2\)"):
        run(batch([1, 1, 1], 0.0))


def test_the_graphs_have_the_check() -> None:
    """Forward, where gradients are asked for, too; what is stored is taken from the places that come out of it."""
    torch.compiler.reset()
    graphs: list[Any] = []

    def keep(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep)
    run = torch.compile(lambda x: x.packed(capacity=7).square().sum().filled(0.0), fullgraph=True, backend=backend)
    x = batch([3, 1, 2], float("nan")).requires_grad_()
    run(x).backward()
    forward, backward = graphs
    (check,) = (n for n in forward.graph.nodes if n.target is torch.ops.masked_tensor.expected.default)
    assert any(user.target is torch.ops.aten.index_select.default for user in check.users)
    assert all(
        node.target is not torch.ops.aten.nonzero.default for node in (*forward.graph.nodes, *backward.graph.nodes)
    )
    torch.testing.assert_close(x.grad.filled(0), (2 * x).filled(0).detach())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("capacity", [4, 5, 18, 100])
def test_it_is_the_same_tensor(dtype: torch.dtype, capacity: int) -> None:
    x = batch([1, 0, 3], float("nan"), dtype)
    x = mt.masked_tensor(x.get_data(), x.get_mask() & (torch.rand(x.shape) > 0.3)).requires_grad_()
    y = x.packed(capacity=capacity)
    assert y.is_packed
    assert y.shape == x.shape
    assert y._packed.values.shape[0] == min(capacity, B * T)
    assert y.get_mask().equal(x.get_mask())
    assert y.unpacked().filled(0).equal(x.filled(0))
    assert y.packed().filled(0).equal(x.filled(0))
    assert x.packed().packed(capacity=capacity).filled(0).equal(x.filled(0))
    (y * float("inf")).sum().backward()
    assert x.grad.filled(0)[~x.get_mask()].eq(0).all()
    swapped = x.detach().transpose(0, 1)
    assert swapped.packed((1, 0), capacity=capacity).filled(0).equal(swapped.filled(0))


def test_losses_embeddings_norms_and_dropout() -> None:
    torch.manual_seed(0)
    lengths = [3, 0, 2]
    valid = torch.arange(T) < torch.tensor(lengths)[:, None]
    ids = mt.masked_tensor(torch.where(valid, torch.randint(0, 4, (B, T)), 10**6), valid).packed(capacity=CAPACITY)
    mine = table, net, norm = nn.Embedding(4, 5), nn.Linear(5, 4), nn.BatchNorm1d(4)
    twins = copy.deepcopy(mine)
    with mt.extend.packing_report() as spread:
        z = F.dropout(net(table(ids)), 0.0)
        assert z.is_packed
        z = norm(z.transpose(1, 2))
        loss = F.cross_entropy(z, ids) + F.mse_loss(z, z.detach() * 2) + z.mean() + z.amax()
        loss.backward()
    assert not spread
    table, net, norm = twins
    chosen = ids.unpacked().get_data()[valid]
    w = norm(net(table(chosen)))
    wanted = F.cross_entropy(w, chosen) + F.mse_loss(w, w.detach() * 2) + w.mean() + w.amax()
    torch.testing.assert_close(loss.get_data(), wanted)
    wanted.backward()
    for ours, theirs in zip(mine, twins, strict=True):
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad)


def test_sequences_and_samples_are_packed_at_a_capacity() -> None:
    """In all ways to say it, with the lengths that the steps have."""
    rows = [torch.randn(n, 2, requires_grad=True) for n in (3, 5, 1)]
    for x in (
        mt.from_sequences(rows, length=T, capacity=11),
        mt.from_sequences(rows, length=T, packed=True, capacity=np.int64(11)),
        mt.collate(rows, length=T, capacity=11),
        mt.collate([{"x": row, "n": 1} for row in rows], length={"x": T}, capacity={"x": np.int32(11)})["x"],
        mt.collate([(row, 1) for row in rows], length=T, capacity=11)[0],
    ):
        assert x.is_packed
        assert (x.shape, x._packed.values.shape) == ((3, T, 2), (11, 2))
        assert x.filled(0).equal(mt.from_sequences(rows, length=T).filled(0))
        assert x.lengths().tolist() == [3, 5, 1]
        assert all(grad.eq(2).all() for grad in torch.autograd.grad((x * 2).sum(), rows))


@pytest.mark.parametrize("call", ["from_sequences", "collate"])
def test_what_is_no_capacity_is_refused_by_name(call: str) -> None:
    rows = [torch.ones(3, 2), torch.ones(4, 2)]
    for wrong, kind in ((0, ValueError), (-1, ValueError), (True, TypeError), (1.0, TypeError), ("4", TypeError)):
        with pytest.raises(kind, match=rf"{call}\(capacity=...\) must be"):
            getattr(mt, call)(rows, capacity=wrong)
    with pytest.raises(ValueError, match="7 steps are valid"):
        getattr(mt, call)(rows, length=9, capacity=6)


def test_batches_of_so_many_tokens_fit_to_a_capacity() -> None:
    """``balanced_batches`` makes batches of about so many: with the longest sample besides, one graph serves all."""
    torch.compiler.reset()
    draw = random.Random(0)
    data = [torch.randn(draw.randint(1, 9), 4) for _ in range(40)]
    net, counter = nn.Linear(4, 4), CompileCounterWithBackend("aot_eager")
    step = torch.compile(lambda x: net(x).square().sum().filled(0.0), fullgraph=True, backend=counter, dynamic=False)
    seen = 0
    for indices in mt.balanced_batches([len(row) for row in data], tokens=24, seed=0):
        rows = [data[i] for i in indices]
        seen += len(rows)
        rows += [torch.empty(0, 4)] * (12 - len(rows))  # as many sequences in every batch: some have no step
        x = mt.from_sequences(rows, length=9, capacity=24 * 6 // 5 + 9)
        torch.testing.assert_close(step(x), net(torch.cat(rows)).square().sum())
    assert (seen, counter.frame_count) == (40, 1)


def test_a_part_of_the_law_of_packed_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fills the stored steps up changes no value, no gradient and no error: of torch's operator database."""
    monkeypatch.setattr(forced, "MORE", 7)
    counts: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn, name in enumerate(NAMES[5::40]):
            check_all(name, of_entry(name), FAMILY.get(name) == "random", counts, turn)
    assert counts["stayed packed"]
    assert counts["gradients"]
