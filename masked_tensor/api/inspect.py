"""What an op means here: ``explain("softmax")`` and ``python -m masked_tensor --ops``."""

import inspect

from ..compat import schema
from ..engine import table
from ..engine.table import Entry
from ..rules import FAMILIES

_HOME = {op: family.__name__ for family in FAMILIES for op in family.ROWS}


def explain(op: str) -> str:
    """The law, the rule and the row of an operator, as text.

    ``op`` is an operator's name (``"add"``, ``"aten::add"``, ``"add.Tensor"``, ``"mylib::scale"``).

    Raises KeyError if no row is known under that name.

    Example::

        >>> print(explain("add.Tensor").splitlines()[0])
        aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    """
    wanted = op if "::" in op else f"aten::{op}"
    found = [e for e in table.ENTRIES.values() if wanted in (e.overload.name(), schema(e.overload).name)]
    if not found:
        raise KeyError(f"no row for {op!r}; composite operators follow from the rows of their parts")
    lines = [str(schema(e.overload)) for e in found]
    for row in {(e.op.rule, tuple(e.op.params.items())): e.op for e in found}.values():
        rule = row.rule
        lines += ["", *([f"law   {row.law}"] if row.law else []), f"rule  {rule.__module__}.{rule.__qualname__}"]
        lines += [f"      {line}".rstrip() for line in (inspect.getdoc(rule) or "").splitlines()]
        if row.params:
            lines.append("row   " + ", ".join(f"{k}={v!r}" for k, v in row.params.items()))
        lines.append(f"packed  {row.rows.name if row.rows else 'no form: spread first'}")
        lines.append(f"sparse  {row.sparse.name if row.sparse else 'no form: x.to_dense() first'}")
    return "\n".join(lines)


def families() -> dict[str, list[str]]:
    """The operators with a row, by the family their rule belongs to."""
    result: dict[str, list[str]] = {}
    for entry in table.ENTRIES.values():
        names = result.setdefault(_family(entry), [])
        name = schema(entry.overload).name.removeprefix("aten::")
        if entry.kind == "functional" and name not in names:
            names.append(name)
    return {family: sorted(names) for family, names in sorted(result.items())}


def _family(entry: Entry) -> str:
    return _HOME.get(entry.op, entry.overload.namespace).rpartition(".")[2]  # a user's own: the library's name
