"""Compiled flat modules: as many graphs as the plain model, each sequence as if it were alone."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.fx.experimental.proxy_tensor import make_fx

import masked_tensor as mt
from masked_tensor.api.flat.attention import Within
from masked_tensor.api.flat.compiled.nodes import attend_compiled

from .test_flat import Attention, Means

STEPS = [[3, 5], [2, 7], [9, 1]]


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Layer(nn.Module):
    """Attention of torch or of one's own; a second input of whole steps, and two outputs."""

    def __init__(self, of_torch: bool) -> None:
        super().__init__()
        self.first = nn.MultiheadAttention(8, 2, batch_first=True) if of_torch else None
        self.second = Attention(8, True, groups=2)
        self.norm, self.places = nn.LayerNorm(8), nn.Embedding(16, 8)

    def forward(self, x: Tensor, positions: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        h = x + self.places(positions)
        h = h + (self.second(self.norm(h)) if self.first is None else self.first(h, h, h)[0])
        return h, {"sums": h.sum(-1)}


def batch(lengths: list[int], packed: bool = True) -> tuple[Any, Tensor, list[Tensor]]:
    """A leaf, NaN in its padding unless it is packed; positions; the sequences."""
    rows = [torch.randn(n, 8, dtype=torch.float64, requires_grad=True) for n in lengths]
    time = max(lengths)
    data = torch.stack([torch.cat([r.detach(), r.new_full((time - len(r), 8), torch.nan)]) for r in rows])
    x = mt.from_lengths(data, lengths, packed=packed).detach().requires_grad_()
    return x, torch.arange(time).expand(len(lengths), time), rows


def loss_alone(model: nn.Module, rows: list[Tensor]) -> Tensor:
    outs = [model(r[None], torch.arange(len(r))[None]) for r in rows]
    return torch.cat([(h.sum(-1) * more["sums"])[0] for h, more in outs]).mean()


def compiled(way: str, model: nn.Module, counter: Any) -> Any:
    if way == "of a compiled one":
        return mt.flat(torch.compile(model, backend=counter))
    mt.flat(model)
    if way == "by itself":
        model.compile(backend=counter)
        return model
    if way == "whole step":

        def step(*given: Any) -> Any:
            h, more = model(*given)
            return (h.sum(-1) * more["sums"]).mean()

        return torch.compile(step, backend=counter, fullgraph=True)
    return torch.compile(model, backend=counter, fullgraph=way == "packed")


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("way", ["packed", "masked", "whole step", "of a compiled one", "by itself"])
def test_as_many_graphs_as_plain(way: str) -> None:
    torch.manual_seed(0)
    model = Layer(way == "masked").double()
    twin = copy.deepcopy(model)
    counter = CompileCounterWithBackend("aot_eager" if way == "whole step" else "eager")
    run = compiled(way, model, counter)
    for lengths in STEPS:
        x, positions, rows = batch(lengths, packed=way != "masked")
        expected = loss_alone(twin, rows)
        out = run(x, positions)
        loss = out if way == "whole step" else (out[0].sum(-1) * out[1]["sums"]).mean()
        torch.testing.assert_close(loss.filled(0), expected)
        if way != "whole step":
            assert out[0].is_packed
            assert out[0].lengths().tolist() == lengths
        *got, grad = torch.autograd.grad(loss, [*model.parameters(), x], allow_unused=True)
        *wanted, first, second = torch.autograd.grad(expected, [*twin.parameters(), *rows], allow_unused=True)
        torch.testing.assert_close(got, wanted)
        for a, b in zip(grad.unpad(lengths=lengths), (first, second), strict=True):
            torch.testing.assert_close(a.filled(0), b)
    assert counter.frame_count == 2  # static, and dynamic, as of plain tensors


OPTIONS: dict[str, dict[str, Any]] = {
    "whole": {}, "causal": {"causal": True, "scale": 0.3}, "grouped": {"grouped": True}, "window": {"window": 2},
    "causal window": {"window": 3, "causal": True, "grouped": True}, "soft cap": {"softcap": 2.0, "causal": True},
    "sinks": {"sinks": torch.tensor([0.5, -1.0], dtype=torch.float64), "window": 2, "causal": True},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_attention_in_a_graph(name: str) -> None:
    torch.manual_seed(0)
    options = {"dropout": 0.0, "causal": False, "scale": None, "grouped": False, "window": None, "softcap": None}
    options |= OPTIONS[name]
    sinks = [options.pop("sinks")] if "sinks" in options else []
    heads = 1 if options["grouped"] else 2
    graph = None
    for lengths, side in (([3, 1, 4], "right"), ([5, 0, 2], "right"), ([2, 7, 3], "left")):
        n = sum(lengths)
        sizes = [(1, 2, n, 4), (1, heads, n, 4), (1, heads, n, 4)]
        given = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
        mode = Within(mt.from_lengths(torch.zeros(3, max(lengths)), lengths, padding_side=side).to_flat()).mode
        bounds = [mode.index, mode.lengths, mode.places]

        def attend(*tensors: Tensor) -> Tensor:
            return attend_compiled(*tensors[:6], *options.values(), *tensors[6:])

        graph = graph or make_fx(attend, tracing_mode="symbolic")(*given, *bounds, *sinks)
        eager, got = mode.within(*given, *options.values(), *sinks), graph(*given, *bounds, *sinks)
        torch.testing.assert_close(got, eager)
        way = torch.randn_like(eager)
        wanted = torch.autograd.grad(eager, given, way)
        torch.testing.assert_close(torch.autograd.grad(got, given, way), wanted)


def test_dropout_in_a_graph_drops_within_sequences() -> None:
    torch.manual_seed(0)
    value = torch.block_diag(torch.ones(3, 1), torch.ones(5, 1))[None, None]  # each token knows its sequence
    mode = Within(mt.from_lengths(torch.zeros(2, 5), [3, 5]).to_flat()).mode
    given = (value, value, value, mode.index, mode.lengths, mode.places)
    graph = make_fx(lambda *tensors: attend_compiled(*tensors, 0.5, False, None, False), tracing_mode="symbolic")(
        *given
    )
    got = graph(*given)
    assert (got != value).any()  # something was dropped
    assert ((got != 0) <= (value != 0)).all()


FAST: dict[str, Callable[[], nn.Module]] = {
    "layer": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    "norm first": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu"),
    "attention": lambda: SelfAttention(),
}


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.heads(x, x, x)[0]
        return out


@pytest.mark.parametrize("name", FAST)
def test_fast_paths_of_torch_keep_sequences_apart(name: str) -> None:
    torch.manual_seed(0)
    model = FAST[name]().eval()
    rows = [torch.randn(n, 8) for n in (5, 3)]
    with torch.no_grad():
        alone = [model(row[None])[0] for row in rows]
        out = torch.compile(mt.flat(model), backend="eager", fullgraph=True)(mt.from_sequences(rows, packed=True))
    for a, b in zip(out.unpad(), alone, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("packed", [True, False])
def test_a_graph_break_inside_of_the_module(packed: bool) -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2)])

        def forward(self, x: Tensor) -> Tensor:
            x = self.layers[0](x)
            torch._dynamo.graph_break()
            return self.layers[1](x)

    torch.manual_seed(0)
    model = Broken().eval()
    rows = [torch.randn(n, 8) for n in (5, 3)]
    with torch.no_grad():
        alone = [model(row[None])[0] for row in rows]
        out = torch.compile(mt.flat(model), backend="eager")(mt.from_sequences(rows, packed=packed))
    for a, b in zip(out.unpad(), alone, strict=True):
        torch.testing.assert_close(a, b)


