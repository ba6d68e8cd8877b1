"""
Why do I pay for padding?
=========================

A padded batch is one rectangular tensor.  The model computes the padding like
everything else, and the result is thrown away.  A masked tensor knows which steps are
padding and does not have to store them: ``x.packed()`` stores only the valid steps, and
the same model computes only those.

Here one encoder trains on the same batches in three ways: padded with a mask passed by
hand, masked, and packed.  The losses are the same, but time and memory differ.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt

matplotlib.use("Agg")
import matplotlib.pyplot as plt

torch.set_num_threads(1)
torch.manual_seed(0)
BATCH, TIME, WIDTH = 16, 160, 128

layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
data, target = torch.randn(2, BATCH, TIME, WIDTH)

# %%
# Three ways to train on a padded batch
# -------------------------------------
# The first way is the usual code.  The other two pass the lengths once, when they make
# the batch.


def by_hand(valid: Tensor) -> Tensor:
    """Passes the padding to the model and leaves it out of the loss."""
    out = model(data, src_key_padding_mask=~valid)
    return ((out - target).square() * valid[..., None]).sum() / (valid.sum() * WIDTH)


def masked(valid: Tensor) -> Tensor:
    """The batch knows its padding."""
    x = mt.as_masked_tensor(data, valid[..., None])
    return F.mse_loss(model(x), target).filled(0)


def packed(valid: Tensor) -> Tensor:
    """The batch does not store its padding."""
    x = mt.as_masked_tensor(data, valid[..., None]).packed()
    return F.mse_loss(model(x), target).filled(0)


# %%
# What a step costs
# -----------------
# We measure the time of a forward and backward pass, and the memory that the forward
# pass keeps for the backward pass.


def seconds(loss: Callable[[Tensor], Tensor], valid: Tensor) -> float:
    """Of one training step."""
    start = time.process_time()
    model.zero_grad()
    loss(valid).backward()
    return time.process_time() - start


def mebibytes(loss: Callable[[Tensor], Tensor], valid: Tensor) -> float:
    """Of memory kept for the backward pass."""
    kept = {}

    def note(x: Tensor) -> Tensor:
        if type(x) is Tensor:
            kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        loss(valid)
    return sum(kept.values()) / 2**20


ways = {"padded, mask by hand": by_hand, "masked": masked, "packed": packed}
shares = [0.0, 0.2, 0.4, 0.6, 0.8]
times: dict[str, list[float]] = {name: [] for name in ways}
memory: dict[str, list[float]] = {name: [] for name in ways}
losses: dict[str, list[float]] = {name: [] for name in ways}
for share in shares:
    mean = (1 - share) * TIME
    width = min(mean - 1, TIME - mean)
    lengths = torch.linspace(mean - width, mean + width, BATCH).round().long()
    valid = mt.lengths_to_mask(lengths, TIME)
    rounds = [
        {name: seconds(way, valid) for name, way in ways.items()} for _ in range(4)
    ]
    for name, way in ways.items():
        times[name].append(statistics.median(r[name] for r in rounds[1:]))
        memory[name].append(mebibytes(way, valid))
        losses[name].append(way(valid).item())
    row = ", ".join(
        f"{name} {times[name][-1] * 1e3:.0f} ms, {memory[name][-1]:.0f} MiB"
        for name in ways
    )
    print(f"{share:4.0%} padding: {row}")

# %%
# The losses are equal.  The cost of a packed batch is roughly proportional to the
# number of valid steps.

for name in ways:
    assert torch.allclose(
        torch.tensor(losses[name]),
        torch.tensor(losses["padded, mask by hand"]),
        rtol=1e-4,
    )
assert memory["packed"][-1] < 0.4 * memory["padded, mask by hand"][-1]

# %%
# Ops without a packed rule use the padded layout, and the result is the same.  The
# report lists them.  For this model it is empty; ``flip`` shows up in the second one.

with mt.extend.packing_report() as report:
    packed(valid)
assert report == {}
with mt.extend.packing_report() as report:
    mt.as_masked_tensor(data, valid[..., None]).packed().flip(1)
print(f"unpacked ops: {report}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4))
panels = {
    "seconds of a training step": times,
    "MiB kept for backward": memory,
    "loss": losses,
}
for axis, (title, values) in zip(axes, panels.items(), strict=True):
    for name in ways:
        style = {"linestyle": ":", "linewidth": 3} if name == "masked" else {}
        axis.plot([100 * s for s in shares], values[name], label=name, **style)
    axis.set(title=title, xlabel="% of the batch that is padding", ylim=(0, None))
axes[0].legend()
figure.tight_layout()
picture = Path(sys.argv[0]).with_suffix(".png")
figure.savefig(picture)
