"""For 01_padded_batches.py and 07_padded_sequences.py: the visits, and comparisons.

visits.csv has ten columns of the data set pbcseq of the R package survival.
"""

import csv
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

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
    with Path(__file__).with_name("visits.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    logs = mt.masked_invalid(
        torch.tensor([[float(row[lab] or NAN) for lab in LABS] for row in rows])
    ).log()
    mean, std = logs.mean(0).filled(0), logs.std(0).filled(1)
    values = ((logs - mean) / std).filled(NAN)
    years = torch.tensor([float(row["day"]) for row in rows]) / 365.25
    stage = torch.tensor([int(row["stage"]) for row in rows]) - 1
    sizes = [len(list(visits)) for _, visits in groupby(rows, lambda row: row["id"])]
    return Visits(
        values.split(sizes), years.split(sizes), stage.split(sizes), mean, std
    )


def histories(visits: Visits, chosen: Tensor) -> list[Sample]:
    """For every visit but the first: all visits before it, and its own values."""
    samples = []
    for i in chosen.tolist():
        values, years = visits.values[i], visits.years[i]
        for n in range(1, len(values)):
            until = years[1 : n + 1, None] - years[:n, None]
            samples.append((torch.cat([values[:n], until], 1), values[n]))
    return samples


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
