"""
Why does a fully padded row turn my softmax into NaN?
=====================================================

The usual recipe fills padding with ``-inf`` before the softmax.  If a row is nothing
but padding, its softmax is 0/0.  With a mask, the result of that row is masked and its
gradient is zero.  A NaN that your code computed stays visible.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import masked_tensor as mt

torch.manual_seed(0)
scores = torch.randn(3, 3)
valid = torch.tensor([[True, False, False], [True, False, True], [False, False, False]])

# %%
# The recipe, applied along the columns: column 1 becomes NaN.

plain = scores.clone().requires_grad_()
recipe = plain.masked_fill(~valid, float("-inf")).softmax(0)
recipe.square().sum().backward()
print(recipe.detach())
assert recipe[:, 1].isnan().all()

# %%
# With a mask, column 1 is masked and the other columns are right.

x = mt.masked_tensor(scores, valid, requires_grad=True)
masked = x.softmax(0)
masked.square().sum().backward()
print(masked.detach())
assert masked.mask.equal(valid)
torch.testing.assert_close(masked[:2, 0].sum().item(), 1.0)
assert masked[1, 2].item() == 1.0
assert x.grad.filled(0).isfinite().all()

# %%
# One such row turns the gradients of the whole model into NaN, even if the loss leaves
# it out.  Its softmax is NaN, and 0 times NaN is NaN, so the NaN reaches the parameters
# that all rows share.

rows, score, value = torch.randn(4, 3, 8), torch.nn.Linear(8, 1), torch.nn.Linear(8, 2)
seen = torch.ones(4, 3, 1, dtype=torch.bool)
seen[3] = False  # the last sequence of the batch is empty

weights = score(rows).masked_fill(~seen, float("-inf")).softmax(1)
loss = (weights.transpose(1, 2) @ value(rows))[:3].square().mean()
loss.backward()
print(f"filled with -inf: loss {loss.item():.4f}, gradient {value.bias.grad.tolist()}")
assert loss.isfinite()
assert value.bias.grad.isnan().all()

value.zero_grad()
padded = mt.as_masked_tensor(rows, seen)
loss = (score(padded).softmax(1).transpose(1, 2) @ value(padded)).square().mean()
loss.backward()
rounded = [round(v, 4) for v in value.bias.grad.tolist()]
print(f"masked:           loss {loss.item():.4f}, gradient {rounded}")
assert value.bias.grad.isfinite().all()

# %%
# A -inf or NaN that was *computed* is a value, not a missing entry.  It stays visible
# unless ``mode`` says otherwise.

infinite = torch.tensor([[float("-inf"), float("-inf")]])
print(f"{'mode':12} {'row of -inf, all valid':>24} {'row with nothing valid':>24}")
for mode in ("safe", "inf_as_zero", "none"):
    cells = [
        mt.softmax(infinite, 1, mask=torch.full((1, 2), known), mode=mode).tolist()
        for known in (True, False)
    ]
    print(f"{mode:12} {cells[0]!s:>24} {cells[1]!s:>24}")
everything = torch.tensor([[True, True]])
assert mt.softmax(infinite, 1, mask=everything).isnan().all()
assert (mt.softmax(infinite, 1, mask=everything, mode="inf_as_zero") == 0).all()

# %%
# The two results side by side: ``nan`` is wrong, ``--`` is masked.

figure, panels = plt.subplots(1, 2, figsize=(7, 3.5), constrained_layout=True)
for panel, title, result in zip(
    panels, ("filled with -inf", "masked"), (recipe, masked.filled(-1)), strict=True
):
    panel.imshow(
        result.detach(),
        cmap=plt.get_cmap("Greens").with_extremes(under="0.85", bad="#f8d0cd"),
        vmin=0,
        vmax=1.6,
    )
    for i, values in enumerate(result.tolist()):
        for j, value in enumerate(values):
            shown = "--" if value == -1 else f"{value:.2f}"
            color = "C3" if shown == "nan" else "black"
            panel.text(j, i, shown, ha="center", va="center", color=color)
    panel.set(title=title, xticks=[], yticks=[])
if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture)
    print(f"saved {picture.name} beside this script")
