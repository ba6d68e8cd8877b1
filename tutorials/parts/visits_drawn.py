"""For 07_padded_sequences.py: its two pictures."""

import torch
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from torch import Tensor

from .visits import LABS

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
