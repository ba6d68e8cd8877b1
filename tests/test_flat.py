"""Flat modules: each sequence as if it were alone, values and gradients; what cannot be flat raises."""

import copy
import pickle
import threading
from collections.abc import Callable
from time import thread_time
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as stored_before
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt
from masked_tensor.kernels.attention import cuda as attention_cuda
from masked_tensor.testing import check_flat

from .test_packed_varlen import one_by_one

LENGTHS = [[6, 2, 4], [1, 1], [5], [3, 3, 7, 7, 1], [2, 0, 4]]


class Attention(nn.Module):
    """Attention as people write it: rotary positions where they are given, grouped heads."""

    def __init__(
        self, width: int, causal: bool, function: Callable[..., Tensor] | None = None, groups: int = 1
    ) -> None:
        super().__init__()
        self.causal, self.function, self.groups = causal, function, groups
        self.query = nn.Linear(width, width)
        self.key, self.value = (nn.Linear(width, width // groups) for _ in range(2))
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        heads = 2 * self.groups
        q = self.query(x).unflatten(-1, (heads, -1)).transpose(1, 2)
        k, v = (f(x).unflatten(-1, (heads // self.groups, -1)).transpose(1, 2) for f in (self.key, self.value))
        if positions is not None:
            q, k = (t * torch.cos(positions / 7)[:, None, :, None] for t in (q, k))
        function = self.function or F.scaled_dot_product_attention
        y = function(q, k, v, is_causal=self.causal, enable_gqa=self.groups > 1)
        return self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    """Norms, residuals, a feed-forward, learned positions; several outputs."""

    def __init__(self, attention: nn.Module, width: int = 8) -> None:
        super().__init__()
        self.attention, self.norm = attention, nn.LayerNorm(width)
        self.places = nn.Embedding(16, width)
        self.forward_part = nn.Sequential(nn.Linear(width, 12), nn.GELU(), nn.Linear(12, width))

    def forward(self, x: Tensor, positions: Tensor) -> dict[str, Any]:
        h = x + self.places(positions)
        if isinstance(self.attention, nn.MultiheadAttention):
            h = h + self.attention(self.norm(h), self.norm(h), self.norm(h))[0]
        else:
            h = h + self.attention(self.norm(h), positions)
        return {"hidden": h, "parts": (h + self.forward_part(h), h.sum(-1))}


ATTENTIONS: dict[str, Callable[[], nn.Module]] = {
    "whole": lambda: Attention(8, False),
    "causal": lambda: Attention(8, True),
    "stored before": lambda: Attention(8, True, stored_before),
    "grouped": lambda: Attention(8, True, groups=2),
    "of torch": lambda: nn.MultiheadAttention(8, 2, batch_first=True),
}


def batch(lengths: list[int], side: str = "right") -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """NaN in the padding: ``(B, T, 8)``, mask, positions, and the sequences."""
    time = max(lengths)
    rows = [torch.randn(n, 8, dtype=torch.float64, requires_grad=True) for n in lengths]
    x = torch.full((len(lengths), time, 8), float("nan"), dtype=torch.float64)
    valid = torch.zeros(len(lengths), time, dtype=torch.bool)
    positions = torch.full((len(lengths), time), 10**6)
    for row, n, out, mask, place in zip(rows, lengths, x, valid, positions, strict=True):
        where = slice(time - n, time) if side == "left" else slice(0, n)
        out[where], mask[where], place[where] = row.detach(), True, torch.arange(n)
    return x.requires_grad_(), valid, positions, rows


def entries(x: Tensor, valid: Tensor) -> Tensor:
    """The valid steps of a result, plain."""
    assert type(x) is mt.MaskedTensor
    steps = x.mask.flatten(2).all(2) if x.dim() > 2 else x.mask
    assert torch.equal(steps, valid)
    return x.filled(0)[valid]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_each_sequence_is_as_if_alone(name: str, side: str, lengths: list[int]) -> None:
    torch.manual_seed(0)
    model = Model(ATTENTIONS[name]()).double()
    x, valid, positions, rows = batch(lengths, side)
    outs = [model(row[None], torch.arange(len(row))[None]) for row in rows if len(row)]
    wanted = [torch.cat([o[0] for o in part]) for part in zip(*(flatten(o) for o in outs), strict=True)]
    ways = [torch.randn_like(w) for w in wanted]
    inputs = [row for row in rows if len(row)]
    expected = torch.autograd.grad(wanted, [*model.parameters(), *inputs], ways)
    mt.flat(model)
    masks = valid[..., None].expand(x.shape)
    for packed in (False, True):
        masked = mt.as_masked_tensor(x, masks)
        given = masked.packed() if packed else masked
        places = mt.as_masked_tensor(positions, valid) if packed else positions
        got = [entries(part, valid) for part in flatten(model(given, positions=places))]
        for a, b in zip(got, wanted, strict=True):
            torch.testing.assert_close(a, b)
        *weights, grad = torch.autograd.grad(got, [*model.parameters(), x], ways)
        for a, b in zip(
            [*weights, grad[valid]], [*expected[: len(weights)], torch.cat(expected[len(weights) :])], strict=True
        ):
            torch.testing.assert_close(a, b)
        assert grad[~valid].eq(0).all()


def flatten(out: dict[str, Any]) -> list[Tensor]:
    return [out["hidden"], *out["parts"]]


def test_lengths_stay_and_plain_inputs_run_as_before() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    plain = torch.randn(2, 5, 8)
    before = model(plain)
    keys = list(model.state_dict())
    assert mt.flat(model) is model
    assert isinstance(model, nn.TransformerEncoder)
    assert list(model.state_dict()) == keys
    assert torch.equal(model(plain), before)
    y = model(mt.from_lengths(plain, [5, 2], packed=True))
    assert y.is_packed
    assert y.lengths().tolist() == [5, 2]
    torch.testing.assert_close(y[1, :2].filled(0), model(plain[1:, :2])[0])
    assert type(mt.flat(model, False)) is nn.TransformerEncoder
    assert "flat_way" not in model.__dict__


def test_evaluation_and_tokenwise_modules() -> None:
    x = mt.from_lengths(torch.randn(3, 4, 8), [4, 1, 2])
    for module in (
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
        nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4)),
        nn.LayerNorm(8),
    ):
        with torch.no_grad():
            alone = [module(row[None])[0] for row in x.unpad()]
            y = mt.flat(module)(x)
        for a, b in zip(y.unpad(), alone, strict=True):
            torch.testing.assert_close(a, b)


class Over(nn.Module):
    """A module over time that is not attention."""

    def __init__(self, over: nn.Module) -> None:
        super().__init__()
        self.over = over

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.over, nn.LSTM):
            return self.over(x)[0]
        return self.over(x.mT).mT


class Means(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(1, True)


class Pooled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1)


class Counted(nn.Module):
    """Positions that are counted from the size."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Embedding(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.places(torch.arange(x.shape[1]))


class ClassToken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.cat([self.token.expand(len(x), -1, -1), x], 1))[:, 1:]


class OwnMask(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        far = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=far)[:, 0]


class Weights(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, torch.zeros(len(x), x.shape[1], x.shape[1])


class OwnSoftmax(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x @ x.mT).softmax(-1) @ x


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (Over(nn.Conv1d(8, 8, 3, padding=1)), "differ by"),
        (Over(nn.LSTM(8, 8, batch_first=True)), "differ by"),
        (Over(nn.BatchNorm1d(8)), "BatchNorm1d, whose statistics"),
        (Means(), "differ by"),
        (OwnSoftmax(), "differ by"),
        (Pooled(), "belongs to all steps together|an output has shape"),
        (Weights(), "belongs to all steps together|an output has shape"),
        (Counted(), "differ by"),
        (ClassToken(), "differ by"),
        (OwnMask(), "mask of its own"),
        (nn.TransformerEncoderLayer(8, 2, 16), "dimension 0 is not its batch"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_what_mixes_steps_raises(module: nn.Module, why: str) -> None:
    torch.manual_seed(0)
    x = mt.from_lengths(torch.randn(2, 5, 8), [5, 3])
    before = copy.deepcopy(module.state_dict())
    state = torch.get_rng_state()
    mt.flat(module)
    for _ in range(2):
        with pytest.raises(mt.UnsupportedOpError, match=why):
            module(x)
    assert torch.equal(torch.get_rng_state(), state)
    assert module.training
    assert all(torch.equal(a, before[name]) for name, a in module.state_dict().items())


class Then(nn.Module):
    """A module, and what is said of its outputs."""

    def __init__(self, module: nn.Module, said: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.module, self.said = module, said

    def forward(self, x: Tensor) -> Tensor:
        return self.said(self.module(x))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("module", "width"),
    [
        (lambda: nn.TransformerEncoderLayer(2, 1, 4), 2),
        (lambda: nn.Sequential(Means(), nn.LayerNorm(2)), 2),
        (lambda: Then(Means(), torch.sign), 1),
        (lambda: Then(Means(), lambda y: y > 0), 1),
        (lambda: Then(nn.TransformerEncoderLayer(8, 2, 16), lambda y: y.argmax(-1)), 8),
    ],
    ids=["rows", "norm", "sign", "boolean", "classes"],
)
def test_what_mixes_steps_raises_though_its_outputs_take_few_values(
    module: Callable[[], nn.Module], width: int, seed: int
) -> None:
    """A norm over two features leaves their signs; a module may give classes alone."""
    torch.manual_seed(seed)
    with pytest.raises(mt.UnsupportedOpError):
        mt.flat(module())(mt.from_lengths(torch.randn(2, 5, width), [5, 3]))


def test_outputs_of_few_values_and_of_no_numbers() -> None:
    torch.manual_seed(0)
    x = mt.from_lengths(torch.randn(2, 5, 2), [5, 3])
    for said in (nn.LayerNorm(2), lambda y: y.argmax(-1), lambda y: y > 0):
        model = Then(nn.TransformerEncoderLayer(2, 1, 4, 0.0, batch_first=True), said)
        alone = model(x.filled(0)[1:, :3])[0]
        torch.testing.assert_close(mt.flat(model)(x)[1, :3].filled(False).to(alone.dtype), alone)


class Banned(nn.Module):
    """Scores of which some are minus infinity, and one of no value."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, torch.full_like(x, -torch.inf), (-x.abs() - 1).log()], -1)


def test_infinite_outputs_are_compared() -> None:
    x = mt.from_lengths(torch.randn(2, 5, 4), [5, 3])
    assert mt.flat(Banned())(x).lengths().tolist() == [5, 3]
    with pytest.raises(mt.UnsupportedOpError, match="differ by"):
        mt.flat(nn.Sequential(Means(), Banned()))(x)
    x = mt.from_lengths(torch.full((2, 5, 4), torch.nan), [5, 3])  # a bad first batch says nothing about the module
    assert mt.flat(nn.Linear(4, 4))(x).lengths().tolist() == [5, 3]


class Ends(nn.Module):
    """The first and the last step, as classifiers read them."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[:, 0], x[:, -1, :2]


@pytest.mark.parametrize("side", ["right", "left"])
def test_ends_are_those_of_each_sequence(side: str) -> None:
    x, valid, _, rows = batch([4, 1, 3], side)
    first, last = mt.flat(Ends())(mt.as_masked_tensor(x, valid[..., None].expand(x.shape)))
    assert torch.equal(first, torch.stack([row[0] for row in rows]))
    assert torch.equal(last, torch.stack([row[-1, :2] for row in rows]))
    y = mt.from_lengths(torch.randn(2, 5, 8), [5, 3], packed=True)
    torch.compiler.reset()
    compiled = torch.compile(mt.flat(Ends()), backend="eager")(y)  # is left to eager code
    for a, b in zip(compiled, Ends()(y.filled(0)[1:, :3]), strict=True):
        assert torch.equal(a[1:], b)


def test_a_call_that_fails_without_flat_says_so_and_is_not_remembered() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = mt.flat(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))
    with pytest.raises(mt.UnsupportedOpError, match=r"without mt\.flat as well.*didn't match last dim of query"):
        model(mt.from_lengths(torch.randn(2, 5, 7), [5, 3]))
    assert model(mt.from_lengths(torch.randn(2, 5, 8), [5, 3])).is_packed


def test_without_the_check_nothing_is_compared() -> None:
    calls = []
    module = nn.Linear(8, 8)
    module.register_forward_hook(lambda *_: calls.append(1))
    x = mt.from_lengths(torch.randn(2, 5, 8), [5, 3])
    mt.flat(module, check=False)(x)
    assert len(calls) == 1
    assert mt.flat(Means(), check=False)(x).shape == x.shape


def test_a_gap_raises_and_is_named() -> None:
    module = mt.flat(nn.Linear(2, 2))
    gap = mt.from_sequences([mt.masked_tensor([[1.0, 2.0], [None, None], [3.0, 4.0]]), torch.ones(1, 2)], packed=True)
    with pytest.raises(ValueError, match="step 1 of sequence 0 is missing"):
        module(gap)
    part = mt.masked_tensor(torch.ones(2, 3, 2), torch.tensor([[[True, False], [True, True], [True, True]]] * 2))
    with pytest.raises(ValueError, match="a feature of step 0 of sequence 0"):
        module(part)


def test_inputs_of_other_lengths_raise() -> None:
    model = mt.flat(Model(Attention(8, True)))
    x, places = torch.randn(2, 5, 8), torch.arange(5).expand(2, 5)
    with pytest.raises(ValueError, match="different lengths"):
        model(mt.from_lengths(x, [5, 3]), mt.from_lengths(places, [5, 2]))


def test_to_flat_and_back() -> None:
    x = mt.from_lengths(torch.randn(3, 4, 2, 3, requires_grad=True), [4, 0, 2])
    flat = x.to_flat()
    assert type(flat.values) is Tensor
    assert flat.values.shape == (1, 6, 2, 3)
    assert flat.position_ids.tolist() == [[0, 1, 2, 3, 0, 1]]
    assert flat.cu_seqlens.tolist() == [0, 4, 4, 6]
    assert flat.cu_seqlens.dtype == torch.int32
    assert flat.max_seqlen == 4
    y = mt.from_flat(flat.values, flat)
    assert torch.equal(y.mask, x.mask)
    assert torch.equal(y.filled(0), x.filled(0))
    assert mt.from_flat(flat.position_ids, flat).lengths().tolist() == [4, 0, 2]
    with pytest.raises(ValueError, match="one row of 6 tokens"):
        mt.from_flat(flat.values[:, 1:], flat)
    with pytest.raises(TypeError, match=r"x\.to_flat"):
        mt.from_flat(flat.values, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="plain tensor"):
        mt.from_flat(x, flat)


def test_an_empty_batch() -> None:
    model = mt.flat(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    x = mt.from_lengths(torch.randn(2, 3, 8), [0, 0])
    y = model(x)
    assert y.shape == (2, 3, 8)
    assert not y.mask.any()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_run_again_within_sequences(reentrant: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)

    class Saved(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.first = layer, nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.layer, self.first(x), use_reentrant=reentrant)

    saved = Saved()
    plain = nn.Sequential(saved.first, saved.layer)
    x = mt.from_lengths(torch.randn(3, 5, 8), [5, 2, 3])
    grads = []
    for model in (mt.flat(saved), mt.flat(plain)):
        model.zero_grad()
        model(x).square().mean().backward()
        grads.append([p.grad.clone() for p in plain.parameters()])  # type: ignore[union-attr]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


def test_threads_are_flat_by_themselves() -> None:
    torch.manual_seed(0)
    flat, plain = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), Attention(8, False)
    mt.flat(flat)
    x, y = mt.from_lengths(torch.randn(2, 8, 8), [8, 4]), torch.randn(1, 12, 8)  # as many steps as there are tokens
    wanted, kept = plain(y), flat(x).filled(0)
    wrong: list[str] = []

    def work(run: Callable[[], Tensor], expected: Tensor) -> None:
        for _ in range(30):
            if not torch.equal(run(), expected):
                wrong.append(str(run))

    threads = [
        threading.Thread(target=work, args=(lambda: flat(x).filled(0), kept)),
        threading.Thread(target=work, args=(lambda: plain(y), wanted)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_copies_pickles_and_functions_of_parameters() -> None:
    torch.manual_seed(0)
    model = mt.flat(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)).double()
    x = mt.from_lengths(torch.randn(3, 5, 8, dtype=torch.float64), [5, 2, 3])
    y = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(x).filled(0), y.filled(0))
    weights = dict(model.named_parameters())

    def loss(weights: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(model, weights, (x,)).square().mean()

    got = torch.func.grad(loss)(weights)
    for a, b in zip(got.values(), torch.autograd.grad(loss(weights), list(weights.values())), strict=True):
        torch.testing.assert_close(a, b)


def test_autocast_strict_and_dropout() -> None:
    model = mt.flat(nn.TransformerEncoderLayer(8, 2, 16, 0.5, batch_first=True))
    x = mt.from_lengths(torch.randn(3, 5, 8), [5, 2, 3])
    with mt.strict():
        assert model(x).lengths().tolist() == [5, 2, 3]
    with torch.autocast("cpu", torch.bfloat16):
        assert mt.flat(nn.Linear(8, 2))(x).dtype is torch.bfloat16
    torch.manual_seed(1)
    first = model(x).filled(0)
    torch.manual_seed(1)
    assert torch.equal(model(x).filled(0), first)
    assert not torch.equal(model(x).filled(0), first)


def test_half_precision() -> None:
    model = mt.flat(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)).bfloat16()
    x = mt.from_lengths(torch.randn(3, 5, 8).bfloat16(), [5, 2, 3])
    alone = model(x.filled(0)[1:2, :2])[0]
    torch.testing.assert_close(model(x).filled(0)[1, :2], alone, atol=3e-2, rtol=3e-2)


def test_the_check_as_a_function() -> None:
    """Of a batch of one's own: values and gradients; the module is afterwards as it was."""
    torch.manual_seed(0)
    model = Model(Attention(8, True)).double()
    x, valid, positions, _ = batch([4, 0, 6], "left")
    given = mt.as_masked_tensor(x.detach(), valid[..., None])
    check_flat(model, given, positions=positions)
    assert type(model) is Model
    check_flat(mt.flat(model, check=False), given.packed(), positions=mt.as_masked_tensor(positions, valid))
    assert type(model) is not Model
    assert not model.__dict__["flat_way"].check
    with pytest.raises(ValueError, match="a masked batch"):
        check_flat(model, x)


def test_the_check_takes_ids() -> None:
    """A batch ``(B, T)`` of numbers that a module looks up."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    check_flat(nn.Sequential(nn.Embedding(5, 8), layer).eval(), mt.from_lengths(torch.randint(5, (3, 4)), [4, 1, 3]))


class Large(nn.Module):
    """Rounding grows with what is returned."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * 1e6


def test_the_check_measures_by_what_is_returned() -> None:
    torch.manual_seed(0)
    model, x = Large().eval(), torch.randn(2, 5, 8)
    alone = model(x[1:, :3])[0]
    found = mt.flat(model)(mt.from_lengths(x, [5, 3])).filled(0)[1, :3]
    torch.testing.assert_close(found / 1e6, alone / 1e6)


class Reversed(torch.autograd.Function):
    """What goes through is right, and its gradient goes to other steps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad.flip(1)


class Backwards(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return Reversed.apply(self.first(x))


class LongOnly(nn.Module):
    """Mixes steps only in sequences longer than those that the first call tries."""

    def forward(self, x: Tensor) -> Tensor:
        return x if x.shape[1] < 14 else x - x.mean(1, True)


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (Means(), "does not keep sequences apart"),
        (LongOnly(), "output 0 of sequence 0"),
        (Backwards(), "gradient of 'first.weight' differs"),
    ],
)
def test_the_check_finds_what_the_first_call_cannot(module: nn.Module, why: str) -> None:
    torch.manual_seed(0)
    with pytest.raises((AssertionError, mt.UnsupportedOpError), match=why):
        check_flat(module, mt.from_lengths(torch.randn(2, 16, 8), [16, 3]))
    assert not hasattr(type(module), "flat_of")


def test_the_check_of_two_layers_takes_no_time() -> None:
    """Processor time; on an idle machine a tenth of it."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    model = mt.flat(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    x = mt.from_lengths(torch.randn(2, 5, 8), [5, 3])
    model(x)
    mt.flat(model)  # forgets what was found
    start = thread_time()
    model(x)
    assert thread_time() - start < 0.2


class Born(Model):
    """Flat from the start."""

    def __init__(self) -> None:
        super().__init__(Attention(8, True))
        mt.flat(self)


def test_a_module_makes_itself_flat() -> None:
    model, x = Born().eval(), torch.randn(2, 5, 8)
    places = torch.arange(5).expand(2, 5)
    y = model(mt.from_lengths(x, [5, 2]), places)["hidden"]
    assert isinstance(model, Born)
    torch.testing.assert_close(y[1, :2].filled(0), model(x[1:, :2], places[1:, :2])["hidden"][0])
    assert torch.equal(copy.deepcopy(model)(mt.from_lengths(x, [5, 2]), places)["hidden"].filled(0), y.filled(0))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_by_the_kernels_of_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are written in test_packed_varlen.py."""
    torch.manual_seed(0)
    model, calls = Model(ATTENTIONS[name]()), []

    def kernel(*args: Any) -> Tensor:
        calls.append(args)
        return one_by_one(*args)

    x = torch.randn(3, 6, 8)
    given, places = mt.from_lengths(x, [6, 2, 4]), torch.arange(6).expand(3, 6)
    check_flat(model, given, places)
    assert not calls
    monkeypatch.setattr(attention_cuda, "DEVICES", ("cpu",))
    monkeypatch.setattr(attention_cuda, "choose_kernel", lambda *_: kernel)
    check_flat(model, given, places)
    assert calls


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Model(ATTENTIONS[name](), 8).to("cuda", dtype)
    given = mt.from_lengths(torch.randn(3, 6, 8, device="cuda", dtype=dtype), [6, 2, 4])
    close = {} if dtype is torch.float32 else {"rtol": 5e-2, "atol": 5e-2}
    check_flat(model, given, torch.arange(6, device="cuda").expand(3, 6), **close)


class Tagger(nn.Module):
    """A class for each step, as Hugging Face's token classifiers have."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x: Any, labels: Any = None, weights: Any = None) -> Any:
        scores = self.head(x)
        return scores if labels is None else F.cross_entropy(scores.view(-1, 3), labels.reshape(-1))


@pytest.mark.parametrize("compiled", [False, True])
def test_classes_of_another_shape_than_the_batch_are_refused(compiled: bool) -> None:
    """Six classes beside six tokens would each be read as that of a token, though they belong to others."""
    x, module = mt.from_lengths(torch.randn(2, 4, 4), [4, 2]), mt.flat(Tagger())
    run = torch.compile(module, backend="eager") if compiled else module
    with pytest.raises(ValueError, match=r"labels of shape \(2, 3\) beside a batch of shape \(2, 4\)"):
        run(x, labels=torch.ones(2, 3, dtype=torch.long))
    assert module(x, labels=torch.ones(2, 4, dtype=torch.long)).isfinite()


def test_inputs_of_different_lengths_are_named() -> None:
    x, other = mt.from_lengths(torch.randn(2, 4, 4), [4, 2]), mt.from_lengths(torch.randn(2, 4), [4, 3])
    for call in (lambda m: m(x, None, other), lambda m: m(x, weights=other), lambda m: m(x=x, weights={"a": other})):
        with pytest.raises(ValueError, match=r"mt\.flat: x and weights have different lengths, \[4, 2\] and \[4, 3\]"):
            call(mt.flat(Tagger()))
