"""The reference: a page that lists every public name by section, and a page for each name."""

import inspect
import sys
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import masked_tensor
from masked_tensor import extend, testing

SECTIONS = {  # the modules whose public names stand there; the functional forms have a section each
    "Making masked tensors": ["create", "batch", "align", "collate", "files"],
    "The class": ["masked_tensor"],
    "Leaving": ["convert", "select_valid", "table", "unbatch"],
    "Packed batches": ["packing", "batching"],
    "Flat tokens": ["module", "tokens"],
    "Batches joined, and documents": ["joins", "documents"],
    "Means and statistics that add up": ["mean_over", "running", "total", "last_valid"],
    "Functional forms": [],
    "Choosing a meaning": ["modes", "factories"],
    "Asking": ["explain"],
    "Errors": ["errors"],
}
HEAD = """Every name below is imported from `masked_tensor` itself. Examples assume `import torch` and
`import masked_tensor as mt`. Methods of MaskedTensor that are also functions name their tensor `x`."""
ENGINE = "begin, change, end, to_numpy"  # public methods that the package and matplotlib call
RESULTS = {  # what a function returns and nobody makes by name, on its page
    "rolling": "functional.series.rolling.Rolling",
    "from_flat": "api.flat.tokens.FlatTokens",
}


class Section(NamedTuple):
    """A table of the reference: its title with the signs of its heading, what stands above it, and its names."""

    title: str
    text: str
    names: list[str]


def write(folder: Path) -> None:
    """Writes ``api.md``, the list, and ``api/NAME.md``, a page for each name, into ``folder``."""
    sections = _sections()
    (folder / "api.md").write_text(_list(sections))
    pages = folder / "api"
    pages.mkdir(exist_ok=True)
    for path in pages.glob("*.md"):
        path.unlink()  # of names that are no more
    for section in sections:
        for name in section.names:
            (pages / f"{name}.md").write_text(_page(name))


def _sections() -> list[Section]:
    homes: dict[str, list[str]] = {}
    for name in masked_tensor.__all__:
        home = getattr(masked_tensor, name).__module__
        short = home.removeprefix("masked_tensor.functional.") if ".functional." in home else home.rpartition(".")[2]
        homes.setdefault(short, []).append(name)
    placed = [module for modules in SECTIONS.values() for module in modules]
    sections = []
    for title, modules in SECTIONS.items():
        sections += [Section(f"## {title}", "", [name for module in modules for name in homes[module]])]
        for module in [] if modules else sorted(homes.keys() - placed):
            text = inspect.getdoc(sys.modules[f"masked_tensor.functional.{module}"]) or ""
            sections += [
                Section(f"### {module.replace('.', ': ').replace('_', ' ')}", text.split("\n\n")[0], homes[module])
            ]
    tools = [f"testing.{name}" for name in testing.__all__ if inspect.isfunction(getattr(testing, name))]
    parts = {name: getattr(extend, name).__all__ for name in extend.__all__ if inspect.ismodule(getattr(extend, name))}
    kit = [name for name in extend.__all__ if name not in parts]
    kit += [f"{part}.{name}" for part, names in parts.items() for name in names]
    return [
        *sections,
        Section("## Pictures", "Needs matplotlib.", ["plot.missing", "plot.distributions"]),
        Section(
            "## Testing", f"{(inspect.getdoc(testing) or '').splitlines()[0]} From `masked_tensor.testing`.", tools
        ),
        Section(
            "## Writing rules",
            "From `masked_tensor.extend`; see [Writing rules](../extending.md).",
            [f"extend.{name}" for name in kit],
        ),
    ]


def _list(sections: list[Section]) -> str:
    """The page of all names: a table for each section; the side of the page lists no names, they are too many."""
    parts = ["# Reference", HEAD]
    for section in sections:
        parts += [section.title, section.text, _directives(_table(section.names)) if section.names else ""]
    pages = "\n".join(f"api/{name}" for section in sections for name in section.names)
    return "\n\n".join([*filter(None, parts), f"```{{toctree}}\n:hidden:\n\n{pages}\n```"]) + "\n"


def _table(names: list[str]) -> list[str]:
    return [".. currentmodule:: masked_tensor", "", ".. autosummary::", "   :nosignatures:", "", *_indented(names)]


def _indented(names: list[str]) -> list[str]:
    return [f"   {name}" for name in names]


def _page(name: str) -> str:
    lines = _described(name)
    if name in RESULTS:
        lines += ["", f".. autoclass:: masked_tensor.{RESULTS[name]}", "   :members:"]
    return f"# {name}\n\n{_directives(lines)}\n"


def _described(name: str) -> list[str]:
    if not inspect.isclass(attrgetter(name)(masked_tensor)):
        return [f".. autofunction:: masked_tensor.{name}"]
    members = " pair" if name == "extend.Packed" else ""  # what rules outside of the package read
    return [f".. autoclass:: masked_tensor.{name}", f"   :members:{members}", f"   :exclude-members: {ENGINE}"]


def _directives(lines: list[str]) -> str:
    return "```{eval-rst}\n" + "\n".join(lines) + "\n```"
