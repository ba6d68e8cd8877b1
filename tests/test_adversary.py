"""What an adversary tries: random programs against finite differences, random stacks of layers under padding, threads.

A small run by default; ``MASKED_TENSOR_ADVERSARY=20000`` programs and ``MASKED_TENSOR_STACKS=50000`` stacks for the
long one.
"""

import os
import random
import sys
import threading
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor.testing import assert_close

PROGRAMS = int(os.environ.get("MASKED_TENSOR_ADVERSARY", "60"))
STACKS = int(os.environ.get("MASKED_TENSOR_STACKS", "100"))

# ------------------------------------------------------------------------------ programs against finite differences

# Smooth wherever they are asked, so that a difference quotient is a derivative; shapes (rows, columns) stay.
SMOOTH: dict[str, Callable[[Tensor], Tensor]] = {
    "sin": torch.sin,
    "tanh": torch.tanh,
    "gelu": nn.functional.gelu,
    "square": torch.square,
    "sqrt": lambda x: (x * x + 1).sqrt(),
    "reciprocal": lambda x: 1 / (x * x + 1),
    "less its mean": lambda x: x - x.mean(-1, keepdim=True),
    "over its spread": lambda x: x / (x.var(0, keepdim=True, correction=0) + 1),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "logsumexp": lambda x: x + x.logsumexp(-1, keepdim=True),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.tanh().cumprod(-1),
    "prod": lambda x: x * x.tanh().prod(-1, keepdim=True),
    "norm": lambda x: x * (1 + (x * x).sum(-1, keepdim=True)).rsqrt(),
    "layer_norm": lambda x: nn.functional.layer_norm(x, x.shape[-1:]),
    "gram": lambda x: (x @ x.mT).tanh() @ x,
    "linear": lambda x: nn.functional.linear(x, torch.linspace(-1, 1, x.shape[-1] ** 2).double().view(x.shape[-1], -1)),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x, x, x),
    "flip": lambda x: x.flip(0) * x,
    "roll": lambda x: x.roll(1, 0) + x,
    "written": lambda x: written(x),
    "in place": lambda x: x.clone().mul_(0.5).add_(x),
    "cat": lambda x: torch.cat([x[:1], x[1:] * 2]),
}


