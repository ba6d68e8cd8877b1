"""For 07_padded_sequences.py: its four pictures."""

import torch
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from torch import Tensor

from .visits import LABS, Visits

NOWHERE, EXACT = 50.0, 1e-8  # where NaN and 0 are drawn


def data(axes, known: Tensor) -> None:
    kinds = {
        "no visit": "white",
        "cholesterol missing": "#d5cfe6",
        "cholesterol taken": "#54478c",
    }
    longest_first = known[:, :, 0].sum(1).argsort(descending=True, stable=True)
    kind = (known[:, :, 0].int() + known[:, :, LABS.index("chol")].int())[longest_first]
    colors = ListedColormap(list(kinds.values()))
    axes.imshow(kind, aspect="auto", interpolation="none", cmap=colors)
    title = f"the data: {len(known)} patients, {int(known[:, :, 0].sum()):,} visits"
    axes.set(title=title, xlabel="visit", ylabel="patient")
    axes.set_xticks(range(0, 16, 3), range(1, 17, 3))
    handles = [Patch(color=c, label=k) for k, c in kinds.items() if k != "no visit"]
    axes.legend(handles=handles, loc="lower right")


def distances(axes, found: dict[str, tuple[float, float]]) -> None:
    rows = range(len(found))
    plain, masked = (
        torch.tensor(list(found.values())).nan_to_num(NOWHERE).clamp(EXACT).unbind(1)
    )
    axes.hlines(rows, masked, plain, color="0.85", zorder=1)
    axes.scatter(plain, rows, color="C0", label="plain PyTorch, padded")
    axes.scatter(masked, rows, color="C2", label="masked")
    axes.legend(loc="lower center")
    limits = (EXACT / 4, 4 * NOWHERE)
    axes.set(xscale="log", xlim=limits, title="difference from each patient alone")
    ticks = {
        EXACT: "0",
        1e-6: "1e-6",
        1e-4: "1e-4",
        1e-2: "1 %",
        1: "100 %",
        NOWHERE: "NaN",
    }
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_yticks(rows, list(found))
    axes.set_ylim(len(found) - 0.5, -0.6)  # the first on top, the legend below the last


def asked_twice(
    axes, predictions: dict[str, tuple[Tensor, Tensor]], visits: Visits
) -> None:
    for i, (method, pair) in enumerate(predictions.items()):
        together, alone = (
            (p[:, 0] * visits.std[0] + visits.mean[0]).exp() for p in pair
        )
        axes.scatter(alone, together, s=9, alpha=0.6, color=f"C{i}", label=method)
    axes.axline((1, 1), slope=1, color="0.6", linewidth=0.8, zorder=0)
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel="asked about one patient", ylabel="asked about 64 at once")
    axes.set(title="the same prediction (bilirubin, mg/dl), asked twice")
    ticks = [0.3, 1, 3, 10, 30]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, ticks)
        axis.set_minor_formatter("")
    axes.legend()


def scores(axes, errors: dict[str, list[float]], repeated: float) -> None:
    for i, (method, pair) in enumerate(errors.items()):
        axes.plot([0, 1], pair, marker="o", markersize=8, color=f"C{i}", label=method)
        axes.text(1.05, pair[1], f"{pair[1]:.2f}", color=f"C{i}", va="center")
    line = {"color": "0.4", "linestyle": "--", "linewidth": 1}
    axes.axhline(repeated, **line, label="repeat the last values")
    axes.set(ylabel="root mean square of scaled values", xlim=(-0.25, 1.25))
    axes.set(title="error on held-out patients")
    axes.set_xticks([0, 1], ["64 at once", "one at a time"])
    axes.legend(loc="upper left")
