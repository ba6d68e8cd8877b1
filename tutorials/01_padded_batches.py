"""
Does a prediction change with the other sequences in the batch?
===============================================================

With padding it does, and lengths passed by hand do not prevent it.  With a masked
tensor it does not, and the model needs no change.

The data are real: 312 patients of the Mayo Clinic with a liver disease, followed from
1974 to 1988.  Each came for 1 to 16 visits, and some laboratory values are missing.
(Source: Murtaugh et al., Hepatology 20, 1994, data set ``pbcseq`` of the R package
survival.)

A small network predicts the values of the next visit from all visits before it.  It is
trained three times with the same loop:

- **zeros**: sequences are padded with zeros.
- **lengths by hand**: the LSTM and the mean over time also receive the lengths.  The
  convolutions and the norms of PyTorch accept no lengths.
- **masked**: the batch is a masked tensor.  Padding and missing values are masked.

Each network then predicts for patients that it has not seen: first in batches of 64,
then one patient at a time, where nothing is padded.  The two answers should be equal.
"""

import time
from pathlib import Path

import pygal
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import rnn

import masked_tensor as mt
from parts.visits import LABS, NAN, histories, read

# The network is small: more threads would only wait for each other.
torch.set_num_threads(1)
torch.manual_seed(0)

# %%
# The data
# --------
# A patient is a tensor of shape (visits, 7).  NaN marks a value that was not measured.

visits = read()
order = torch.randperm(len(visits.values))
learn, held_out = histories(visits, order[:220]), histories(visits, order[220:])
sizes = [len(patient) for patient in visits.values]
print(f"{len(sizes)} patients, {min(sizes)} to {max(sizes)} visits, {len(LABS)} values")
print("Training three networks takes about 30 s; each adds a row below.", flush=True)

# %%
# The network
# -----------
# An ordinary module: two convolutions, two norms, an LSTM in both directions, a mean.


class NextVisit(nn.Module):
    """Predicts the next visit (batch, 7) from the visits before it (batch, time, 8)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(8, width, 3, padding=1), nn.GroupNorm(4, width), nn.GELU(),
            nn.Conv1d(width, width, 3, padding=1), nn.BatchNorm1d(width), nn.GELU(),
        )  # fmt: skip
        self.lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(width, 7)

    def encode(self, x: Tensor) -> Tensor:
        return self.convolutions(x.transpose(1, 2)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(self.encode(x))[0].mean(1))


class WithLengths(NextVisit):
    """The same network, with lengths where PyTorch accepts them."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = self.encode(x)
        packed = rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        steps = rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        return self.head(steps.sum(1) / lengths.unsqueeze(1))


# %%
# Three ways to make a batch
# --------------------------
# A scaled value has mean 0, so that 0 is the usual choice for padding and for what is
# missing.


def zeros(sequences: list[Tensor]) -> tuple[Tensor, ...]:
    known = [s.nan_to_num() for s in sequences]
    return (rnn.pad_sequence(known, batch_first=True),)


def lengths_by_hand(sequences: list[Tensor]) -> tuple[Tensor, ...]:
    return *zeros(sequences), torch.tensor([len(s) for s in sequences])


def masked(sequences: list[Tensor]) -> tuple[Tensor, ...]:
    return (mt.masked_invalid(rnn.pad_sequence(sequences, True, NAN)),)


METHODS = {
    "zeros": (NextVisit, zeros),
    "lengths by hand": (WithLengths, lengths_by_hand),
    "masked": (NextVisit, masked),
}

# %%
# Training
# --------
# Targets also have missing values.  ``F.mse_loss`` of a masked target is the mean over
# the values that were measured, so all three use it.


