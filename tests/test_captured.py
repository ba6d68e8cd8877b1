"""Steps that a CUDA graph replays, as the page "Captured" has them; on the CPU the same steps run as they are."""

import ast
import copy
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.utils import counters

import masked_tensor as mt
from masked_tensor.kernels.attention import cuda as attention_cuda

PAGE = (Path(__file__).parents[1] / "docs" / "captured.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ON_A_GPU = pytest.mark.cuda
DEVICES = ["cpu", pytest.param("cuda", marks=ON_A_GPU)]
B, T, WIDTH, CAPACITY, WARM = 4, 6, 16, 14, 3
LENGTHS = ([6, 3, 4, 1], [2, 0, 5, 6], [0, 0, 0, 1], [1, 1, 6, 6], [3, 2, 0, 5])
KINDS = ["padded", "capacity", "flat"]
# With so much in the denominator Adam's steps grow with gradients: noise of those near zero stays small.
OPTIMIZERS: dict[str, Any] = {
    "SGD": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "AdamW": partial(torch.optim.AdamW, lr=0.1, eps=0.1),
}
STEPS = [
    *(
        pytest.param(device, kind, "SGD", False, marks=marks)
        for device, marks in (("cpu", ()), ("cuda", ON_A_GPU))
        for kind in KINDS
    ),
    pytest.param("cpu", "capacity", "AdamW", False),
    *(pytest.param("cuda", kind, "AdamW", True, marks=ON_A_GPU) for kind in ("padded", "capacity")),
]


def from_page(name: str) -> Any:
    """A function of the page, as it stands there."""
    for block in BLOCKS:
        for node in ast.parse(block).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                namespace: dict[str, Any] = {"torch": torch}
                exec(ast.unparse(node), namespace)
                return namespace[name]
    raise LookupError(name)


def captured(step: Callable[[], Any], device: str) -> Callable[[], Any]:
    """What replays a step; on the CPU the step itself, after as many calls to warm up."""
    if device == "cuda":
        return from_page("capture")(step, WARM)
    for _ in range(WARM):
        step()
    return step


def encoder(device: str, layers: int = 2) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, 0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device)


def batches(device: str) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Data with NaN, inf or 1e30 where nothing is valid, lengths and targets."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for turn, lengths in enumerate(LENGTHS):
        n = torch.tensor(lengths)
        data, target = torch.randn(2, B, T, WIDTH, generator=generator)
        garbage = (float("nan"), float("inf"), 1e30)[turn % 3]
        data = torch.where((torch.arange(T) < n[:, None])[..., None], data, garbage)
        found.append((data.to(device), n.to(device), target.to(device)))
    return found


