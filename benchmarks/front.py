"""The tables at the beginning of the pages on cost, and of the README: lines of the full tables, in users' words.

``python -m benchmarks --write`` writes the full tables (``benchmarks/cost.md``, ``cost_cuda.md``) and then these;
``python -m benchmarks.front`` writes these alone.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FULL = {"CPU": ROOT / "benchmarks/cost.md", "GPU": ROOT / "benchmarks/cost_cuda.md"}
FULL["H100"] = FULL["GPU"]  # one table of that file was measured on another GPU
HALF, EAGER = "half padding", "float32, eager"
SIDES = ("sorted by hand", "masked", "packed", "flat")  #: columns of training steps


class Step(NamedTuple):
    """A training step: what a user calls it, and the line of a full table that measured it."""

    what: str
    device: str
    mode: str
    batch: str
    table: str
    line: str
    first: bool = False  #: whether the README has it, too


class Call(NamedTuple):
    """A call: what a user calls it, the line that measured it, and the column of ours."""

    what: str
    table: str
    line: str
    ours: str = "masked"


ENCODER = "`nn.TransformerEncoder`"
STEPS = (
    Step(f"{ENCODER}, 4 layers of 256", "CPU", EAGER, f"16 x 128, {HALF}", "Flat",
         "nn.TransformerEncoder, ordinary (4 x 256, 16 x 128)", first=True),
    Step("BERT, 4 layers of 256", "CPU", EAGER, f"16 x 128, {HALF}", "Flat", "BERT, ordinary (4 x 256, 16 x 128)"),
    Step("Llama, 4 layers of 256", "CPU", EAGER, f"16 x 128, {HALF}", "Flat", "Llama, ordinary (4 x 256, 16 x 128)"),
    Step("4 convolutions over time, width 128", "CPU", EAGER, f"32 x 256, {HALF}", "Packed rows", "stack, 50% padding"),
    Step("U-Net with group norm, pixels missing", "CPU", EAGER, "8 images of 64 x 64", "Everyday work",
         "U-Net with GroupNorm, clouds", first=True),
    Step("perceptron, width 64, values missing", "CPU", EAGER, "256", "Everyday work", "MLP b256 h64", first=True),
    Step(f"{ENCODER}, 12 layers of 768", "GPU", EAGER, f"32 x 512, {HALF}", "Packed rows", "BERT-base, 50% padding"),
    Step(f"{ENCODER}, 24 layers of 1024", "GPU", "bfloat16, eager", f"64 x 512, {HALF}", "Packed rows",
         "BERT-large, 50% padding", first=True),
    Step("BERT, 4 layers of 256", "GPU", EAGER, f"16 x 192, {HALF}", "Packed rows", "Bert, 50% padding"),
    Step("BERT, 12 layers of 768", "H100", "bfloat16, eager", f"16 x 512, {HALF}", "Training steps in bfloat16",
         "BERT-base, 16 x 512", first=True),
    Step("BERT, 6 layers of 768", "H100", "bfloat16, compiled", f"32 x 128, {HALF}", "Training steps in bfloat16",
         "BERT of 6 layers, 32 x 128, compiled, loss eager", first=True),
)  # fmt: skip
LARGE = "4096 x 4096"
CALLS = {
    "CPU": (
        Call("`x + y` of 4 x 4 entries", "Tiny tensors", "add, two masks"),
        Call(f"`x + y` of {LARGE}", "Elementwise ops", "add, random, two"),
        Call(f"`x.sum(-1)` of {LARGE}, random mask", "Reductions", "sum(-1)"),
        Call(f"`x.sum(-1)` of {LARGE}, padding", "Reductions", "sum(-1), a mask of rows"),
        Call(f"`x.softmax(-1)` of {LARGE}, random mask", "Softmax, normalization and losses", "softmax(-1)"),
        Call("`layer_norm` of 512 x 64, random mask, both ways", "Everyday work",
             "layer_norm of 512 x 64, random mask, both ways"),
        Call("`cross_entropy` of 4096 x 1000, labels missing", "Everyday work",
             "cross_entropy 4096 x 1000, masked labels"),
        Call("standardise a table of 100,000 x 50", "Everyday work", "standardise a table of 100,000 x 50"),
        Call("median of each column, 100,000 x 50", "Everyday work", "median per column, 100,000 x 50"),
        Call("from pandas, 100,000 x 20", "Everyday work", "from pandas, 100,000 x 20"),
    ),
    "GPU": (
        Call("`x + y` of 4 x 4 entries", "Tiny tensors", "add, two masks"),
        Call(f"`x + y` of {LARGE}", "Elementwise ops", "add, random, two"),
        Call(f"`x.sum(-1)` of {LARGE}, random mask", "Reductions", "sum(-1)"),
        Call(f"`x.sum(-1)` of {LARGE}, padding", "Reductions", "sum(-1), a mask of rows"),
        Call(f"`x.softmax(-1)` of {LARGE}, random mask", "Softmax, normalization and losses", "softmax(-1)"),
        Call("`layer_norm` of 32 x 256 x 256, random mask, both ways", "Softmax, normalization and losses",
             "layer_norm, forward and backward", "random"),
        Call("`batch_norm` of 32 x 256 x 256, random mask, both ways", "Softmax, normalization and losses",
             "batch_norm, forward and backward", "random"),
        Call(f"`cross_entropy` of {LARGE}, labels missing, both ways", "Softmax, normalization and losses",
             "cross_entropy, forward and backward"),
        Call("attention of 32 x 256, bfloat16, both ways", "Attention of a padded batch",
             "attention, bfloat16, forward and backward"),
        Call("LSTM over padding, a training step", "Training steps of whole models", "LSTM, padded"),
    ),
}  # fmt: skip
Lines = dict[tuple[str, str], dict[str, str]]


def lines(device: str) -> Lines:
    """The lines of a full table by section and title, each a dict of its cells."""
    found: Lines = {}
    for section in FULL[device].read_text().split("\n## ")[1:]:
        rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in section.splitlines() if row.startswith("|")]
        for cells in rows[2:]:
            found[section.partition("\n")[0], cells[0]] = dict(zip(rows[0], cells, strict=True))
    return found


def machine(device: str) -> str:
    """What a full table was measured on."""
    found = re.search(r"^Measured on: (.*)\.$", FULL[device].read_text(), re.MULTILINE)
    return found.group(1) if found else "an unknown machine"


def named(device: str) -> str:
    """What tables call a device: a GPU by its name, ``H200`` of ``NVIDIA H200, CUDA 13.0``."""
    return machine(device).partition(",")[0].removeprefix("NVIDIA ") if device == "GPU" else device


def steps(on: str = "") -> str:
    """The table of training steps: those of a ``CPU`` or of a ``GPU``, or those with which the README begins."""
    measured = {device: lines(device) for device in FULL}
    rows = ["| training step | device, dtype, mode | batch | by hand, ms | sorted | masked | packed | flat |"]
    rows.append("|---|---|---|---:|---:|---:|---:|---:|")
    for step in STEPS:
        if not (on == ("CPU" if step.device == "CPU" else "GPU") or (not on and step.first)):
            continue
        cells = measured[step.device][step.table, step.line]
        # Where the plain step has no mask at all, ours stands beside the one that has it by hand.
        hand = float(cells["by hand"]) if "by hand" in cells else 1.0
        ratios = {side: f"{float(cells[side]) / hand:.2f}" if cells.get(side) else "-" for side in SIDES}
        ratios["masked"] = cells.get("masked / by hand", ratios["masked"])
        said = (f"{named(step.device)}, {step.mode}", step.batch, f"{float(cells['plain, ms']) * hand:.3g}")
        rows.append(f"| {' | '.join((step.what, *map(_plainly, said), *ratios.values()))} |")
    return "\n".join(rows)


def calls(device: str) -> str:
    """The table of calls: the plain op without a mask, and by hand and ours as multiples of it."""
    measured = lines(device)
    rows = ["| call | plain op, ms | by hand | masked |", "|---|---:|---:|---:|"]
    for call in CALLS[device]:
        cells = measured[call.table, call.line]
        said = (call.what, cells["plain, ms"], cells.get("by hand", "-"), cells[call.ours])
        rows.append(f"| {' | '.join(map(_plainly, said))} |")
    return "\n".join(rows)


def _plainly(cell: str) -> str:
    """``2,420`` for ``2.42e+03``."""
    return f"{float(cell):,.0f}" if re.fullmatch(r"[\d.]+e\+\d+", cell) else cell


def filled(text: str) -> str:
    """A page with its tables made anew: what stands between ``<!-- steps -->`` and ``<!-- end -->``, and so on."""
    made = {"steps": steps(), "steps CPU": steps("CPU"), "steps GPU": steps("GPU")}
    for device in FULL:
        made[f"machine {device}"] = f"Measured on: {machine(device)}."
    for device in CALLS:
        made[f"calls {device}"] = calls(device)

    def table(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n{made[found[1]]}\n<!-- end -->"

    return re.sub(r"<!-- ([\w ]+) -->\n(?:(?!<!--).)*?\n<!-- end -->", table, text, flags=re.DOTALL)


PAGES = (ROOT / "README.md", ROOT / "docs/cost.md", ROOT / "docs/cost_cuda.md")


def main() -> None:
    for page in PAGES:
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