def train(model_class: type[NextVisit], collate, steps: int = 300) -> nn.Module:
    torch.manual_seed(0)
    net = model_class()
    optimizer = torch.optim.AdamW(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for _ in range(steps):
        batch = [learn[i] for i in torch.randint(len(learn), (64,))]
        sequences, targets = zip(*batch, strict=True)
        target = mt.masked_invalid(torch.stack(targets))
        loss = F.mse_loss(net(*collate(list(sequences))), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return net.eval()


@torch.no_grad()
def predict(net: nn.Module, collate, size: int) -> Tensor:
    """Predictions for the held-out visits in batches of ``size``."""
    sequences = [s for s, _ in held_out]
    batches = [sequences[i : i + size] for i in range(0, len(sequences), size)]
    return torch.cat([net(*collate(batch)) for batch in batches])


def error(predicted: Tensor) -> float:
    """The root mean square error over the values that were measured."""
    return F.mse_loss(predicted, truth).sqrt().item()


truth = mt.masked_invalid(torch.stack([target for _, target in held_out]))
errors, changes, seconds = {}, {}, {}
print(f"\n{len(held_out)} held-out visits; scaled values, lower is better")
print(
    f"{'':18}{'change with the batch':>23}{'error alone':>13}{'error in batches':>18}"
)
for name, (model_class, collate) in METHODS.items():
    start = time.perf_counter()
    net = train(model_class, collate)
    seconds[name] = time.perf_counter() - start
    together, alone = (predict(net, collate, size) for size in (64, 1))
    errors[name] = error(together), error(alone)
    changes[name] = F.mse_loss(together, alone).sqrt().item()
    row = f"{changes[name]:23.7f}{errors[name][1]:13.3f}{errors[name][0]:18.3f}"
    print(f"{name:18}{row}", flush=True)
last_values = torch.stack([s[-1, :7] for s, _ in held_out]).nan_to_num()
repeated = error(last_values)
print(f"{'last values':18}{'':23}{repeated:13.3f}{repeated:18.3f}")
print(
    "training took " + ", ".join(f"{s:.1f} s ({name})" for name, s in seconds.items())
)

# %%
# What the table says
# -------------------
# In batches of 64 the three networks are about equally good.  For one patient at a time
# the first two are worse, even worse than repeating the last values: they learned with
# padding in their convolutions and in the statistics of their norms.  The masked
# network gives the same answer both times, up to rounding.  The price: on such a small
# network, a masked training step takes longer.

assert changes["masked"] < 1e-5
assert min(changes["zeros"], changes["lengths by hand"]) > 0.05
assert min(errors["zeros"][1], errors["lengths by hand"][1]) > repeated
assert errors["masked"][1] < min(errors["lengths by hand"][1], repeated)
assert errors["masked"][0] < 1.02 * min(both[0] for both in errors.values())

# %%
# The picture
# -----------
# How far a prediction moves when other patients share its batch (root mean square), and
# how far it is from the truth for one patient alone.  Both are in scaled values.

chart = pygal.HorizontalBar(
    title="Predictions for held-out patients (lower is better)",
    x_title="root mean square of scaled values",
    height=420,
    print_values=True,
    formatter=lambda value: f"{value:.3f}",
    legend_at_bottom=True,
    js=[],
)
chart.x_labels = [*errors, "repeat the last values"]
chart.add(
    "error for one patient alone", [both[1] for both in errors.values()] + [repeated]
)
chart.add("change caused by other patients in the batch", [*changes.values(), None])
if "__file__" in globals():  # a script; the documentation shows the picture itself
    picture = Path(__file__).with_suffix(".svg")
    chart.render_to_file(str(picture))
    print(f"saved {picture.name} beside this script")

saved = {name: 1 - errors["masked"][1] / both[1] for name, both in errors.items()}
beside = errors["masked"][0] / errors["lengths by hand"][0] - 1
print(
    "\nWith a mask, a patient gets the same prediction alone and in any batch.\n"
    f"Error alone: {saved['lengths by hand']:.0%} lower than with lengths by hand, "
    f"{saved['zeros']:.0%} lower than with zeros.\n"
    f"Error in batches: {abs(beside):.0%} {'higher' if beside > 0 else 'lower'} "
    "than with lengths by hand."
)