def loss_of(kind: str, net: nn.Module, data: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    x = mt.from_lengths(data, lengths)
    x = x.packed(capacity=CAPACITY) if kind == "capacity" else x
    return F.mse_loss(net(x), target).filled(0.0)


def alone(net: nn.Module, data: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    """The loss over each sequence by itself."""
    rows = [(net(x[None, :n])[0], y[:n]) for x, y, n in zip(data, target, lengths.tolist(), strict=True) if n]
    return F.mse_loss(torch.cat([out for out, _ in rows]), torch.cat([y for _, y in rows]))


def close(mine: nn.Module, other: nn.Module) -> None:
    for p, q in zip(mine.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("device", "kind", "optimizer_name", "compiled"), STEPS)
def test_a_whole_step_with_its_optimizer(device: str, kind: str, optimizer_name: str, compiled: bool) -> None:
    net, given = encoder(device), batches(device)
    twin = copy.deepcopy(net)
    data, lengths, target = (x.clone() for x in given[0])
    layout = mt.from_lengths(data, lengths).to_flat()
    tokens = layout.values.detach().clone()
    valid = torch.arange(T, device=device) < lengths[:, None]
    called = mt.flat(net) if kind == "flat" else net
    make = OPTIMIZERS[optimizer_name]
    capturable = {"capturable": True} if optimizer_name == "AdamW" and device == "cuda" else {}
    optimizer, own = make(net.parameters(), **capturable), make(twin.parameters())
    loss_in_graph = torch.compile(loss_of, fullgraph=True) if compiled else loss_of

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        if kind == "flat":
            loss = F.mse_loss(called(mt.from_flat(tokens, layout)), target).filled(0.0)
        else:
            loss = loss_in_graph(kind, called, data, lengths, target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def step_alone(*batch: Tensor) -> Tensor:
        own.zero_grad()
        loss = alone(twin, *batch)
        loss.backward()
        own.step()
        return loss.detach()

    replay = captured(step, device)
    for _ in range(WARM):
        step_alone(*given[0])
    for new, n, y in given:
        if kind == "flat":  # other values, the same lengths
            n, new = given[0][1], new.nan_to_num(0.5, 0.5).clamp(-3, 3)
            tokens.copy_(new[valid][None])
        data.copy_(new)
        lengths.copy_(n)
        target.copy_(y)
        torch.testing.assert_close(replay(), step_alone(new, n, y), rtol=1e-3, atol=1e-4)
    close(net, twin)


class Loss(nn.Module):
    """A loss of plain tensors, which makes its batch itself."""

    def __init__(self, kind: str, net: nn.Module) -> None:
        super().__init__()
        self.kind, self.net = kind, net

    def forward(self, data: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        return loss_of(self.kind, self.net, data, lengths, target)


def check_gradients(criterion: Any, net: nn.Module, device: str) -> None:
    twin = copy.deepcopy(net)
    for new, n, y in batches(device):
        net.zero_grad(set_to_none=True)
        twin.zero_grad(set_to_none=True)
        loss, wanted = criterion(new, n, y), alone(twin, new, n, y)
        torch.testing.assert_close(loss, wanted, rtol=1e-3, atol=1e-4)
        loss.backward()
        wanted.backward()
        for p, q in zip(net.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["padded", "capacity"])
def test_graphed_callables(kind: str, device: str) -> None:
    net = encoder(device)
    criterion: Any = Loss(kind, net)
    if device == "cuda":
        criterion = torch.cuda.make_graphed_callables(criterion, batches(device)[0])
    check_gradients(criterion, net, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["padded", "capacity"])
def test_compiled_with_reduced_overhead(kind: str, device: str) -> None:
    torch.compiler.reset()
    net = encoder(device, 1)
    how: Any = {"mode": "reduce-overhead"} if device == "cuda" else {"backend": "aot_eager"}
    compiled = torch.compile(Loss(kind, net), fullgraph=True, **how)
    before = counters["inductor"]["cudagraph_skips"]
    check_gradients(lambda *batch: compiled(*batch).clone(), net, device)
    assert counters["inductor"]["cudagraph_skips"] == before, "torch did not record the graphs"


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_compiled_step_is_captured(dtype: torch.dtype) -> None:
    """By the kernels for sequences of any length, of half precision and of float32."""
    torch.compiler.reset()
    net = encoder("cuda").to(dtype)
    data, lengths, target = batches("cuda")[0]
    loss = torch.compile(Loss("capacity", net), fullgraph=True)
    replay = from_page("capture")(lambda: loss(data.to(dtype), lengths, target.to(dtype)), WARM)
    for new, n, y in batches("cuda"):
        data.copy_(new)
        lengths.copy_(n)
        target.copy_(y)
        wanted = alone(net, new.to(dtype), n, y.to(dtype))
        torch.testing.assert_close(replay().float(), wanted.float(), rtol=2e-2, atol=2e-2)


TOO_MANY = """
import sys, torch, masked_tensor as mt
way, device = sys.argv[1:]
data, lengths = torch.ones(2, 3, 1, device=device), torch.tensor([2, 1], device=device)
def step(data, lengths):
    return mt.from_lengths(data, lengths).packed(capacity=4).sum().filled(0.0)
if way not in ("eager", "captured eager"):
    mode = "reduce-overhead" if way == "reduce-overhead" else None
    step = torch.compile(step, fullgraph=True, mode=mode)
def run():
    return step(data, lengths)
if way in ("captured eager", "captured compiled"):
    run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = run()
    def run():
        graph.replay()
        return total
for given in ([2, 1], [2, 2], [0, 0], [1, 3]):
    lengths.copy_(torch.tensor(given))
    assert run().item() == sum(given)
print("as many as fit")
lengths.copy_(torch.tensor([3, 2]))
run()
torch.cuda.synchronize()
"""


@pytest.mark.cuda
@pytest.mark.parametrize("way", ["eager", "compiled", "captured eager", "captured compiled", "reduce-overhead"])
def test_nothing_valid_all_that_fits_and_one_step_too_many(way: str) -> None:
    """In a process of its own: after an assertion CUDA is unusable."""
    given = [sys.executable, "-c", TOO_MANY, way, "cuda"]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    assert done.returncode
    assert done.stdout == "as many as fit\n"
    assert "device-side assert" in done.stderr


@pytest.mark.parametrize("kind", ["padded", "capacity"])
def test_nothing_is_read_in_eager_code(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tensors without memory nothing can be read; they take attention apart, which is padded."""
    monkeypatch.setattr(attention_cuda, "DEVICES", ("meta",))
    with torch.device("meta"):
        net = encoder("meta")
        given = torch.empty(B, T, WIDTH), torch.empty(B, dtype=torch.int64), torch.empty(B, T, WIDTH)
    assert loss_of(kind, net, *given).is_meta


def test_the_page_has_what_is_tested() -> None:
    assert from_page("capture").__code__.co_argcount == 2
    for recipe in ('mode="reduce-overhead"', "torch.cuda.graph", "torch.cuda.make_graphed_callables"):
        assert f"## `{recipe}`" in PAGE
