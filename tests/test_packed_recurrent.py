"""Recurrent nets over packed rows equal those over the padded batch: outputs, last states, validity, every gradient."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import masked_tensor as mt

from .helpers.harness import assert_same
from .helpers.machines import expect_bfloat16

B, T, F = 4, 5, 3
ROWS = {
    "prefix": torch.arange(T) < torch.tensor([[3], [5], [0], [3]]),
    "full": torch.ones(B, T, dtype=torch.bool),
    "suffix": (torch.arange(T) < torch.tensor([[5], [1], [4], [2]])).flip(1),
    "scattered": torch.tensor([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], dtype=torch.bool),
}
NETS: dict[str, Any] = {
    "lstm": lambda: nn.LSTM(F, 4, batch_first=True),
    "lstm both ways": lambda: nn.LSTM(F, 4, 2, batch_first=True, bidirectional=True),
    "lstm projected": lambda: nn.LSTM(F, 4, 2, batch_first=True, bidirectional=True, proj_size=2),
    "lstm without biases, steps first": lambda: nn.LSTM(F, 4, bias=False),
    "gru": lambda: nn.GRU(F, 4, 2, batch_first=True, bidirectional=True),
    "gru, steps first": lambda: nn.GRU(F, 4, bidirectional=True),
    "tanh": lambda: nn.RNN(F, 4, 2, batch_first=True, bidirectional=True),
    "relu": lambda: nn.RNN(F, 4, nonlinearity="relu"),
}


def given(rows: Tensor, net: nn.RNNBase, packed: bool, dtype: torch.dtype = torch.float64) -> Any:
    data = torch.randn(B, T, F, dtype=dtype, generator=torch.Generator().manual_seed(0))
    x = mt.as_masked_tensor(data.masked_fill(~rows[..., None], float("nan")), rows[..., None])
    x = (x.packed() if packed else x).requires_grad_()
    return x, x if net.batch_first else x.transpose(0, 1)


def outcome(net: nn.RNNBase, rows: Tensor, packed: bool, states: Any = None) -> list[Any]:
    net = copy.deepcopy(net)
    x, seen = given(rows, net, packed)
    with mt.extend.packing_report() as report:
        out, last = net(seen) if states is None else net(seen, states)
    assert out.is_packed == packed
    assert not report
    ends = list(last) if isinstance(last, tuple) else [last]
    (out.filled(0).sin().sum() + sum(h.filled(0).cos().sum() for h in ends)).backward()
    assert x.grad.is_packed == packed
    return [out, *ends, x.grad, *(p.grad for p in net.parameters())]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", NETS)
def test_recurrent_nets(name: str, rows: str) -> None:
    torch.manual_seed(0)
    net = NETS[name]().double()
    for a, e in zip(outcome(net, ROWS[rows], True), outcome(net, ROWS[rows], False), strict=True):
        assert_same(a, e, f"{name}, {rows}")


def test_states_are_carried_by_sequences_without_a_step() -> None:
    torch.manual_seed(0)
    net = NETS["lstm both ways"]().double()
    hidden = torch.tensor([True, False, True, True]).expand(4, B)[..., None]
    states = [mt.masked_tensor(torch.randn(4, B, 4).double(), hidden), torch.randn(4, B, 4).double()]
    for a, e in zip(*(outcome(net, ROWS["prefix"], packed, states) for packed in (True, False)), strict=True):
        assert_same(a, e, "states")


def test_dropout_between_the_layers() -> None:
    torch.manual_seed(0)
    net = nn.LSTM(F, 8, 2, batch_first=True, dropout=0.5).double()
    _, x = given(ROWS["prefix"], net, True)
    assert torch.equal(net.eval()(x)[0].filled(0), net(x)[0].filled(0))
    draws = [net.train()(x)[0] for _ in range(2)]
    assert all(d.is_packed and d.isfinite().all() for d in draws)
    assert not torch.equal(draws[0].filled(0), draws[1].filled(0))


@pytest.mark.parametrize("name", ["lstm projected", "gru", "relu"])
def test_gradcheck(name: str) -> None:
    torch.manual_seed(0)
    net = NETS[name]().double()
    data = torch.randn(B, T, F, dtype=torch.float64, requires_grad=True)
    rows = ROWS["scattered"] if net.batch_first else ROWS["scattered"].t()

    def run(data: Tensor, *parameters: Tensor) -> Tensor:
        x = mt.as_masked_tensor(data if net.batch_first else data.transpose(0, 1), rows[..., None]).packed()
        named = dict(zip(dict(net.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(net, named, (x,))[0].filled(0)

    assert torch.autograd.gradcheck(run, [data, *net.parameters()], fast_mode=True)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_bfloat16_and_autocast(name: str) -> None:
    torch.manual_seed(0)
    net = NETS[name]().bfloat16()
    packed, strided = (net(given(ROWS["prefix"], net, p, torch.bfloat16)[1])[0] for p in (True, False))
    assert packed.is_packed
    assert packed.dtype is torch.bfloat16
    assert torch.equal(packed.filled(0), strided.filled(0))
    net.float()
    expect_bfloat16(type(net))
    with torch.autocast("cpu", torch.bfloat16):
        packed, strided = (net(given(ROWS["prefix"], net, p, torch.float32)[1])[0] for p in (True, False))
    assert packed.is_packed
    assert packed.dtype is strided.dtype
    torch.testing.assert_close(packed.filled(0), strided.filled(0), rtol=1e-2, atol=1e-2)


def test_what_has_no_rule_is_right() -> None:
    torch.manual_seed(0)
    net = nn.LSTM(F, 4, batch_first=True).double()
    data = torch.randn(B, T, F).double()
    scattered = mt.masked_tensor(data, ROWS["prefix"][..., None] & (data > -0.5))
    nothing = mt.masked_tensor(data, torch.zeros(B, T, 1, dtype=torch.bool).expand(B, T, F))
    for x in (scattered, nothing):
        for a, e in zip([net(x.packed())[0], *net(x.packed())[1]], [net(x)[0], *net(x)[1]], strict=True):
            assert_same(a, e, "spread")
