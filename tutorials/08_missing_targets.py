"""
Some of my labels are missing. How do I train on the rest?
==========================================================

Pass a masked target to the loss.  The loss averages over the known labels, and the
model learns from all of them.  The usual workarounds fail: a NaN target makes every
gradient NaN even if ``torch.where`` hides it from the loss, and a target filled with 0
teaches the model to predict zeros.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

import masked_tensor as mt

torch.manual_seed(0)
NAN = float("nan")

# %%
# Four quantities depend on five inputs.  In each row, only some of them were measured.
true_weight = torch.randn(4, 5)
x = torch.randn(400, 5)
y = x @ true_weight.t() + 3 + 0.05 * torch.randn(400, 4)
measured = torch.rand(400, 4) < torch.tensor([0.9, 0.5, 0.2, 0.05])
target = torch.where(measured, y, NAN)

# %%
# Mistake 1: the loss looks fine, but every gradient is NaN.

net = nn.Linear(5, 4)
known = ~target.isnan()
loss = torch.where(known, (net(x) - target).square(), 0.0).sum() / known.sum()
loss.backward()
assert loss.isfinite()
assert net.weight.grad.isnan().all()

# %%
# With a masked target, the loss is the mean over the measured values.

labels = mt.masked_invalid(target)
net.zero_grad()
masked_loss = F.mse_loss(net(x), labels)
masked_loss.backward()
assert net.weight.grad.isfinite().all()
by_hand = (net(x)[known] - target[known]).square().mean()
torch.testing.assert_close(masked_loss.item(), by_hand.item())


# %%
# Mistake 2: filling the missing targets.  Mistake 3: using only the rows in which
# everything was measured.


def fit(
    targets: torch.Tensor, rows: torch.Tensor | slice = slice(None)
) -> torch.Tensor:
    """Trains a linear model; returns the error of each output, against the truth."""
    torch.manual_seed(1)
    model = nn.Linear(5, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        F.mse_loss(model(x[rows]), targets[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        return (model(x) - y).square().mean(0).sqrt()


complete = measured.all(1)
results = {
    f"rows with all labels ({int(complete.sum())})": fit(target, complete),
    "filled with 0": fit(target.nan_to_num(0)),
    "filled with the mean": fit(
        labels.filled(0) + (~measured) * labels.mean(0).filled(0)
    ),
    f"masked ({int(measured.sum())} labels)": fit(labels),
}
share = measured.float().mean(0)
shares = "".join(f"{s:>9.0%}" for s in share.tolist())
print(f"{'error of each output; measured in':34}{shares}")
for name, error in results.items():
    print(f"{name:34}" + "".join(f"{e:9.3f}" for e in error.tolist()))
*others, best = results.values()
assert all((best < other).all() for other in others)
assert best.max() < 0.1

# %%
# Other losses work the same way: the mean is over the labels that exist.

classes = mt.masked_equal(torch.tensor([2, -100, 0, 1]), -100)
logits = torch.randn(4, 3)
torch.testing.assert_close(
    F.cross_entropy(logits, classes).item(),
    F.cross_entropy(logits, torch.tensor([2, -100, 0, 1])).item(),
)

# %%
# If a batch has no labels at all, the loss is masked, its gradient is zero, and
# training continues.  The backward pass warns you, because a loss that is never valid
# trains nothing.

nothing = F.mse_loss(
    net(x[:2]), mt.masked_tensor(torch.zeros(2, 4), torch.zeros(2, 4, dtype=torch.bool))
)
net.zero_grad()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    nothing.backward()
assert [w.category for w in caught] == [mt.MaskedLossWarning]
print("loss of a batch without labels:", f"{nothing:.3f}")
assert not nothing.mask
assert (net.weight.grad == 0).all()

# %%
# The rarer a label is, the larger is the error of the workarounds.  With a mask, the
# model learns from the few labels that exist.

figure, axes = plt.subplots(figsize=(7, 4), constrained_layout=True)
for name, error in results.items():
    axes.plot(range(4), error, marker="o", label=name)
axes.set(
    yscale="log",
    title="error of each output",
    xlabel="share of rows in which it was measured",
)
axes.set_xticks(range(4), [f"{s:.0%}" for s in share.tolist()])
axes.legend(loc="center right")
if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture)
    print(f"saved {picture.name} beside this script")
