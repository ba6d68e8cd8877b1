"""Flat modules given a batch packed at a capacity: each sequence as if it were alone, and one graph for all batches."""

import copy
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend

import masked_tensor as mt

from .test_flat import Attention

B, T, C, CAPACITY = 3, 6, 8, 12
ALL = "MASKED_TENSOR_CAPACITY" in os.environ  #: everything compiled, not the small ones alone
GARBAGE = (float("nan"), float("inf"), 1e30)


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Own(nn.Module):
    """Attention of one's own, positions beside the batch, a norm that would divide by zero where nothing lies."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm, self.places = Attention(C, True), nn.LayerNorm(C), nn.Embedding(T, C)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        x = x / x.norm(dim=-1, keepdim=True)
        out: Tensor = x + self.attention(self.norm(x + self.places(positions)))
        return out


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(C, 2, 16, 0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


MODULES: dict[str, tuple[Callable[[], nn.Module], bool]] = {"encoder": (encoder, False), "own": (Own, True)}


def drawn(draw: random.Random, turn: int) -> list[int]:
    """Lengths: as many steps as fit, none, and others."""
    lengths = [6, 0, 6] if turn == 0 else [0, 0, 0] if turn == 1 else [draw.randint(0, T) for _ in range(B)]
    return lengths if sum(lengths) <= CAPACITY else drawn(draw, turn)


def padded(rows: Tensor, lengths: list[int], fill: float) -> Any:
    valid = torch.arange(T) < torch.tensor(lengths)[:, None]
    return mt.from_lengths(torch.where(valid[..., None], rows.detach(), fill), torch.tensor(lengths))


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")
@pytest.mark.parametrize("inside", [False, True], ids=["packed before", "packed inside"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", MODULES)
def test_each_sequence_as_if_it_were_alone(name: str, compiled: bool, inside: bool) -> None:
    if compiled and name != "own" and not ALL:
        pytest.skip("compiles for seconds")
    torch.manual_seed(0)
    draw, (make, positions) = random.Random(0), MODULES[name]
    model = make()
    twin = copy.deepcopy(model)
    mt.flat(model)
    counter = CompileCounterWithBackend("aot_eager")

    def step(x: Any, beside: Tensor) -> Any:
        x = x.packed(capacity=CAPACITY) if inside else x
        out = model(x, beside) if positions else model(x)
        return out.square().mean().filled(0.0), out

    run = torch.compile(step, fullgraph=True, backend=counter) if compiled else step
    for turn in range(20 if compiled else 6):
        lengths, data = drawn(draw, turn), torch.randn(B, T, C)
        x = padded(data, lengths, GARBAGE[turn % 3])
        x = x if inside else x.packed(capacity=CAPACITY)
        model.zero_grad(set_to_none=False)
        twin.zero_grad(set_to_none=False)
        places = torch.arange(T).expand(B, T).clone()
        loss, out = run(x, places)
        loss.backward()
        assert out.is_packed
        assert out.get_mask()[..., 0].sum(1).tolist() == lengths
        rows = [
            twin(*([row[None, :n], torch.arange(n)[None]] if positions else [row[None, :n]]))[0]
            for row, n in zip(data, lengths, strict=True)
            if n
        ]
        if not rows:
            assert not loss
            assert all(p.grad is None or not p.grad.any() for p in model.parameters())
            continue
        wanted = torch.cat(rows)
        wanted.square().mean().backward()
        torch.testing.assert_close(out.compressed(), wanted.flatten())
        for mine, other in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-6)
    assert counter.frame_count == int(compiled)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("kind", ["BertForMaskedLM", "LlamaForCausalLM"])
def test_models_of_transformers(kind: str, compiled: bool) -> None:
    """With the loss inside, whose labels are masked or plain: nothing that fills the batch up is counted."""
    transformers = pytest.importorskip("transformers")
    if compiled and not ALL:
        pytest.skip("compiles for seconds")
    torch.manual_seed(0)
    config = getattr(transformers, kind.replace("ForMaskedLM", "Config").replace("ForCausalLM", "Config"))(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=32,
    )  # fmt: skip
    model = getattr(transformers, kind)(config)
    twin = copy.deepcopy(model)
    mt.flat(model)
    counter = CompileCounterWithBackend("aot_eager")

    def step(ids: Any, labels: Any) -> Any:
        found = model(input_ids=ids, labels=labels)
        return found.loss, found.logits

    run = torch.compile(step, fullgraph=True, backend=counter) if compiled else step
    draw = random.Random(1)
    for turn, masked in enumerate((True, True, True, False, False)):
        counter.frame_count = counter.frame_count if turn != 3 else 0
        lengths = [n + 1 for n in drawn(draw, 2 + turn)]
        lengths = lengths if sum(lengths) <= CAPACITY else [3, 4, 2]
        ids = torch.randint(1, 20, (B, T))
        batch = mt.from_lengths(ids, torch.tensor(lengths)).packed(capacity=CAPACITY)
        labels = batch if masked else ids.where(torch.arange(T) < torch.tensor(lengths)[:, None], 7)
        loss, logits = run(batch, labels)
        model.zero_grad()
        twin.zero_grad()
        loss.backward()
        outs = [twin(input_ids=row[None, :n]).logits[0] for row, n in zip(ids, lengths, strict=True)]
        torch.testing.assert_close(logits.compressed(), torch.cat(outs).flatten(), rtol=1e-4, atol=1e-5)
        shift = int(kind == "LlamaForCausalLM")
        scores = torch.cat([out[: len(out) - shift] for out in outs])
        wanted = F.cross_entropy(scores, torch.cat([row[shift:n] for row, n in zip(ids, lengths, strict=True)]))
        torch.testing.assert_close(loss, wanted)
        wanted.backward()
        for mine, other in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-3, atol=1e-5)
    assert counter.frame_count <= 1


class Regression(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(C, C)

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        out = self.head(x)
        return out, F.mse_loss(out, labels)


@pytest.mark.parametrize("masked", [False, True])
def test_what_would_count_what_fills_a_batch_up_is_refused(masked: bool) -> None:
    model = mt.flat(Regression(), check=False)
    x = padded(torch.randn(B, T, C), [3, 1, 2], 0.0).packed(capacity=CAPACITY)
    labels = x if masked else torch.randn(B, T, C)
    run = torch.compile(lambda x, labels: model(x, labels=labels), backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match="compute the loss outside"):
        run(x, labels)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_step_that_is_masked_in_part_is_refused(compiled: bool) -> None:
    model = mt.flat(encoder())
    x = padded(torch.randn(B, T, C), [3, 1, 2], 0.0)
    mask = x.get_mask().clone()
    mask[0, 1, 2] = False
    x = mt.masked_tensor(x.get_data(), mask).packed(capacity=CAPACITY)
    run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
    with pytest.raises(Exception, match="flat tokens have no mask"):
        run(x)


def test_attention_masks_and_other_inputs_must_have_the_same_steps() -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

    model = mt.flat(Two())
    x, y = (padded(torch.randn(B, T, C), n, 0.0) for n in ([3, 1, 2], [3, 2, 1]))
    run = torch.compile(model, backend="aot_eager", fullgraph=True)
    for call in (model, run):
        for other in (x, x.packed(capacity=CAPACITY)):
            out = call(x.packed(capacity=CAPACITY), other)
            torch.testing.assert_close(out.filled(0), (x + x).filled(0))
        for other in (y, y.packed(capacity=CAPACITY)):
            with pytest.raises((ValueError, RuntimeError), match="have different lengths"):
                call(x.packed(capacity=CAPACITY), other)