def written(x: Tensor) -> Tensor:
    """A copy whose first row was written from the last."""
    result = x.clone()
    result[0] = x[-1] * x[-1]
    return result


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")  # of programs that mask everything
@settings(max_examples=PROGRAMS, deadline=None)
@given(st.integers(0, 2**62))
def test_gradients_of_random_programs_are_difference_quotients(seed: int) -> None:
    """d f(x) / dx along a random direction: (f(x + h v) - f(x - h v)) / 2h, masked entries not moved."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed % 2**31)
    shape = rng.randint(1, 4), rng.randint(2, 4)
    steps = [rng.choice(sorted(SMOOTH)) for _ in range(rng.randint(1, 6))]
    data, direction = (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1 for _ in range(2))
    mask = torch.rand(shape, generator=generator) < rng.choice([0.5, 0.8, 1.0])
    garbage = torch.where(mask, data, rng.choice([float("nan"), float("inf"), 1e30]))

    def total(x: Tensor) -> Tensor:
        for step in steps:
            x = SMOOTH[step](x)
        return (x * torch.arange(1.0, x.shape.numel() + 1).view(x.shape)).sum()

    x = mt.as_masked_tensor(garbage, mask).requires_grad_()
    (gradient,) = torch.autograd.grad(total(x), x, allow_unused=True)
    slope = 0.0 if gradient is None else float((gradient.filled(0.0) * direction).sum())
    if gradient is not None:
        assert not gradient.get_data()[~mask].any()

    def quotient(h: float) -> float:
        ahead, behind = (total(mt.as_masked_tensor(garbage + s * h * direction, mask)).filled(0.0) for s in (1, -1))
        return float(ahead - behind) / (2 * h)

    if quotient(1e-6) != pytest.approx(slope, rel=1e-4, abs=1e-5):
        # Norms of norms drown differences in rounding: then no step gives what another does, and none is judged.
        found = [quotient(h) for h in (1e-6, 1e-5, 1e-4)]
        assert max(found) - min(found) > 1e-5 + 1e-4 * abs(slope), f"{steps}: {found}, not {slope} (seed {seed})"


# ------------------------------------------------------------------------------------- layers stacked, under padding

CHANNELS = 4


class Along(nn.Module):
    """A module of (rows, channels, time) in a stack of (rows, time, channels)."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class Plus(nn.Module):
    """A residual connection."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class First(nn.Module):
    """The outputs of a recurrent module, or of self-attention."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        attends = isinstance(self.inner, nn.MultiheadAttention)
        return self.inner(x, x, x, need_weights=False)[0] if attends else self.inner(x)[0]


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(CHANNELS, CHANNELS),
    "gated": lambda: nn.Sequential(nn.Linear(CHANNELS, 2 * CHANNELS), nn.GLU()),
    "layer norm": lambda: nn.LayerNorm(CHANNELS),
    "rms norm": lambda: nn.RMSNorm(CHANNELS),
    "group norm": lambda: Along(nn.GroupNorm(2, CHANNELS)),
    "instance norm": lambda: Along(nn.InstanceNorm1d(CHANNELS)),
    "batch norm": lambda: Along(nn.BatchNorm1d(CHANNELS).eval()),
    "conv": lambda: Along(nn.Conv1d(CHANNELS, CHANNELS, 3, padding=1)),
    "same conv": lambda: Along(nn.Conv1d(CHANNELS, CHANNELS, 5, padding="same")),
    "depthwise": lambda: Along(nn.Conv1d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS)),
    "dilated": lambda: Along(nn.Conv1d(CHANNELS, CHANNELS, 3, padding=2, dilation=2)),
    "max pool": lambda: Along(nn.MaxPool1d(3, 1, 1)),
    "average pool": lambda: Along(nn.AvgPool1d(3, 1, 1)),
    "gelu": nn.GELU,
    "prelu": nn.PReLU,
    "softmax": lambda: nn.Softmax(-1),
    "gru": lambda: First(nn.GRU(CHANNELS, CHANNELS, batch_first=True)),
    "lstm": lambda: First(nn.LSTM(CHANNELS, CHANNELS // 2, batch_first=True, bidirectional=True)),
    "attention": lambda: First(nn.MultiheadAttention(CHANNELS, 2, batch_first=True)),
    "encoder": lambda: nn.TransformerEncoderLayer(CHANNELS, 2, 8, dropout=0.0, batch_first=True),
}


@settings(max_examples=STACKS, deadline=None)
@given(st.integers(0, 2**62))
def test_stacks_of_layers_do_not_see_padding(seed: int) -> None:
    """Each row of a padded batch gives what it gives alone; so do the gradients of all parameters."""
    rng = random.Random(seed)
    torch.manual_seed(seed % 2**31)
    names = [rng.choice(sorted(LAYERS)) for _ in range(rng.randint(1, 5))]
    layers = [LAYERS[name]() for name in names]
    model = nn.Sequential(*(Plus(layer) if rng.random() < 0.4 else layer for layer in layers)).double()
    lengths = [rng.randint(2, 6) for _ in range(rng.randint(1, 3))]
    rows = [torch.randn(length, CHANNELS, dtype=torch.float64) for length in lengths]
    longest = max(lengths) + rng.randint(0, 2)
    data = torch.full((len(rows), longest, CHANNELS), rng.choice([float("nan"), 1e30, 0.0]), dtype=torch.float64)
    for row, values in zip(data, rows, strict=True):
        row[: len(values)] = values
    padded = model(mt.as_masked_tensor(data, mt.lengths_to_mask(torch.tensor(lengths), longest)[..., None]))
    what = f"{names}, lengths {lengths} of {longest} (seed {seed}): "
    for got, length in zip(padded, lengths, strict=True):
        assert got.get_mask()[:length].all(), what
        assert not got.get_mask()[length:].any(), what
    outputs = [got.get_data()[:length] for got, length in zip(padded, lengths, strict=True)]
    parameters = list(model.parameters())
    ours = outputs, gradients(padded.square().sum(), parameters)
    expected = alone(model, rows, parameters)
    assert [g is None for g in ours[1]] == [g is None for g in expected[1]], what
    difference = unlike(ours, expected)
    if difference is not None:
        # A norm of a constant row is rounding, and beyond a kink so is a gradient: plain torch itself is not the same.
        moved = alone(model, [row + 1e-14 * torch.randn_like(row) for row in rows], parameters)
        assert unlike(moved, expected) is not None, what + difference


Outcome = tuple[list[Tensor], list[Tensor | None]]


def gradients(loss: Tensor, parameters: list[nn.Parameter]) -> list[Tensor | None]:
    return list(torch.autograd.grad(loss, parameters, allow_unused=True)) if parameters else []


def alone(model: nn.Module, rows: list[Tensor], parameters: list[nn.Parameter]) -> Outcome:
    outputs = [model(row[None])[0] for row in rows]
    return outputs, gradients(torch.stack([row.square().sum() for row in outputs]).sum(), parameters)


def unlike(first: Outcome, second: Outcome) -> str | None:
    """How two outcomes differ, if they do."""
    for got, expected in zip([*first[0], *first[1]], [*second[0], *second[1]], strict=True):
        if got is not None:
            try:
                assert_close(got, expected)
            except AssertionError as error:
                return str(error)
    return None


# ------------------------------------------------------------------------------------------------------------ threads


def together(*jobs: Callable[[], None]) -> None:
    """Run jobs at once, and raise what one of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        try:
            start.wait()
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_that_write_disjoint_rows_lose_nothing() -> None:
    rows = 600
    x = mt.masked_tensor(torch.zeros(rows, 3), torch.zeros(rows, 3, dtype=torch.bool))

    def write(first: int) -> None:
        for k in range(first, rows, 2):
            x[k] = float(k)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        together(lambda: write(0), lambda: write(1))
    finally:
        sys.setswitchinterval(interval)
    assert x.get_mask().all()
    assert torch.equal(x.filled(0), torch.arange(rows).float()[:, None].expand(rows, 3))


def test_a_thread_may_compute_while_another_does() -> None:
    """Reading, differentiating and writing a tensor of its own, in each thread: as if it were alone."""
    shared = mt.masked_tensor([[1.0, None, 3.0], [4.0, 5.0, None]])
    weight = torch.tensor([1.0, 2.0, 3.0])

    def work() -> None:
        for _ in range(100):
            x = shared.detach().clone().requires_grad_()
            ((x * weight).sum(-1) * shared.mean(-1)).sum().backward()
            assert_close(x.grad.filled(0.0), torch.tensor([[2.0, 0.0, 6.0], [4.5, 9.0, 0.0]]))
            y = shared.detach().clone()
            y[0] = 7.0
            assert y.count() == 5
            assert shared.count() == 4

    together(work, work, work)
