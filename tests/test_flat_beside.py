"""What a flat module is given and attends to beside its tokens: entries that are as many as the tokens by chance."""

import threading
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import multi_head_attention_forward as stored_before
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt

ENTRIES = 10


class Memory(nn.Module):
    """Tokens attend to each other, and to entries that every sequence has."""

    def __init__(self, by_heads: bool, left_out: bool = False) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.over = nn.MultiheadAttention(8, 2, batch_first=True)
        self.entries = nn.Parameter(torch.randn(1, ENTRIES, 8))
        self.by_heads, self.left_out, self.saves = by_heads, left_out, False

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.left_out and self.training else self.layer(x)
        y = y + (checkpoint(self.beside, y, use_reentrant=False) if self.saves else self.beside(y))
        out: Tensor = self.layer(y)
        return out

    def beside(self, x: Tensor) -> Any:
        known = self.entries.expand(len(x), -1, -1)
        if self.by_heads:
            return self.over(x, known, known)[0]
        return F.scaled_dot_product_attention(x[:, None], known[:, None], known[:, None])[:, 0]


@pytest.mark.parametrize("by_heads", [False, True], ids=["function", "heads"])
@pytest.mark.parametrize("lengths", [[5, 4], [5, 5], [6, 5], [5, 3]], ids=lambda n: str(sum(n)))
def test_entries_beside_the_tokens_that_are_as_many(by_heads: bool, lengths: list[int]) -> None:
    """Ten entries beside ten tokens are no tokens; the check never draws as many tokens as there are entries."""
    torch.manual_seed(0)
    model, x = Memory(by_heads).double(), torch.randn(2, 6, 8, dtype=torch.float64)
    alone = torch.cat([model(x[b : b + 1, :n])[0] for b, n in enumerate(lengths)])
    way, parts = torch.randn_like(alone), [p for name, p in model.named_parameters() if by_heads or "over" not in name]
    expected = torch.autograd.grad(alone, parts, way)
    given = mt.from_lengths(x, lengths)
    got = torch.cat(mt.flat(model)(given).unpad())
    torch.testing.assert_close(got, alone)
    torch.testing.assert_close(torch.autograd.grad(got, parts, way), expected)


class Heads(nn.Module):
    """Many heads over the tokens, and over entries beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.over = nn.ModuleList(nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))
        self.entries = nn.Parameter(torch.randn(1, ENTRIES, 8))

    def forward(self, x: Tensor) -> Any:
        known = self.entries.expand(len(x), -1, -1)
        x = x + self.over[0](x, known, known, need_weights=False)[0]
        return x + self.over[1](x, x, x, need_weights=False)[0]


def test_entries_beside_the_tokens_in_compiled_code() -> None:
    torch.manual_seed(0)
    model, x = Heads(), torch.randn(2, 5, 8)
    alone = torch.cat([model(row[None])[0] for row in x])
    torch.compiler.reset()
    compiled = torch.compile(mt.flat(model), backend="eager", fullgraph=True)
    torch.testing.assert_close(torch.cat(compiled(mt.from_lengths(x, [5, 5], packed=True)).unpad()), alone)


def test_calls_of_attention_that_the_check_did_not_see() -> None:
    """A layer that is left out in training, or run again by a checkpoint: right, or refused where it is unclear."""
    torch.manual_seed(0)
    x = torch.randn(2, 6, 8)
    for model in (Memory(True, left_out=True), Memory(False, left_out=True)):
        mt.flat(model)
        model(mt.from_lengths(x, [5, 4]))
        with pytest.raises(ValueError, match="10 tokens, as many as what the module attends to beside"):
            model(mt.from_lengths(x, [5, 5]))
    model = mt.flat(Memory(False))
    model.saves = True
    model(mt.from_lengths(x, [5, 4])).sum().backward()
    with pytest.raises(ValueError, match="10 tokens, as many as what the module attends to beside"):
        model(mt.from_lengths(x, [5, 5])).sum().backward()


class Given(nn.Module):
    """Tokens attend to what is given beside them."""

    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        return x + F.scaled_dot_product_attention(x, known, known)


def test_an_input_to_attend_to_that_has_as_many_entries_as_there_are_tokens() -> None:
    model, x = mt.flat(Given()), torch.randn(2, 5, 8)
    for lengths, number in (([5, 5], 4), ([5, 4], 9), ([5, 5], 10)):
        known = torch.randn(1, number, 8)
        got = model(mt.from_lengths(x, lengths), known)
        for row, n, y in zip(x, lengths, got.unpad(), strict=True):
            torch.testing.assert_close(y, Given()(row[None, :n], known)[0])


class Gathers(nn.Module):
    """Entries that attend to the tokens of all sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.entries = nn.Parameter(torch.randn(1, 4, 8))

    def forward(self, x: Tensor) -> Tensor:
        known = self.entries.expand(len(x), -1, -1)
        return x + F.scaled_dot_product_attention(known, x, x).mean(1, True)


