"""What is made from the code: the pages on what families mean, the list of ops and the reference, and a thumbnail."""

import inspect
import sys
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import matplotlib
import numpy as np
import numpy_ma
from sphinx_gallery.scrapers import figure_rst

import masked_tensor
from masked_tensor import extend, testing
from masked_tensor.engine import table
from masked_tensor.op import Op
from masked_tensor.rules import FAMILIES

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def write(folder: Path) -> None:
    """Writes the pages, and ``thumbnail.png``, into ``folder``."""
    folder.mkdir(exist_ok=True)
    for page in (semantics, ops, sparse_forms, api):
        (folder / f"{page.__name__}.md").write_text(page())
    (folder / "numpy_ma.md").write_text(numpy_ma.page())
    thumbnail(folder / "thumbnail.png")


TUTORIALS = ["01", "02", "08", "12", "07", "03", "05", "04", "10"]  # those that are not named follow, by name


class AsNeeded:
    """Sorts the gallery: the order in which people need the tutorials is not that in which they were written."""

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
    """For tutorials that end in a table: a tensor with holes."""
    values = np.ma.masked_equal([[3, 2, 5, 0], [0, 4, 0, 2], [5, 0, 3, 4]], 0)
    figure, axes = plt.subplots(figsize=(4, 2.8))
    axes.pcolormesh(values, cmap="Purples", vmin=0, vmax=7, edgecolor="white", linewidth=6)
    axes.set_axis_off()
    figure.savefig(path)
    plt.close(figure)


def semantics() -> str:
    """One section per family: the docstring of its file, and the docstrings of the rules it has."""
    parts = [
        "# What every op means",
        "This page is the docstrings of the rules: what is written here is what the code beside it does. "
        "`v` is validity, `n` the number of valid entries of a slice.",
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
    """Every operator that has a row, by family and rule."""
    counted = len(table.ENTRIES)
    parts = [
        "# The op table",
        f"{len(_all())} rows spell out {counted} overloads (in-place and `out=` twins included). "
        "`python -m masked_tensor` prints the same list. An operator that is not here either decomposes into ones that "
        "are, or raises `UnsupportedOpError`, which names the ways out. "
        "How many of torch's operator database pass: [the score](../limits.md#score-over-torchs-operator-database). "
        "What the rules do: [semantics](semantics.md). In parentheses: how the row serves sparse masked tensors, "
        "[lift by lift](sparse_forms.md); one that says nothing raises `UnsupportedOpError`, which names `to_dense()`.",
    ]
    for family in FAMILIES:
        if family.OPS:
            parts += [f"## {_title(family)}", *_by_rule(family)]
    return "\n\n".join(parts) + "\n"


def _by_rule(family: ModuleType) -> list[str]:
    """A line for each rule of the family and lift, the largest first: the ops that follow it."""
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
        f"{sum(map(len, rules.values()))} of {len(_all())} ops of the table have a *sparse rule*. The others, and "
        "calls with arguments that a sparse rule does not take, raise `UnsupportedOpError`, which names `to_dense()`. "
        "Operators outside the table are made of these. What the functions read: [sparse](../sparse.md).",
    ]
    for (name, says), ops in sorted(rules.items(), key=lambda item: -len(item[1])):
        parts += [f"## {name}", f"{says[0].upper()}{says[1:]}.", ", ".join(ops)]
    return "\n\n".join(parts) + "\n"


def _all() -> list[Op]:
    return [op for family in FAMILIES for op in family.OPS]


def _title(family: ModuleType) -> str:
    return family.__name__.rpartition(".")[2].replace("_", " ")


SECTIONS = {  # of the reference: the modules whose public names stand there; the functional forms have one each
    "Making masked tensors": ["create", "batch", "align", "collate", "files"],
    "The class": ["masked_tensor"],
    "Leaving": ["convert", "select_valid", "unbatch"],
    "Packed rows": ["packing", "batching"],
    "Means and statistics that add up": ["mean_over", "statistics"],
    "Functional forms": [],
    "Choosing a meaning": ["modes", "factories"],
    "Choosing who computes": ["kernels"],
    "Asking": ["inspect"],
    "Errors": ["errors"],
}


HEAD = """Every name below is imported from `masked_tensor` itself. Examples assume `import torch` and
`import masked_tensor as mt`. The methods of a MaskedTensor that are functions, too, name their tensor `x`."""


def api() -> str:
    """The reference: every public name, and the tools for tests."""
    homes: dict[str, list[str]] = {}
    for name in masked_tensor.__all__:
        homes.setdefault(getattr(masked_tensor, name).__module__.rpartition(".")[2], []).append(name)
    placed = [module for modules in SECTIONS.values() for module in modules]
    parts = ["# Reference", HEAD]
    for title, modules in SECTIONS.items():
        parts += [f"## {title}"]
        parts += [_described([name for module in modules for name in homes[module]])] if modules else []
        for module in [] if modules else sorted(homes.keys() - placed):
            home = sys.modules[f"masked_tensor.functional.{module}"]
            parts += [f"### {module}", (inspect.getdoc(home) or "").split("\n\n")[0], _described(homes[module])]
            parts += [ROLLING] if module == "rolling" else []
    tools = [f"testing.{name}" for name in testing.__all__ if inspect.isfunction(getattr(testing, name))]
    parts += ["## Pictures", "Needs matplotlib.", _described(["plot.missing"])]
    parts += ["## Testing", (inspect.getdoc(testing) or "").split("\n\n")[0] + " From `masked_tensor.testing`."]
    parts += [
        _described(tools),
        "## Writing rules",
        "From `masked_tensor.extend`; see [Writing rules](../extending.md).",
    ]
    kit = [name for name in extend.__all__ if name != "masks"] + [f"masks.{name}" for name in extend.masks.__all__]
    return "\n\n".join([*parts, _described([f"extend.{name}" for name in kit])]) + "\n"


ROLLING = """```{eval-rst}
.. autoclass:: masked_tensor.functional.rolling.Rolling
   :members:
```"""
ENGINE = "begin, change, end, to_numpy"  # public methods that the package and matplotlib call


def _described(names: list[str]) -> str:
    """A table of the names, a line each, and what Sphinx reads of their docstrings."""
    lines = [
        ".. currentmodule:: masked_tensor",
        "",
        ".. autosummary::",
        "   :nosignatures:",
        "",
        *(f"   {name}" for name in names),
        "",
    ]
    for name in names:
        if name != "plot.missing" and inspect.isclass(attrgetter(name)(masked_tensor)):
            members = " pair" if name == "extend.Packed" else ""  # what rules outside of the package read
            lines += [f".. autoclass:: masked_tensor.{name}", f"   :members:{members}"]
            lines += [f"   :exclude-members: {ENGINE}", ""]
        else:
            lines += [f".. autofunction:: masked_tensor.{name}", ""]
    return "```{eval-rst}\n" + "\n".join(lines) + "```"
