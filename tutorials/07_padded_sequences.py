"""
Which layers does padding change?
=================================

This tutorial shows five places where plain PyTorch goes wrong on padded sequences, each
next to the same lines with a masked tensor.  The test is always the same: a sequence in
a padded batch must get the result that it gets alone, without padding.

The data are real: 312 patients of the Mayo Clinic with primary biliary cholangitis,
followed from 1974 to 1988.  Each came 1 to 16 times, and not every laboratory value was
measured at each visit: 42 % of the cholesterol values are missing.  (Source: Murtaugh
et al., Hepatology 20, 1994, data set ``pbcseq`` in the R package survival.)

:doc:`01_padded_batches` trains a network on the same data.  The code that reads the
table and draws is ordinary and folded below.  If you download the notebook, put these
files and ``visits.csv`` next to it, in a folder ``parts``.

.. dropdown:: parts/visits.py: the data, comparisons

   .. literalinclude:: ../../../tutorials/parts/visits.py

.. dropdown:: parts/visits_drawn.py: the pictures

   .. literalinclude:: ../../../tutorials/parts/visits_drawn.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import rnn

import masked_tensor as mt
from parts import visits_drawn
from parts.visits import (
    LABS,
    NAN,
    Attention,
    distance,
    gradients,
    per_channel,
    read,
    variance_gradient_alone,
)

# The networks are tiny: more threads would only wait for each other.
torch.set_num_threads(1)
torch.manual_seed(0)

# %%
# The data
# --------
# A patient is a tensor of shape (visits, 7).  NaN marks a value that was not measured.
# The padding is NaN too, so one call masks both.

visits = read()
padded = rnn.pad_sequence(visits.values, batch_first=True, padding_value=NAN)
known = ~padded.isnan()
batch = mt.masked_invalid(padded)
sizes = [len(patient) for patient in visits.values]
print(f"{len(sizes)} patients, {min(sizes)} to {max(sizes)} visits, {len(LABS)} values")
print(f"of {batch.shape.numel()} entries {batch.count().item()} are measurements")

# %%
# Five comparisons
# ----------------
# The reference is the result for each patient alone, with nothing padded and nothing
# missing, computed with plain PyTorch in a loop.  ``compare`` stores how far the plain
# result and the masked result are from it.  It asserts that the masked result is right
# and that the plain one is wrong.

DISTANCES: dict[str, tuple[float, float]] = {}


def compare(what: str, plain: Tensor, masked: Tensor, alone: Tensor) -> None:
    masked = masked.filled(0) if isinstance(masked, mt.MaskedTensor) else masked
    torch.testing.assert_close(masked, alone, rtol=1e-4, atol=1e-5)
    DISTANCES[what] = distance(plain, alone), distance(masked, alone)
    assert not DISTANCES[what][0] < 0.05, "plain PyTorch was right"


# %%
# 1. The gradient of a variance
# ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# Here the plain version uses ``torch.masked``.  Its variance is right, but its gradient
# is wrong.

x = padded.clone().requires_grad_()
torch.masked.var(x, 1, unbiased=False, mask=known)[known.any(1)].sum().backward()

y = batch.clone().requires_grad_()
y.var(1, unbiased=False).sum().backward()

alone = variance_gradient_alone(padded, known)
compare("1. variance, gradient of the data", x.grad, y.grad, alone)

# %%
# 2. The gradient of a squared error
# ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# The target is the next visit, in which some values are missing.  ``torch.where`` keeps
# their NaN out of the loss but not out of the gradient, because 0 times NaN is NaN.
# The loss looks right, but after one step every weight is NaN.

net = nn.Linear(4, 7)
now, following, measured = padded[:, :-1, :4].nan_to_num(), padded[:, 1:], known[:, 1:]
error = (net(now) - following).square()
plain = gradients(net, torch.where(measured, error, 0.0).sum() / measured.sum())

masked = gradients(net, F.mse_loss(net(now), batch[:, 1:]))

alone = gradients(net, F.mse_loss(net(now)[measured], following[measured]))
compare("2. squared error, missing targets", plain, masked, alone)

# %%
# 3. Attention
# ^^^^^^^^^^^^
# From here on we use only the four values that were measured at every visit, so only
# padding is masked.  One call pads and masks.
#
# ``key_padding_mask`` gives a padded visit a weight of 0.  Attention still multiplies
# that weight by the value, and 0 times NaN is NaN.

regular = [patient[:, :4] for patient in visits.values]
nan_padded, padding = padded[:, :, :4], ~known[:, :, 0]
batch = mt.from_sequences(regular, padding_value=NAN)
assert batch.mask[:, :, 0].equal(~padding)

net = Attention()
plain = net(nan_padded, padding)[~padding]

masked = net(batch)[~padding]

alone = torch.cat([net(patient[None])[0] for patient in regular])
compare("3. attention to NaN in masked keys", plain, masked.detach(), alone.detach())

# %%
# 4. Cross entropy
# ^^^^^^^^^^^^^^^^
# The class is the stage of the disease.  ``ignore_index`` skips the padded logits in
# the loss, but their NaN still reaches the gradients of the weights.

net = nn.Linear(4, 4)
target = rnn.pad_sequence(visits.stages, batch_first=True, padding_value=-100).flatten()
logits = net(nan_padded).flatten(0, 1)
plain = gradients(net, F.cross_entropy(logits, target, ignore_index=-100))

masked = gradients(net, F.cross_entropy(net(batch).flatten(0, 1), target))

stages = torch.cat(visits.stages)
alone = gradients(net, F.cross_entropy(net(torch.cat(regular)), stages))
compare("4. cross entropy, ignored NaN logits", plain, masked, alone)

# %%
# 5. Layers that see more than one visit
# ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# Here plain PyTorch gets zeros as padding, because NaN would reach every result.
#
# - A convolution adds its bias to the padding, and the next convolution reads the
#   result at the border.
# - Norms and averages count the padding.
# - If all values are negative, their maximum is the padding.
# - The backward direction of an LSTM starts in the padding.

zero_padded = nan_padded.nan_to_num()
batch_norm, lstm = (
    nn.BatchNorm1d(4),
    nn.LSTM(4, 4, batch_first=True, bidirectional=True),
)
convolutions = [nn.Conv1d(4, 4, 3, padding=1) for _ in range(2)]
layers = {
    "two convolutions": per_channel(nn.Sequential(*convolutions)),
    "GroupNorm": per_channel(nn.GroupNorm(2, 4)),
    "BatchNorm, training": per_channel(batch_norm),
    "average pooling": per_channel(nn.AdaptiveAvgPool1d(1)),
    "max pooling": per_channel(nn.AdaptiveMaxPool1d(1)),
    "bidirectional LSTM": lambda x: lstm(x)[0],
}
for name, layer in layers.items():
    with torch.no_grad():
        plain, masked = layer(zero_padded), layer(batch)
        if "BatchNorm" in name:  # its statistics are those of all visits
            alone = list(batch_norm(torch.cat(regular)).split(sizes))
        else:
            alone = [layer(patient[None])[0] for patient in regular]
    ours = torch.cat([masked[i, : len(a)] for i, a in enumerate(alone)])
    theirs = torch.cat([plain[i, : len(a)] for i, a in enumerate(alone)])
    compare(f"5. {name}", theirs, ours, torch.cat(alone))

print(f"{'difference from each patient alone':40}{'plain PyTorch':>16}{'masked':>14}")
for what, (left, right) in DISTANCES.items():
    print(f"{what:40}{left:16.2f}{right:14.0e}")

# %%
# The picture
# -----------

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
visits_drawn.data(axes[0], known)
visits_drawn.distances(axes[1], DISTANCES)
if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture, dpi=110)
    print(f"saved {picture.name} beside this script")
