"""The pages that are made from the table: what each family means, and the list of ops."""

import inspect
from pathlib import Path
from types import ModuleType

from masked_tensor import table
from masked_tensor.op import Op
from masked_tensor.rules import FAMILIES


def write(folder: Path) -> None:
    """Writes ``semantics.md`` and ``ops.md`` into ``folder``."""
    folder.mkdir(exist_ok=True)
    (folder / "semantics.md").write_text(semantics())
    (folder / "ops.md").write_text(ops())


def semantics() -> str:
    """One section per family: the docstring of its file, and the docstrings of the rules it has."""
    parts = [
        "# What every op means",
        "This page is the docstrings of the rules: what is written here is what the code beside it does. "
        "`v` is validity, `n` the number of valid entries of a slice.",
    ]
    for family in FAMILIES:
        if family.ROWS:
            parts += [f"## {_title(family)}", inspect.cleandoc(family.__doc__ or "").replace("``", "`")]
            parts += [_rule(name, rule) for name, rule in _rules(family).items()]
    return "\n\n".join(parts) + "\n"


def _rules(family: ModuleType) -> dict[str, object]:
    """The family's own named rules with the ops that use them; lambdas and helpers are left out."""
    rules: dict[str, object] = {}
    for op in family.ROWS:
        if op.rule.__doc__ and op.rule.__name__ != "<lambda>":
            rules.setdefault(op.rule.__name__, op.rule)
    return rules


def _rule(name: str, rule: object) -> str:
    text = inspect.cleandoc(rule.__doc__ or "").split("\n\n")[0]
    return f"- **{name}**: {' '.join(text.split()).replace('``', '`')}"


def ops() -> str:
    """One line per operator: its family and rule."""
    counted = len(table.ENTRIES)
    parts = [
        "# The op table",
        f"{len(_all())} rows spell out {counted} overloads (in-place and `out=` twins included). "
        "`python -m masked_tensor` prints the same list. An operator that is not here either decomposes into ones that "
        "are, or raises `UnsupportedOpError`, which names the ways out.",
    ]
    for family in FAMILIES:
        if family.ROWS:
            names = ", ".join(f"`{op.name}`" for op in sorted(family.ROWS, key=lambda op: op.name))
            parts += [f"## {_title(family)}", names]
    return "\n\n".join(parts) + "\n"


def _all() -> list[Op]:
    return [op for family in FAMILIES for op in family.ROWS]


def _title(family: ModuleType) -> str:
    return family.__name__.rpartition(".")[2].replace("_", " ")