def test_entries_that_attend_to_the_tokens_raise() -> None:
    with pytest.raises(mt.UnsupportedOpError, match="differ by"):
        mt.flat(Gathers())(mt.from_lengths(torch.randn(2, 5, 8), [5, 3]))


class ByHeads(nn.Module):
    """torch's function for many heads, by a name that was stored before."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.bias = nn.Parameter(torch.randn(24, 8) / 3), nn.Parameter(torch.randn(24))
        self.out = nn.Linear(8, 8)

    def attend(self, x: Tensor) -> Tensor:
        y = x.transpose(0, 1)
        weight, bias = self.out.weight, self.out.bias
        many = stored_before(y, y, y, 8, 2, self.project, self.bias, None, None, False, 0.0, weight, bias)
        return many[0].transpose(0, 1)

    def forward(self, x: Tensor) -> Any:
        return x + checkpoint(self.attend, x, use_reentrant=False)


def test_the_function_for_many_heads_in_threads_and_checkpoints() -> None:
    torch.manual_seed(0)
    model, x = ByHeads().double(), torch.randn(2, 5, 8, dtype=torch.float64)
    parts = list(model.parameters())
    alone = torch.cat([model(x[b : b + 1, :n])[0] for b, n in enumerate([5, 2])])
    expected = torch.autograd.grad(alone.square().sum(), parts)
    mt.flat(model)
    found: list[Any] = []

    def work() -> None:
        for _ in range(5):
            got = torch.cat(model(mt.from_lengths(x, [5, 2])).unpad())
            found.append((got.detach(), torch.autograd.grad(got.square().sum(), parts)))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 10
    for got, grads in found:
        torch.testing.assert_close(got, alone.detach())
        torch.testing.assert_close(grads, expected)


class Measured(nn.Module):
    """A number for each step, or several for each sequence, and their error."""

    def __init__(self, by_step: bool) -> None:
        super().__init__()
        self.by_step, self.head = by_step, nn.Linear(4, 1 if by_step else 3)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        found = self.head(x)
        found = found if self.by_step else found[:, 0]
        if labels is None:
            return found
        return F.mse_loss(found.reshape(-1), labels.reshape(-1)) if self.by_step else F.mse_loss(found, labels)


@pytest.mark.parametrize("compiled", [False, True])
def test_labels_that_are_numbers_of_another_shape(compiled: bool) -> None:
    """Six numbers beside six tokens belong to sequences, or are refused."""
    torch.manual_seed(0)
    x, labels = mt.from_lengths(torch.randn(2, 4, 4), [4, 2], packed=True), torch.randn(2, 3)
    module = mt.flat(Measured(True))
    run = torch.compile(module, backend="eager") if compiled else module
    with pytest.raises(mt.UnsupportedOpError, match=r"reads labels= of shape \(2, 3\) as if each"):
        run(x, labels=labels)
    assert module(x, labels=torch.randn(2, 4)).isfinite()
    by_sequence = mt.flat(Measured(False))
    wanted = F.mse_loss(by_sequence.head(torch.stack([row[0] for row in x.unpad()])), labels)
    torch.testing.assert_close(by_sequence(x, labels=labels), wanted)


class LastOfWindow(nn.Module):
    """The mean of the last three steps, of which a short sequence has fewer."""

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, 2, 0)).unfold(1, 3, 1).mean(-1)[:, -1]


class Before(nn.Module):
    """The step before the last one; of a single step, that one."""

    def forward(self, x: Tensor) -> Tensor:
        return x.roll(1, 1)[:, -1]


class Prefix(nn.Module):
    """Entries that are joined to the tokens, and attention to both."""

    def __init__(self) -> None:
        super().__init__()
        self.entries = nn.Parameter(torch.randn(1, 9, 8))

    def forward(self, x: Tensor) -> Tensor:
        known = torch.cat([self.entries.expand(len(x), -1, -1), x], 1)
        return F.scaled_dot_product_attention(x, known, known) / 200


class Classes(nn.Module):
    """What a module chooses."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.module(x)).argmax(-1)


class Gated(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * x[:, 0, :1, None].sigmoid() > 0


@pytest.mark.parametrize(
    ("module", "dtype", "why"),
    [
        (LastOfWindow(), torch.float32, "differ by"),
        (Before(), torch.float32, "differ by"),
        (Prefix(), torch.float32, "."),
        (Prefix(), torch.bfloat16, "the tokens of all sequences and more"),
        (Classes(Prefix()), torch.float32, "."),
        (Classes(Prefix()), torch.bfloat16, "."),
        (Gated(), torch.bfloat16, "."),
    ],
)
def test_what_hides_that_steps_are_mixed(module: nn.Module, dtype: torch.dtype, why: str) -> None:
    """Outputs of one step, whose neighbours are its own in longer sequences; half precision; classes."""
    torch.manual_seed(0)
    with pytest.raises(mt.UnsupportedOpError, match=why):
        mt.flat(module.to(dtype))(mt.from_lengths(torch.randn(2, 5, 8, dtype=dtype), [5, 3]))
