"""What is made from the code: the pages on what families mean, the list of ops, and a thumbnail."""

import inspect
import re
from pathlib import Path
from types import ModuleType

import figures
import matplotlib
import numpy as np
import numpy_ma
import reference
from sphinx_gallery.scrapers import figure_rst

from masked_tensor.engine import table
from masked_tensor.op import Op
from masked_tensor.rules import FAMILIES

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def write(folder: Path) -> None:
    """Writes the pages, their figures, and ``thumbnail.png``, into ``folder``."""
    folder.mkdir(exist_ok=True)
    for page in (semantics, ops, sparse_forms):
        (folder / f"{page.__name__}.md").write_text(page())
    for page, file in EVIDENCE.items():
        (folder / f"{page}.md").write_text(evidence(folder.parent.parent / file))
    reference.write(folder)
    (folder / "numpy_ma.md").write_text(numpy_ma.page())
    thumbnail(folder / "thumbnail.png")
    figures.write(folder)


EVIDENCE = {
    "measurements": "benchmarks/cost.md",
    "measurements_cuda": "benchmarks/cost_cuda.md",
    "scores": "tests/scores.md",
}
TUTORIALS = ["16", "01", "02", "08", "12", "07", "03", "05", "04", "10"]  # those that are not named follow, by name


class AsNeeded:
    """Sorts the gallery in the order in which people need the tutorials."""

    def __init__(self, folder: str) -> None:
        del folder

    def __call__(self, name: str) -> tuple[int, str]:
        number = name[:2]
        return TUTORIALS.index(number) if number in TUTORIALS else len(TUTORIALS), name


def chart(block: tuple, block_vars: dict, gallery_conf: dict) -> str:
    """Shows the chart that a tutorial draws with pygal, which sphinx-gallery does not know."""
    del block
    drawn = block_vars["example_globals"].get("chart")
    if drawn is None:
        return ""
    path = Path(next(block_vars["image_path_iterator"])).with_suffix(".svg")
    drawn.render_to_file(str(path))
    return figure_rst([str(path)], gallery_conf["src_dir"])


def thumbnail(path: Path) -> None:
    """For tutorials that end in a table: a tensor with masked entries."""
    values = np.ma.masked_equal([[3, 2, 5, 0], [0, 4, 0, 2], [5, 0, 3, 4]], 0)
    figure, axes = plt.subplots(figsize=(4, 2.8))
    axes.pcolormesh(values, cmap="Purples", vmin=0, vmax=7, edgecolor="white", linewidth=6)
    axes.set_axis_off()
    figure.savefig(path)
    plt.close(figure)


def evidence(file: Path) -> str:
    """A page that lies beside the benchmarks or tests, with the tables that its comments name."""
    return re.sub(r"<!-- (\S+\.md) -->", lambda found: (file.parent / found[1]).read_text(), file.read_text())


def semantics() -> str:
    """One section per family: the docstring of its file, and the docstrings of the rules it has."""
    parts = [
        "# What every op means",
        "What each op computes on masked tensors, family by family, from the docstrings of the rules. "
        "`v` is validity, and `n` is the number of valid entries of a slice.",
    ]
    for family in FAMILIES:
        if family.OPS:
            parts += [f"## {_title(family)}", inspect.cleandoc(family.__doc__ or "").replace("``", "`")]
            parts += [_rule(name, rule) for name, rule in _rules(family).items()]
    return "\n\n".join(parts) + "\n"


def _rules(family: ModuleType) -> dict[str, object]:
    """The family's own named rules with the ops that use them; lambdas and helpers are left out."""
    rules: dict[str, object] = {}
    for op in family.OPS:
        if op.rule.__doc__ and op.rule.__name__ != "<lambda>":
            rules.setdefault(op.rule.__name__, op.rule)
    return rules


def _rule(name: str, rule: object) -> str:
    text = inspect.cleandoc(rule.__doc__ or "").split("\n\n")[0]
    return f"- **{name}**: {' '.join(text.split()).replace('``', '`')}"


def ops() -> str:
    """Every operator that has an entry, by family and rule."""
    counted = len(table.ENTRIES)
    parts = [
        "# The op table",
        f"All operators with a rule: {len(_all())} entries for {counted} overloads, including in-place and `out=` "
        "variants. `python -m masked_tensor` prints the same list. An operator that is not listed either decomposes "
        "into listed ones, or raises `UnsupportedOpError`, which says what to write instead. "
        "[The score](scores.md#score-over-torchs-operator-database) counts how many of torch's operators pass. "
        "[What every op means](semantics.md) describes the rules. The [sparse rule](sparse_forms.md) of an op is in "
        "parentheses. Without one, sparse masked tensors raise `UnsupportedOpError`, which names `to_dense()`.",
    ]
    for family in FAMILIES:
        if family.OPS:
            parts += [f"## {_title(family)}", *_by_rule(family)]
    return "\n\n".join(parts) + "\n"


def _by_rule(family: ModuleType) -> list[str]:
    """A line for each rule of the family and its sparse rule, the largest first: the ops that follow it."""
    names: dict[tuple[str, str], list[str]] = {}
    for op in sorted(family.OPS, key=lambda op: op.name):
        rule = op.rule.__name__.lstrip("_")
        sparse = f" (sparse: {op.sparse.name})" if op.sparse else ""
        names.setdefault(("others" if rule == "<lambda>" else rule, sparse), []).append(f"`{op.name}`")
    ordered = sorted(names.items(), key=lambda item: -len(item[1]))
    return [f"- **{rule}**{sparse}: {', '.join(ops)}" for (rule, sparse), ops in ordered]


def sparse_forms() -> str:
    """Every operator that serves sparse masked tensors, by its sparse rule."""
    rules: dict[tuple[str, str], list[str]] = {}
    for op in sorted(_all(), key=lambda op: op.name):
        if op.sparse:
            rules.setdefault((op.sparse.name, op.sparse.says), []).append(f"`{op.name}`")
    parts = [
        "# What sparse masked tensors can do",
        f"{sum(map(len, rules.values()))} of {len(_all())} ops of the table have a *sparse rule*. All others, and "
        "calls with arguments that a sparse rule does not accept, raise `UnsupportedOpError`, which names "
        "`to_dense()`. Operators outside the table decompose into these. "
        "[Sparse tensors](../sparse.md) says which entries count.",
    ]
    for (name, says), ops in sorted(rules.items(), key=lambda item: -len(item[1])):
        parts += [f"## {name}", f"{says[0].upper()}{says[1:]}.", ", ".join(ops)]
    return "\n\n".join(parts) + "\n"


def _all() -> list[Op]:
    return [op for family in FAMILIES for op in family.OPS]


def _title(family: ModuleType) -> str:
    return family.__name__.rpartition(".")[2].replace("_", " ")
