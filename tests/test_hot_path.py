"""The hot path of every part never waits for the device: forward and backward at sizes beyond every tuning number.

On a GPU (``python -m pytest -m cuda``) ``set_sync_debug_mode("error")`` makes a wait an error.  Without one the same
programs run on the CPU, where an op that reads a value raises.
"""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakSet

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.compat import IS_OLD
from masked_tensor.engine.boundary import intermediates

from .helpers.reads import no_sync
from .test_devices import NoReads

ROWS, WIDTH = 4100, 128  # more elements than any number of settings.py that decides by them


def trained(*operations: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """Each operation of a leaf, and the gradient of its sum."""

    def run(x: Any) -> list[Any]:
        leaf = x.detach().requires_grad_()
        return [torch.autograd.grad(op(leaf).sum(), leaf)[0] for op in operations]

    return run


def norms(x: Any) -> list[Any]:
    weight = torch.ones(WIDTH, device=x.device, requires_grad=True)
    return trained(
        lambda t: F.layer_norm(t, [WIDTH], weight),
        lambda t: F.rms_norm(t, [WIDTH], weight),
        lambda t: F.batch_norm(t, None, None, weight, weight, training=True),
        lambda t: F.group_norm(t, 8, weight),
        lambda t: F.instance_norm(t.view(41, 100, WIDTH)),
    )(x)


def attention(x: Any) -> list[Any]:
    heads = x.view(41, 100, 4, 32).transpose(1, 2)
    return trained(lambda t: F.scaled_dot_product_attention(t, t, t))(heads)


def rows(x: Any) -> Any:
    """Packed, which is where the lengths are read."""
    valid = torch.arange(100, device=x.device) < torch.arange(60, 101, device=x.device)[:, None]
    return mt.as_masked_tensor(x.get_data().nan_to_num().view(41, 100, WIDTH), valid[..., None]).packed()


def packed_attention(x: Any) -> list[Any]:
    layer = nn.TransformerEncoderLayer(WIDTH, 4, WIDTH, 0.0, batch_first=True, device=x.device)
    loss = layer(x).square().mean()
    loss.backward()
    return [loss, *(p.grad for p in layer.parameters())]


def stored(x: Any) -> Any:
    index = torch.arange(4000, device=x.device)
    indices, values = torch.stack((index // 40, index % 40)), x.get_data().nan_to_num().view(-1)[:4000]
    return mt.as_masked_tensor(
        torch.sparse_coo_tensor(indices, values, (100, 40), is_coalesced=True, check_invariants=False)
    )


def sparse(x: Any) -> list[Any]:
    return [x + x, x * 2, torch.tanh(x), torch.where(x > 0, x, x)]


def sparse_results(x: Any) -> list[Any]:
    """These read by nature: how many entries a result stores depends on which are valid."""
    return [torch.sum(x, 1), torch.mean(x, 0), torch.amax(x, 0), torch.softmax(x, 1)]


HOT: dict[str, Callable[[Any], Any]] = {
    "pointwise": trained(lambda t: t + t, lambda t: t * t, torch.exp, torch.relu, lambda t: torch.where(t > 0, t, 0.5)),
    "reductions": trained(*(
        lambda t, name=name, dim=dim: getattr(torch, name)(t, dim)
        for name in ("sum", "mean", "amax", "var", "logsumexp") for dim in (0, 1)
    )),
    "products": lambda x: [x.prod(0), x.prod(1)],  # torch's derivative counts zeros on the host
    "softmax": trained(lambda t: t.softmax(-1), lambda t: t.log_softmax(0)),
    "norms": norms,
    "attention": attention,
    "packed attention": packed_attention,
    "sparse": sparse,
    "matmul": trained(lambda t: t @ t.t()[:, :64], lambda t: F.linear(t, torch.ones(8, WIDTH, device=t.device))),
    "losses": trained(lambda t: F.mse_loss(t, t.detach() * 2), lambda t: F.cross_entropy(t, t.detach().argmax(-1))),
}  # fmt: skip


MADE: dict[str, Callable[[Any], Any]] = {"packed attention": rows, "sparse": stored}  #: of the example, before


def example(name: str, device: str) -> Any:
    torch.manual_seed(0)
    data, mask = torch.randn(ROWS, WIDTH), torch.rand(ROWS, WIDTH) < 0.7
    x = mt.as_masked_tensor(data.masked_fill(~mask, torch.nan).to(device), mask.to(device))
    return MADE.get(name, lambda x: x)(x)


@pytest.mark.parametrize("name", HOT)
def test_the_hot_path_reads_nothing(name: str) -> None:
    x = example(name, "cpu")
    HOT[name](x)  # makes the constants that are made once
    with NoReads():
        HOT[name](x)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", HOT)
def test_the_hot_path_never_waits(name: str) -> None:
    x = example(name, "cuda")
    HOT[name](x)
    with no_sync("cuda", allowed=False):
        results = HOT[name](x)
    for result in results:
        values = result.to_dense() if result.is_sparse else result
        assert (values.filled(0) if mt.is_masked_tensor(values) else values).isfinite().all()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")  # inductor's advice
@pytest.mark.parametrize("packed", [False, True])
def test_a_compiled_step_never_waits(packed: bool) -> None:
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)).cuda()
    x = example("packed attention", "cuda") if packed else example("compiled", "cuda").view(41, 100, WIDTH)
    step = torch.compile(lambda t: model(t).square().mean(), fullgraph=True)
    for _ in range(2):
        step(x).backward()
    with no_sync("cuda", allowed=False):
        step(x).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_sparse_results_are_those_of_the_cpu() -> None:
    for ours, expected in zip(
        sparse_results(example("sparse", "cuda")), sparse_results(example("sparse", "cpu")), strict=True
    ):
        for fill in (0.0, 1.0):
            torch.testing.assert_close(ours.filled(fill).cpu(), expected.filled(fill))


# -------------------------------------------------------------------------------------------------------------- frames

#: How many Python frames of this package a call passes, and how many bytecodes of Python 3.11 they run, at most.
MOST = {
    "add": (6, 373), "mul": (6, 372), "relu": (5, 217), "sum": (9, 273), "add tracked": (14, 552),
    "mul tracked": (14, 551), "relu tracked": (13, 396), "sum tracked": (14, 446), "view": (16, 534),
    "select": (15, 529), "add_": (25, 846), "backward": (99, 2856), "layer_norm": (56, 1681),
    "add in meaning": (18, 596), "packed add": (47, 926), "packed encoder": (600, 14888),
    "stack of 64": (16, 5534),
}  # fmt: skip


def in_meaning(call: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with setting:
            return call()

    setting = mt.meaning(padding="tensor")
    return run


def calls() -> dict[str, Callable[[], Any]]:
    data, mask = torch.arange(16.0).view(4, 4), torch.arange(16).view(4, 4) % 3 > 0
    x, y, tracked = mt.masked_tensor(data, mask), mt.masked_tensor(data, mask), mt.masked_tensor(data, mask)
    tracked.requires_grad_()
    packed = mt.masked_tensor(torch.ones(4, 8, 16), (torch.arange(8) < torch.tensor([[8], [5], [3], [6]]))[..., None])
    packed = packed.packed()
    wide = mt.masked_tensor(torch.randn(8, 32, 16), torch.rand(8, 32, 16) > 0.3)
    encoder = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    mt.masked_tensor([1.0, 2.0]).view(2, 1)  # with the first view autograd asks for more, of every tensor
    samples = list(mt.masked_tensor(torch.ones(64, 4), torch.arange(256).view(64, 4) % 3 > 0))
    return {
        "add": lambda: x + y, "mul": lambda: x * y, "relu": lambda: x.relu(), "sum": lambda: x.sum(),
        "add tracked": lambda: tracked + y, "mul tracked": lambda: tracked * y, "relu tracked": lambda: tracked.relu(),
        "sum tracked": lambda: tracked.sum(), "view": lambda: x.view(2, 8), "select": lambda: x[0],
        "add_": lambda: x.clone().add_(1), "backward": lambda: (tracked * y).sum().backward(),
        "add in meaning": in_meaning(lambda: x + y),
        "layer_norm": lambda: torch.nn.functional.layer_norm(wide, (16,)), "packed add": lambda: packed + packed,
        "packed encoder": lambda: encoder(packed), "stack of 64": lambda: torch.stack(samples),
    }  # fmt: skip


@pytest.mark.parametrize("name", MOST)
def test_an_op_passes_few_frames(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, home = calls()[name], str(Path(mt.__file__).parent)
    frames: list[str] = []
    bytecodes: list[str] = []

    def count(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            bytecodes.append(frame.f_code.co_name)
        elif event == "call":
            if not frame.f_code.co_filename.startswith(home):
                return None
            frames.append(frame.f_code.co_name)
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return count

    # Of a process in which nothing is watched: hooks of other tests may keep their graphs alive for good.
    monkeypatch.setattr(intermediates, "WATCHED", WeakSet())
    for _ in range(3):  # what is done once
        call()
    before = sys.gettrace()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
    most_frames, most_bytecodes = MOST[name]
    if IS_OLD:  # torch 2.11 calls a few ops more
        most_frames, most_bytecodes = int(most_frames * 1.02), int(most_bytecodes * 1.02)
    assert 0 < len(frames) <= most_frames, frames
    assert sys.version_info[:2] != (3, 11) or 0 < len(bytecodes) <= most_bytecodes, Counter(bytecodes)
