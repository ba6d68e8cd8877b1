"""``torch.compile(fullgraph=True)``: masked tensors as inputs and made inside, forward and training, any shape."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

import masked_tensor as mt

NAN = float("nan")


@pytest.fixture(autouse=True)
def _fresh_compiler() -> None:
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], backend: str = "aot_eager", **options: Any) -> Callable[..., Any]:
    return torch.compile(function, fullgraph=True, backend=backend, **options)


DATA = torch.linspace(-2, 2, 24).view(4, 6)
MASK = (torch.arange(24) % 3 > 0).view(4, 6)
GARBAGE = torch.where(MASK, DATA, NAN)
LENGTHS = torch.tensor([1, 2, 6, 0])

MADE_INSIDE: dict[str, Callable[[], Any]] = {
    "masked_tensor": lambda: mt.masked_tensor(DATA, MASK).mul(2),
    "as_masked_tensor": lambda: mt.as_masked_tensor(GARBAGE, MASK).mul(2),
    "masked_invalid": lambda: mt.masked_invalid(GARBAGE).mul(2),
    "masked_where": lambda: mt.masked_where(DATA > 0, DATA).mul(2),
    "masked_equal": lambda: mt.masked_equal(DATA, 2.0).mul(2),
    "from_lengths": lambda: mt.from_lengths(DATA, LENGTHS).mul(2),
    "filled": lambda: mt.masked_invalid(GARBAGE).filled(7.0),
    "filled function": lambda: mt.filled(mt.masked_invalid(GARBAGE), 7.0),
    "get_mask": lambda: mt.masked_invalid(GARBAGE).get_mask(),
    "get_data": lambda: mt.masked_tensor(DATA, MASK).get_data(),
    "count": lambda: mt.masked_invalid(GARBAGE).count(0),
    "compressed": lambda: mt.masked_invalid(GARBAGE).compressed(),
    "sum": lambda: mt.masked_invalid(GARBAGE).sum(),
    "is_masked_tensor": lambda: mt.masked_invalid(GARBAGE) if mt.is_masked_tensor(mt.masked_invalid(GARBAGE)) else DATA,
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_made_and_left_inside(backend: str) -> None:
    def everything() -> list[Any]:
        return [make() for make in MADE_INSIDE.values()]

    for name, got, want in zip(MADE_INSIDE, compiled(everything, backend)(), everything(), strict=True):
        assert type(got) is type(want), name
        assert str(got) == str(want), name


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weight).relu().mul(2).sum()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("inside", [False, True])
def test_training(backend: str, inside: bool) -> None:
    def loss(net: Net, data: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return net(mt.as_masked_tensor(data, mask))

    def train(step: Callable[..., torch.Tensor]) -> list[float]:
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (step(net, GARBAGE, MASK) if inside else step(net, mt.as_masked_tensor(GARBAGE, MASK))).backward()
            optimizer.step()
        return net.weight.tolist()

    step = loss if inside else lambda net, x: net(x)
    assert train(compiled(step, backend)) == pytest.approx(train(step))


def test_gradients_of_masked_inputs() -> None:
    for function in (lambda x: (x * x).sum(), compiled(lambda x: (x * x).sum())):
        x = mt.as_masked_tensor(torch.tensor([1.0, NAN, 3.0]), torch.tensor([True, False, True])).requires_grad_()
        function(x).backward()
        assert x.grad.tolist() == [2.0, None, 6.0]


def test_dynamic_shapes() -> None:
    counter = CompileCounterWithBackend("aot_eager")
    function = torch.compile(lambda x: (x * 2).relu().sum(), fullgraph=True, dynamic=True, backend=counter)
    for rows in (3, 5, 9):
        x = mt.masked_tensor(torch.ones(rows, 4), torch.arange(rows * 4).view(rows, 4) % 2 == 0)
        assert function(x).item() == 4 * rows
    assert counter.frame_count == 1


def test_dynamic_shapes_in_training() -> None:
    counter = CompileCounterWithBackend("aot_eager")
    layer = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.ReLU())

    def loss(x: torch.Tensor) -> torch.Tensor:
        return layer(x).square().mean()

    step = torch.compile(loss, fullgraph=True, dynamic=True, backend=counter)
    compilations = []
    for rows in (3, 5, 9):
        x = mt.masked_tensor(torch.randn(rows, 2, 4), torch.arange(rows * 2).view(rows, 2, 1) % 3 > 0)
        grads = []
        for run in (step, loss):
            layer.zero_grad()
            run(x).backward()
            grads.append([p.grad.clone() for p in layer.parameters()])
        torch.testing.assert_close(grads[0], grads[1])
        compilations.append(counter.frame_count)
    assert len(set(compilations)) == 1


def test_broadcast_masks_and_masked_out_data_compile_once_each() -> None:
    counter = CompileCounterWithBackend("aot_eager")
    function = torch.compile(lambda x: (x * 2).sum(), fullgraph=True, backend=counter)
    rows = torch.tensor([[True], [False], [True]])
    for _ in range(3):
        assert function(mt.masked_tensor(torch.ones(3, 2), rows)).item() == 8
        assert function(mt.as_masked_tensor(torch.ones(3, 2), rows)).item() == 8
    assert counter.frame_count == 2


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.BatchNorm1d(5), nn.Linear(16, 2))


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Linear(6, 16), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 2)
    )


def convolutions() -> nn.Module:
    down, up = nn.Conv1d(5, 4, 4, 2, padding=1), nn.ConvTranspose1d(4, 4, 4, 2, padding=1)
    return nn.Sequential(down, nn.GroupNorm(2, 4), nn.ReLU(), up, nn.AdaptiveAvgPool1d(1))


@pytest.mark.parametrize("make", [mlp, encoder, convolutions])
def test_unmodified_networks_train_compiled(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    net = make()
    twin = copy.deepcopy(net)
    known = torch.rand(8, 1, 6) < 0.7 if make is convolutions else torch.rand(8, 5, 1) < 0.7
    data = torch.where(known, torch.randn(8, 5, 6), NAN)

    def loss(model: nn.Module) -> torch.Tensor:
        return (model(mt.as_masked_tensor(data, known)) - 1).square().mean()

    expected, got = loss(twin), compiled(lambda: loss(net), "inductor")()
    expected.backward()
    got.backward()
    torch.testing.assert_close(got.item(), expected.item(), rtol=1e-5, atol=1e-6)
    for a, b in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


# -------------------------------------------------------------------------------------------------------- graph breaks


def _whole_step(net: nn.Module, optimizer: torch.optim.Optimizer, x: mt.MaskedTensor) -> float:
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_a_whole_training_step_with_its_graph_breaks() -> None:
    x, losses = mt.as_masked_tensor(GARBAGE, MASK), []
    for step in (_whole_step, torch.compile(_whole_step, backend="aot_eager")):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses.append([step(net, optimizer, x) for _ in range(3)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert losses[0][2] < losses[0][0]


BROKEN: dict[str, Callable[[mt.MaskedTensor], Any]] = {
    "number": lambda x: (x * x.sum().item()).sum(),
    "branch": lambda x: x.sum() if x.mean() > 0 else x.prod(),
    "list": lambda x: (x + 1).tolist(),
    "text": lambda x: f"{x * 2} {x.mean():.3f}",
    "exits": lambda x: x.compressed().sum() + x[x > 0].sum() + x.count(),
    "rows": lambda x: torch.stack([row.max() for row in x[1:]]),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.filterwarnings("ignore:.*Dynamo")
def test_the_engine_runs_eagerly_after_a_graph_break(name: str) -> None:
    def function(x: mt.MaskedTensor) -> Any:
        y = x * 1
        torch._dynamo.graph_break()
        return BROKEN[name](y)

    x = mt.as_masked_tensor(GARBAGE, MASK)
    expected, found = function(x), torch.compile(function, backend="aot_eager")(x)
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found, expected)
    else:
        assert found == expected


# ------------------------------------------------------------------------------------------------------ several outputs


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_outputs_of_which_some_are_used(backend: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.exp(), x.sum(-1), torch.stack([x, x * 2])

    run = compiled(function, backend)
    for used in ([0], [1], [2], [0, 2]):
        grads = []
        for f in (function, run):
            x = mt.as_masked_tensor(GARBAGE, MASK).requires_grad_()
            outputs = f(x)
            sum(outputs[i].sum() for i in used).backward()
            grads.append(x.grad)
        torch.testing.assert_close(grads[1], grads[0])


def test_attention_with_its_weights_trains() -> None:
    torch.manual_seed(0)
    x = mt.from_lengths(torch.randn(2, 3, 8), [3, 1])
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    grads = []
    for run in (layer, compiled(layer)):
        layer.zero_grad()
        run(x, x, x)[0].square().mean().backward()
        grads.append([p.grad.clone() for p in layer.parameters()])
    torch.testing.assert_close(grads[1], grads[0])


# -------------------------------------------------------------------------------------------------------------- strides


def test_what_can_be_viewed_can_be_viewed_compiled() -> None:
    layer = nn.Linear(4, 4)

    def function(x: torch.Tensor) -> torch.Tensor:
        return layer(x.transpose(0, 1)).view(3, 4, 2)

    x = mt.from_lengths(torch.randn(2, 3, 4), [3, 1])
    torch.testing.assert_close(compiled(function)(x), function(x))


# -------------------------------------------------------------------------------------------------- writes into inputs

OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD foreach": lambda p: torch.optim.SGD(p, lr=0.1, foreach=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=0.1, foreach=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.filterwarnings("ignore:.*torch.cuda:UserWarning")
def test_optimizers_step_masked_parameters_compiled(name: str) -> None:
    def train(compile: bool) -> list[torch.Tensor]:
        parameters = [nn.Parameter(mt.masked_tensor([1.0, None, 3.0])), nn.Parameter(mt.masked_tensor([[2.0], [None]]))]
        optimizer = OPTIMIZERS[name](parameters)
        step = torch.compile(optimizer.step, backend="aot_eager") if compile else optimizer.step
        for _ in range(3):
            optimizer.zero_grad()
            sum(p.pow(3).sum() for p in parameters).backward()
            step()
        return [p.detach() for p in parameters]

    # torch's own compiled step of plain parameters differs from its eager one by as much
    torch.testing.assert_close(train(True), train(False), rtol=1e-5, atol=1e-6)


def test_an_input_keeps_its_validity() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.add_(y)

    add = compiled(function)
    x = mt.as_masked_tensor(GARBAGE.clone(), MASK)
    before = (x + 1).tolist()
    assert add(x, mt.as_masked_tensor(torch.ones(4, 6), MASK)).tolist() == before
    assert add(x, mt.masked_tensor(torch.zeros(4, 6))).tolist() == before
    with pytest.raises(RuntimeError, match="a compiled function cannot change the validity of its input in place"):
        add(x, mt.as_masked_tensor(torch.ones(4, 6), MASK.flip(1)))
    assert x.tolist() == before