def test_what_disagrees_raises_when_the_graph_runs() -> None:
    x, _, _ = batch([3, 5])
    weights = mt.from_lengths(torch.ones(2, 5, 1), [5, 3], packed=True)

    class Both(nn.Module):
        def forward(self, x: Tensor, w: Tensor) -> Tensor:
            return x * w

    both = torch.compile(mt.flat(Both()), backend="eager", fullgraph=True)
    torch.testing.assert_close(both(x, x).unpacked(), (x * x).unpacked())
    for other in (weights, weights.unpacked()):
        with pytest.raises(RuntimeError, match="different lengths"):
            both(x, other)


def test_what_mixes_steps_raises_in_compiled_code() -> None:
    run = torch.compile(mt.flat(Means()), backend="eager")
    with pytest.raises(mt.UnsupportedOpError, match="differ by"):
        run(batch([3, 5])[0])


def test_models_of_transformers() -> None:
    pytest.importorskip("transformers")
    from .test_flat_transformers import make

    model = make("Llama", "ForCausalLM")
    twin = copy.deepcopy(model)
    counter = CompileCounterWithBackend("eager")
    run = torch.compile(mt.flat(model), backend=counter, fullgraph=True)
    mt.flat(twin)
    for lengths in STEPS[:2]:
        ids = torch.randint(3, 50, (2, max(lengths)))
        told = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        x, labels = mt.masked_tensor(ids, told).packed(), mt.masked_tensor(ids, told)
        loss = run(input_ids=x, labels=labels, attention_mask=told.long()).loss
        expected = twin(input_ids=x, labels=labels).loss
        torch.testing.assert_close(loss, expected)
        got = torch.autograd.grad(loss, list(model.parameters()))
        for a, b in zip(got, torch.autograd.grad(expected, list(twin.parameters())), strict=True):
            torch.testing.assert_close(a, b)
    assert counter.frame_count == 2
    with pytest.raises(RuntimeError, match="different lengths"):
        run(input_ids=x, labels=labels, attention_mask=torch.ones_like(ids))


def test_a_pooler_reads_the_first_step_of_each_sequence() -> None:
    pytest.importorskip("transformers")
    from .test_flat_transformers import batch as padded
    from .test_flat_transformers import make

    model = make("Bert").eval()
    ids, valid = padded()
    alone = [model(input_ids=row[mask][None]).pooler_output for row, mask in zip(ids, valid, strict=True)]
    run = torch.compile(mt.flat(model), backend="eager")
    torch.testing.assert_close(run(input_ids=mt.masked_tensor(ids, valid)).pooler_output, torch.cat(alone))


class AsksForWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x, h = x.transpose(0, 1), self.heads
        weights = (h.in_proj_weight, h.in_proj_bias, None, None, False, 0.0, h.out_proj.weight, h.out_proj.bias)
        return F.multi_head_attention_forward(x, x, x, 8, 2, *weights)[0].transpose(0, 1)


def test_weights_that_dynamo_would_compute_over_all_tokens_are_left_to_eager_code() -> None:
    rows = [torch.randn(n, 8) for n in (5, 3)]
    model = AsksForWeights()
    x, alone = mt.from_sequences(rows, packed=True), [model(row[None])[0] for row in rows]
    mt.flat(model)
    for run in (torch.compile(model, backend="eager"), model):
        for a, b in zip(run(x).unpad(), alone, strict=True):
            torch.testing.assert_close(a, b)
