"""Per-sample gradients: ``vmap(grad)`` of a module over a padded batch gives those of its unpadded rows."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt

NAN = float("nan")
LENGTHS = (5, 3, 2, 4)
BATCH, STEPS, FEATURES, WORDS = len(LENGTHS), 5, 6, 7
PRESENT = torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]
DATA = torch.linspace(-2, 2, BATCH * STEPS * FEATURES, dtype=torch.float64).view(BATCH, STEPS, FEATURES).sin()
IDS = (torch.arange(BATCH * STEPS) * 3 % WORDS).view(BATCH, STEPS)


def sequences(payload: float) -> tuple[Any, list[Tensor]]:
    """A padded batch, and its rows."""
    mask = PRESENT[..., None].expand(DATA.shape)
    return mt.as_masked_tensor(torch.where(mask, DATA, payload), mask), [
        x[:n] for x, n in zip(DATA, LENGTHS, strict=True)
    ]


def words(payload: float) -> tuple[Any, list[Tensor]]:
    """A padded batch of ids, with ids under the mask that no table has."""
    outside = torch.where(PRESENT, IDS, 10**6 if payload == payload else -1)
    return mt.as_masked_tensor(outside, PRESENT), [x[:n] for x, n in zip(IDS, LENGTHS, strict=True)]


def first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def one(module: nn.Module) -> Callable[[Any], Any]:
    """The module on a batch of one."""
    return lambda x: first(module(x.unsqueeze(0)))


def channels(module: nn.Module) -> Callable[[Any], Any]:
    """The module on a batch of one, with the steps last."""
    return lambda x: module(x.unsqueeze(0).transpose(1, 2)).transpose(1, 2)


def attend(module: nn.Module) -> Callable[[Any], Any]:
    return lambda x: module(x[None], x[None], x[None], need_weights=False)[0]


MODULES: dict[str, tuple[nn.Module, Any, Any]] = {  # the module, what it is called by (None: as it is), its input
    "Linear": (nn.Linear(FEATURES, 3), None, sequences),
    "Linear, GELU, Linear": (nn.Sequential(nn.Linear(FEATURES, 8), nn.GELU(), nn.Linear(8, 2)), None, sequences),
    "Bilinear": (nn.Bilinear(3, 3, 2), lambda m: lambda x: m(x[:, :3], x[:, 3:]), sequences),
    "PReLU": (nn.PReLU(), None, sequences),
    "LayerNorm": (nn.LayerNorm(FEATURES), None, sequences),
    "RMSNorm": (nn.RMSNorm(FEATURES), None, sequences),
    "GroupNorm": (nn.GroupNorm(2, FEATURES), channels, sequences),
    "InstanceNorm": (nn.InstanceNorm1d(FEATURES, affine=True), channels, sequences),
    "BatchNorm": (nn.BatchNorm1d(FEATURES, track_running_stats=False), None, sequences),
    "Conv1d": (nn.Conv1d(FEATURES, 4, 3, padding=1), channels, sequences),
    "ConvTranspose1d": (nn.ConvTranspose1d(FEATURES, 4, 3, padding=1), channels, sequences),
    "max pooling": (nn.Sequential(nn.Conv1d(FEATURES, 4, 1), nn.AdaptiveMaxPool1d(1)), channels, sequences),
    "average pooling": (nn.Sequential(nn.Conv1d(FEATURES, 4, 1), nn.AdaptiveAvgPool1d(1)), channels, sequences),
    "Softmax": (nn.Linear(FEATURES, 4), lambda m: lambda x: m(x).softmax(-2), sequences),
    "mean of the steps": (nn.Linear(FEATURES, 4), lambda m: lambda x: m(x).mean(-2), sequences),
    "MultiheadAttention": (nn.MultiheadAttention(FEATURES, 2, batch_first=True), attend, sequences),
    "TransformerEncoderLayer": (nn.TransformerEncoderLayer(FEATURES, 2, 8, 0.0, batch_first=True), one, sequences),
    "RNN": (nn.RNN(FEATURES, 3, batch_first=True), one, sequences),
    "GRU": (nn.GRU(FEATURES, 3, batch_first=True), one, sequences),
    "GRU without a batch": (nn.GRU(FEATURES, 3, bias=False), lambda m: lambda x: first(m(x)), sequences),
    "LSTM": (nn.LSTM(FEATURES, 3, batch_first=True), one, sequences),
    "LSTM, two layers both ways": (nn.LSTM(FEATURES, 3, 2, bidirectional=True, batch_first=True), one, sequences),
    "LSTM with a projection": (nn.LSTM(FEATURES, 4, proj_size=2, batch_first=True), one, sequences),
    "last state of a GRU": (nn.GRU(FEATURES, 3, batch_first=True), lambda m: lambda x: m(x[None])[1], sequences),
    "Embedding": (nn.Embedding(WORDS, 3), None, words),
    "Embedding with a padding index": (nn.Embedding(WORDS, 3, padding_idx=1), None, words),
    "Embedding, scaled by frequency": (nn.Embedding(WORDS, 3, scale_grad_by_freq=True), None, words),
    "EmbeddingBag": (nn.EmbeddingBag(WORDS, 3), one, words),
}


class Called(nn.Module):
    """A module and what calls it: parameters have their names, and the call is inside of ``functional_call``."""

    def __init__(self, module: nn.Module, call: Any) -> None:
        super().__init__()
        self.module, self.call = module, call or (lambda m: lambda x: m(x))

    def forward(self, x: Any) -> Any:
        out = self.call(self.module)(x)
        weights = torch.linspace(1, 2, out.shape[-1], dtype=torch.float64)
        total = (out * weights + 0.3).sigmoid().square().sum()
        return total.filled(0) if mt.is_masked_tensor(total) else total


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", MODULES)
def test_gradients_of_a_padded_batch_are_those_of_its_rows(name: str) -> None:
    module, call, make = MODULES[name]
    torch.manual_seed(0)
    model = Called(module, call).double()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    parameters = {k: v.detach() for k, v in model.named_parameters()}
    gradients = grad(lambda p, x: functional_call(model, p, (x,)))
    for payload in (NAN, 1e300):
        batch, rows = make(payload)
        found = vmap(gradients, (None, 0))(parameters, batch)
        for i, row in enumerate(rows):
            expected = dict(zip(parameters, torch.autograd.grad(model(row), list(model.parameters())), strict=True))
            for key, gradient in expected.items():
                assert type(found[key]) is Tensor
                torch.testing.assert_close(found[key][i], gradient, rtol=1e-9, atol=1e-12, msg=f"{key} of sample {i}")


def test_an_embedding_of_a_table_of_each_samples_own() -> None:
    """A masked table with other values and another mask in each sample."""
    tables = torch.linspace(-1, 1, BATCH * WORDS * 3, dtype=torch.float64).view(BATCH, WORDS, 3)
    masks = torch.arange(BATCH * WORDS * 3).view(tables.shape) % 4 != 0
    batch, _ = words(NAN)
    table = mt.as_masked_tensor(torch.where(masks, tables, NAN), masks)
    loss = lambda t, ids: F.embedding(ids, t).square().sum()  # noqa: E731
    found = vmap(grad(loss))(table, batch)
    assert torch.equal(found.get_mask(), masks)
    for i, n in enumerate(LENGTHS):
        counts = torch.bincount(IDS[i, :n], minlength=WORDS)[:, None]
        torch.testing.assert_close(found[i].filled(0), torch.where(masks[i], 2 * tables[i] * counts, 0))


class Fills(TorchDispatchMode):
    """Counts the tensors that are filled, forward and backward."""

    count = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += op is torch.ops.aten.where.self
        return op(*args, **(kwargs or {}))


def test_a_chain_of_layers_fills_what_each_product_takes_and_nothing_else() -> None:
    """Once forward and once backward for each layer but the first, whose input nobody differentiates."""
    mask = PRESENT[..., None].expand(DATA.shape)
    inputs, target = mt.masked_tensor(DATA, mask), torch.ones(BATCH, STEPS, 2).double()
    counts = []
    for depth in (1, 2, 3):
        layers = [nn.Linear(FEATURES, FEATURES), nn.ReLU()] * (depth - 1)
        model = nn.Sequential(*layers, nn.Linear(FEATURES, 2)).double()
        loss = lambda p, x, y: F.mse_loss(functional_call(model, p, (x,)), y).filled(0)  # noqa: B023, E731
        with Fills() as fills:
            vmap(grad(loss), (None, 0, 0))(dict(model.named_parameters()), inputs, target)
        counts.append(fills.count)
    assert [later - before for before, later in itertools.pairwise(counts)] == [2, 2]
