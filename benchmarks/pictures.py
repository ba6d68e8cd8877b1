"""Draws what ``python -m benchmarks.growth`` measured: a picture for each axis, and the page ``docs/curves.md``."""

import json
from pathlib import Path
from typing import Any

AXES = {
    "elements": "the number of elements",
    "masked": "the share of masked entries",
    "stored": "the number of stored entries",
    "padding": "the share of padding",
}
COLORS = {
    "plain": "0.35", "masked": "C2", "packed": "C0", "nested": "C4", "torch.masked": "C1", "numpy.ma": "C3",
    "by hand": "C5", "polars": "C6", "pyarrow": "C8",
}  # fmt: skip
GROWING = ("elements", "stored")  #: whose axis goes over powers
STEP = 1.3  #: what a step at a tuning number may cost


def rounded(data: dict[str, Any]) -> str:
    """The measurements as text, to three digits, a point on a line."""
    parts = []
    for axis, points in data.items():
        whole = points if isinstance(points, dict) else None  # the steps
        cells = (
            json.dumps(_round(whole)) if whole else "[\n" + ",\n".join(json.dumps(_round(p)) for p in points) + "\n]"
        )
        parts.append(f"{json.dumps(axis)}: {cells}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _round(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _round(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_round(v) for v in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


def draw(data: dict[str, Any], folder: Path) -> None:
    """Writes the pictures and the page."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "curves", "font.size": 8, "font.family": "sans-serif"}
    for axis in AXES:
        _picture(axis, data[axis], folder / f"curves_{axis}.svg")
    (folder / "curves.md").write_text(page(data))


def _picture(axis: str, points: list[dict[str, Any]], path: Path) -> None:
    """Time above, peak memory below, a column for each op."""
    import matplotlib.pyplot as plt

    ops = list(dict.fromkeys(p["op"] for p in points))
    figure, rows = plt.subplots(
        2, len(ops), figsize=(2.1 * len(ops), 4), sharex="col", squeeze=False, layout="constrained"
    )
    for op, time, memory in zip(ops, *rows, strict=True):
        here = [p for p in points if p["op"] == op]
        for axes, key, unit in ((time, "seconds", 1e3), (memory, "bytes", 1 / 2**20)):
            for kind in dict.fromkeys(k for p in here for k in p[key]):
                at = [(p["at"], p[key][kind] * unit) for p in here if p[key].get(kind)]
                axes.plot(*zip(*at, strict=True), color=COLORS[kind], marker=".", markersize=3, linewidth=1, label=kind)
            if axis in GROWING:
                axes.set(xscale="log", yscale="log")
                axes.minorticks_off()
            else:
                axes.set_ylim(0)
            axes.spines[["top", "right"]].set_visible(False)
        time.set_title(op, fontsize=9)
        memory.set_xlabel(AXES[axis])
    rows[0][0].set_ylabel("ms")
    rows[1][0].set_ylabel("MiB at the peak")
    known = dict(pair[::-1] for axes in rows[0] for pair in zip(*axes.get_legend_handles_labels(), strict=True))
    figure.legend(known.values(), known.keys(), loc="outside upper center", ncols=len(known), frameon=False)
    figure.savefig(path, facecolor="white", metadata={"Date": None})
    plt.close(figure)


def page(data: dict[str, Any]) -> str:
    """The page around the pictures."""
    parts = [INTRODUCTION]
    for axis, name in AXES.items():
        parts += ["", f"## With {name}", "", TEXTS[axis], "", f"![Time and memory against {name}](curves_{axis}.svg)"]
    parts += ["", "## No steps", "", STEPS.format(step=STEP), "", "| setting | limit (elements) | ratio of times |"]
    parts += ["| --- | --- | --- |"]
    parts += [f"| `{name}` | {size} | {ratio:.2f} |" for name, (size, ratio) in data["steps"].items()]
    return "\n".join(parts) + "\n"


INTRODUCTION = """# How cost grows

See how time and memory grow with size, share of masked entries and padding. For single cases,
see [What it costs](cost.md). In each picture, the upper part is the time and the lower part the
peak memory of a call, where torch counts it. `python -m benchmarks.growth` measures and draws
them ([data](curves.json)): medians with one thread, in float32, with the candidates in turn in
one process."""

TEXTS = {
    "elements": """30 % of the elements are masked at random, and their data are not known to be zero. For small
tensors, the time is that of a call. From about ten thousand elements on, it grows like that of
the plain op.""",
    "masked": """The tensor has a million elements. The share of masked entries changes the time little, because
no branch depends on an entry.""",
    "stored": """The ops are a sum and a softmax along the rows of a CSR tensor of 10,000 x 10,000. `plain` is
one pass over the stored values, the least that such a result needs.""",
    "padding": """The batch has 32 rows of up to 128 steps of 64 features. Masked and plain tensors compute the
padding; [packed](packed.md) and nested tensors do not.""",
}

STEPS = """Some ops have two implementations, chosen by size. The ratio is the time of the first size above
the limit divided by the time of the last size below it. It is never more than {step}."""
