"""Code that is not ours between masked tensors: autograd.Functions, TorchScript, other subclasses.

The law: a user's Function over masked tensors has the gradients of the same Function over plain ones, of a loss that
reads the valid outputs only.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function

import masked_tensor as mt
from masked_tensor.settings import DEFAULT, current

from .helpers.wrapping import Wrapper

STEPS = 6
PREFIX = torch.arange(STEPS) < torch.tensor([[4], [6], [0]])
SCATTERED = torch.tensor([[1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 1, 1], [1, 1, 1, 1, 1, 1]], dtype=torch.bool)
KERNEL = torch.tensor([[[1.0, 2.0, 3.0]]], dtype=torch.float64)


def made(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """An autograd.Function of ``forward(*tensors)`` and ``backward(grad, *tensors)``, as users write them."""

    class Written(Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Tensor) -> Any:
            ctx.save_for_backward(*tensors)
            return forward(*tensors)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return backward(grad, *ctx.saved_tensors)

    return Written.apply


def shift(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 1:] = y[:, 1:] + x[:, :-1]
    return y


def shift_back(grad: Tensor, x: Tensor) -> Tensor:
    result = grad.clone()
    result[:, :-1] += grad[:, 1:]
    return result


def scan(a: Tensor, x: Tensor) -> Tensor:
    state, states = torch.zeros_like(x[:, 0]), []
    for t in range(STEPS):
        state = a[:, t] * state + x[:, t]
        states.append(state)
    return torch.stack(states, 1)


def scan_back(grad: Tensor, a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    states = scan(a, x)
    carried, to_a, to_x = torch.zeros_like(grad[:, 0]), [], []
    for t in reversed(range(STEPS)):
        carried = carried + grad[:, t]
        to_a.append(carried * states[:, t - 1] if t else torch.zeros_like(carried))
        to_x.append(carried)
        carried = a[:, t] * carried
    return torch.stack(to_a[::-1], 1), torch.stack(to_x[::-1], 1)


def filtered(x: Tensor) -> Tensor:
    return F.conv1d(F.pad(x, (2, 0)).unsqueeze(1), KERNEL.to(x.dtype)).squeeze(1)


def filtered_back(grad: Tensor, x: Tensor) -> Tensor:
    return F.conv_transpose1d(grad.unsqueeze(1), KERNEL.to(grad.dtype)).squeeze(1)[:, 2:]


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    # name: forward, backward, and the arguments: x masked, w plain
    "shift": (shift, shift_back, "x"),
    "scan": (scan, scan_back, "xx"),
    "scan with plain factors": (scan, scan_back, "wx"),
    "filter": (filtered, filtered_back, "x"),
    "product": (torch.mul, lambda g, x, w: (g * w, g * x), "xw"),
    "quotient": (torch.div, lambda g, x, w: (g / w, -g * x / w**2), "wx"),
    "running sum": (lambda x: x.cumsum(1), lambda g, x: g.flip(1).cumsum(1).flip(1), "x"),
    "linear": (lambda x, w: x @ w.t(), lambda g, x, w: (g @ w, g.t() @ x), "xw"),
    "difference": (
        lambda x, y: x[:, 1:] - y[:, :-1],
        lambda g, x, y: (F.pad(g, (1, 0)), -F.pad(g, (0, 1))),
        "xx",
    ),
}


def arguments(kinds: str, mask: Tensor) -> list[Tensor]:
    torch.manual_seed(0)
    datas = [torch.rand(len(mask), STEPS, dtype=torch.float64) + 0.5 for _ in kinds]
    return [d if kind == "w" else mt.masked_tensor(d, mask) for kind, d in zip(kinds, datas, strict=True)]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("pattern", ["prefix", "scattered"])
@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_written_functions_have_their_gradients(name: str, leaf: bool, pattern: str, order: int) -> None:
    forward, backward, kinds = FUNCTIONS[name]
    mask = PREFIX if pattern == "prefix" else SCATTERED
    given = [x.requires_grad_() for x in arguments(kinds, mask)]
    ours = made(forward, backward)(*(given if leaf else [x * 1 for x in given]))
    fill = 1 if name == "quotient" else 0
    plain = [x.filled(fill) if type(x) is mt.MaskedTensor else x for x in given]
    plain = [x.detach().clone().requires_grad_() for x in plain]
    theirs = forward(*plain)
    weights = torch.rand(theirs.shape, dtype=torch.float64)
    found = gradients((ours * weights).square().sum().filled(0), given, mask, order)
    expected = gradients(torch.where(ours.get_mask(), theirs * weights, 0).square().sum(), plain, mask, order, kinds)
    for got, want, x in zip(found, expected, given, strict=True):
        assert type(got) is type(x)
        if type(x) is mt.MaskedTensor:
            assert torch.equal(got.get_mask(), mask)
            assert not got.get_data()[~mask].any()
            got, want = got.filled(0), torch.where(mask, want, 0)
        torch.testing.assert_close(got, want)


def gradients(loss: Tensor, inputs: list[Tensor], mask: Tensor, order: int, kinds: str = "") -> tuple[Tensor, ...]:
    """The gradients, or those of the sum of their squares (over what is valid in ``kinds`` x)."""
    first = torch.autograd.grad(loss, inputs, create_graph=order == 2)
    if order == 1:
        return first
    first = tuple(torch.where(mask, g, 0) if k == "x" else g for g, k in zip(first, kinds or "w" * 9, strict=False))
    squares = [g.square().sum() for g in first]
    return torch.autograd.grad(sum(s.filled(0) if type(s) is mt.MaskedTensor else s for s in squares), inputs)


def test_hooks_and_retained_gradients_have_the_own_mask() -> None:
    x = mt.masked_tensor([[1.0, 2.0, None]], requires_grad=True)
    y, seen = made(shift, shift_back)(x), []
    y.retain_grad()
    y.register_hook(seen.append)
    x.register_hook(seen.append)
    y.sum().backward()
    assert [g.tolist() for g in (y.grad, x.grad, *seen)] == [[[1, 1, None]], [[2, 1, None]]] * 2


def test_plain_parameters_get_plain_gradients() -> None:
    weight = torch.ones(3, requires_grad=True)
    product = made(torch.mul, lambda g, x, w: (g * w, (g * x).sum(0)))
    for w in (weight, weight.exp(), mt.as_masked_tensor(weight, torch.ones(3, dtype=torch.bool)).filled(0)):
        weight.grad = None
        x = mt.masked_tensor([[1.0, None, 3.0], [None, None, 3.0]])
        product(x, w).sum().backward()
        assert type(weight.grad) is Tensor
        assert (weight.grad / weight.grad[0]).tolist() == [1.0, 0.0, 6.0]


def test_functions_behind_each_other() -> None:
    x = mt.masked_tensor([[1.0, 2.0, 3.0, None]], requires_grad=True)
    double = made(lambda x: 2 * x, lambda g, x: 2 * g)
    step = made(shift, shift_back)
    step(double(step(x))).sum().backward()
    assert x.grad.tolist() == [[8.0, 6.0, 2.0, None]]


def test_the_root_may_be_the_function_itself() -> None:
    x = mt.masked_tensor([[1.0, 2.0, None]], requires_grad=True)
    y = made(lambda x: shift(x).sum(), lambda g, x: shift_back(g.expand(x.shape), x))(x)
    y.backward()
    assert x.grad.tolist() == [[2.0, 2.0, None]]


def test_a_derivative_that_runs_a_forward_pass_again_means_what_it_meant() -> None:
    class Again(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            ctx.save_for_backward(x, y)
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            with torch.enable_grad():
                x, y = (v.detach().requires_grad_() for v in ctx.saved_tensors)
                again = x + y
            assert again.tolist() == [2.0, None, None]
            return torch.autograd.grad(again, (x, y), grad)

    x = mt.masked_tensor([1.0, None, 1.0], requires_grad=True)
    y = mt.masked_tensor([1.0, 1.0, None], requires_grad=True)
    Again.apply(x, y).sum().backward()
    assert x.grad.tolist() == [1, None, 0]
    assert y.grad.tolist() == [1, 0, None]


def test_an_error_in_a_derivative_leaves_nothing_behind() -> None:
    def fail(grad: Tensor, x: Tensor) -> Tensor:
        raise ZeroDivisionError

    x = mt.masked_tensor([[1.0, None]], requires_grad=True)
    with pytest.raises(ZeroDivisionError):
        made(shift, fail)(x).sum().backward()
    assert current() is DEFAULT
    assert (mt.masked_tensor([1, None]) + mt.masked_tensor([1, 1])).tolist() == [2, None]


# ------------------------------------------------------------------------------------------------ refused, not guessed


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_torchscript_differentiates_masked_tensors_by_their_rules() -> None:
    """From its second call on TorchScript optimizes, and would differentiate by formulas of its own."""

    @torch.jit.script
    def loss(x: Tensor, w: Tensor, more: list[Tensor], scale: float = 1.0):
        return (x * w * more[0]).mean() * scale

    layers = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.LayerNorm(2))
    scripted = torch.jit.script(layers)
    w = torch.tensor([1.0, 2.0, math.nan], requires_grad=True)
    for _ in range(4):
        x = mt.masked_tensor([1.0, 2.0, None], requires_grad=True)
        loss(x, w, [x]).backward()
        assert x.grad.tolist() == [1.0, 4.0, None]
        assert w.grad.tolist() == [0.5, 2.0, 0.0]
        w.grad = None
        loss(torch.ones(3), w, [mt.masked_tensor([1.0, None, None])], scale=2.0).backward()
        assert w.grad.tolist() == [2.0, 0.0, 0.0]
        w.grad = None
        loss(torch.ones(3), w, [torch.ones(3)]).backward()  # plain: TorchScript's own
        assert w.grad.tolist() == pytest.approx([1 / 3] * 3)
        w.grad = None
        results = []
        for model in (layers, scripted):
            model.zero_grad()
            model(x * torch.ones(4, 3)).square().mean().backward()
            results.append([p.grad for p in layers.parameters()])
        torch.testing.assert_close(*results)


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_torchscript_raises_what_eager_code_raises() -> None:
    @torch.jit.script
    def inner(x: Tensor, y: Tensor):
        return (x + y) * 2

    @torch.jit.script
    def add(x: Tensor, y: Tensor):
        return inner(x, y)

    @torch.jit.script
    def size_of(x: Tensor):
        return x.view(7)

    class Total(nn.Module):
        def forward(self, total: Tensor, x: Tensor) -> Tensor:
            return total.add_(x)

    x, y = mt.masked_tensor([1.0, None, 3.0]), mt.masked_tensor([1.0, 2.0, None])
    total = torch.jit.script(Total())
    for _ in range(3):
        with mt.strict():
            for scripted, plain in ((add, lambda: (x + y) * 2), (lambda *_: inner(x, y), lambda: (x + y) * 2)):
                with pytest.raises(mt.MaskMismatchError) as eager:
                    plain()
                with pytest.raises(mt.MaskMismatchError) as found:
                    scripted(x, y)
                assert str(found.value) == str(eager.value)
                assert isinstance(found.value.__cause__, RuntimeError)  # whose traceback has the scripted line
        with pytest.raises(mt.MaskedWriteError, match="cannot write a masked"):
            total(torch.zeros(3), x)
        with pytest.raises(RuntimeError, match="TorchScript interpreter") as torchs:
            size_of(x)
        assert type(torchs.value) not in (mt.MaskedWriteError, mt.MaskedSizeError)
        assert add(x, y).tolist() == [4.0, None, None]


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_torchscript_with_a_masked_buffer_is_refused() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", mt.masked_tensor([1.0, None]))

        def forward(self, x: Tensor) -> Tensor:
            return (x * self.scale * self.scale).mean()

    scripted, outcomes = torch.jit.script(Scaled()), []
    for _ in range(4):
        x = torch.ones(2, requires_grad=True)
        try:
            scripted(x).backward()
        except RuntimeError:  # TorchScript leaves out the text
            outcomes.append("refused")
        else:
            outcomes.append(x.grad.tolist())
    assert outcomes == [[1.0, 0.0], *["refused"] * 3]


@pytest.mark.parametrize("tracked", [True, False])
def test_another_subclass_around_a_masked_tensor_is_refused(tracked: bool) -> None:
    x = Wrapper(mt.masked_tensor([1.0, 2.0, None])).requires_grad_(tracked)
    for op in (Tensor.mean, Tensor.exp, lambda x: x.var(0), lambda x: x.softmax(0), F.gelu):
        with pytest.raises(mt.UnsupportedOpError, match=r"inside another tensor subclass.*torch\.no_grad"):
            op(x)
    with torch.no_grad():
        assert x.mean().inner.item() == 1.5


@pytest.mark.parametrize("name", ["shift", "scan", "product"])
def test_packed_tensors(name: str) -> None:
    forward, backward, kinds = FUNCTIONS[name]
    results = []
    for pack in (mt.packed, lambda x: x):
        given = [x.requires_grad_() for x in arguments(kinds, PREFIX)]
        inside = [pack(x) if type(x) is mt.MaskedTensor else x for x in given]
        y = made(forward, backward)(*inside)
        (y * y).sum().backward()
        results.append([x.grad for x in given])
    for a, b in zip(*results, strict=True):
        assert type(a) is type(b)
        torch.testing.assert_close(a, b)


# ------------------------------------------------------------- code that reads in Python where the padded batch ends


def resampled(signals: Tensor, kernels: Tensor, old: int) -> Tensor:
    """As torchaudio resamples: zeros at both ends, ``new`` kernels each ``old`` entries, cut by the batch's size."""
    new, width = len(kernels), (kernels.shape[-1] - old) // 2
    rows = F.pad(signals.view(-1, signals.shape[-1]), (width, width + old))
    result = F.conv1d(rows[:, None], kernels, stride=old).transpose(1, 2).reshape(len(rows), -1)
    return result[..., : -(-new * signals.shape[-1] // old)].view(*signals.shape[:-1], -1)


@pytest.mark.parametrize(("old", "new"), [(3, 2), (2, 3), (4, 1), (5, 4), (1, 2)])
def test_a_resampler_is_right_where_the_length_of_each_row_is_said(old: int, new: int) -> None:
    """What a row has alone is right, but more frames follow: no op can know where the caller would cut this row."""
    rows = [torch.randn(n, dtype=torch.float64) for n in (48, 36, 7, 1)]
    kernels = torch.randn(new, 1, 2 * 6 + old, dtype=torch.float64)
    batch = mt.from_sequences(rows)
    alone = [resampled(row, kernels, old) for row in rows]
    silent = resampled(batch, kernels, old)
    extra = silent.count(1) - torch.tensor([len(row) for row in alone])
    assert extra[0] == 0
    assert (extra > 0).any()
    frames = -(-new * batch.count(1) // old)
    exact = mt.as_masked_tensor(silent, mt.lengths_to_mask(frames, silent.shape[1]))
    for got, row in zip(exact.unpad(), alone, strict=True):
        torch.testing.assert_close(got, row)


def test_torchaudio_as_the_documentation_says() -> None:
    """Off in silence for a shorter row, each in its way; row by row they are right; strict() stops the two models."""
    torchaudio = pytest.importorskip("torchaudio")
    torch.manual_seed(0)
    rows = [torch.randn(3000), torch.randn(1998)]
    batch = mt.from_sequences(rows)
    demucs = torchaudio.models.HDemucs(["a"], audio_channels=1, channels=4, nfft=256, depth=3).eval()
    small = {"feat_dim": 16, "win_len": 16, "d_model": 16, "nhead": 2, "hidden_dim": 16, "num_blocks": 1}
    squim = torchaudio.models.squim_objective_model(**small, rnn_type="LSTM", chunk_size=10).eval()
    cases: dict[str, Callable[[Tensor], Tensor]] = {
        "Resample": torchaudio.transforms.Resample(3, 2),
        "Fade": torchaudio.transforms.Fade(fade_out_len=10),
        "HDemucs": lambda x: demucs(x.unsqueeze(1))[:, 0, 0],
        "SquimObjective": lambda x: torch.stack(squim(x), -1),
    }
    for name, function in cases.items():
        with torch.no_grad():
            padded = function(batch)
            alone = [function(row[None])[0] for row in batch.unpad()]
            for i, row in enumerate(alone):
                same = torch.allclose(padded[i, : len(row)].filled(0), row, rtol=1e-4, atol=1e-5)
                assert same == (i == 0 or name == "Resample"), f"{name}, row {i}"
            if name == "Resample":
                assert padded.count(1).tolist() > [len(row) for row in alone]
            if name in ("HDemucs", "SquimObjective"):
                with mt.strict(), pytest.raises(mt.MaskMismatchError):
                    function(batch)
