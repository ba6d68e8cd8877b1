"""What an op means here: ``explain("softmax")`` and ``python -m masked_tensor softmax``."""

import difflib
import inspect
import sys
from typing import Any

from ...compat import schema
from ...engine import table
from ...engine.table import Entry
from ...kernels.watching import watched
from ...rules import FAMILIES
from . import op_lookup

_HOME = {op: family.__name__ for family in FAMILIES for op in family.OPS}


def explain(op: Any, *inputs: Any, **keywords: Any) -> str:
    """What an operator means for masked tensors, and which rule computes it, as text.

    For a function or module that calls several operators, they are listed, and the first three are explained. With
    inputs, the operator is called on them to find which kernel is used, and why another is not.

    Args:
        op (Any): A name (``"add"``, ``"F.relu"``, ``"x.sum"``, ``"@"``, ``"aten::add.Tensor"``, ``"mylib::scale"``), a
            function (``torch.einsum``), or a module or its class (``nn.Conv1d``).
        *inputs (Any): Arguments to call the function or module with.
        **keywords (Any): Keyword arguments to call it with.

    Returns:
        str: The schema, the meaning, the rule, and the packed and sparse rule of each operator.

    Raises:
        TypeError: Inputs are given, and ``op`` cannot be called on them.
        KeyError: The name is unknown. The error lists similar names.

    Example:
        >>> print(mt.explain("add.Tensor").splitlines()[0])
        aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
        >>> print(mt.explain(torch.nn.CrossEntropyLoss).splitlines()[0])
        CrossEntropyLoss calls cross_entropy_loss
        >>> text = mt.explain(torch.sum, mt.masked_tensor([1.0, None]), 0)
        >>> print(text.splitlines()[-1].partition(": of fewer")[0])
        kernel  sum, on cpu: does not serve
    """
    if inputs or keywords:
        return "\n".join([explain(op), "", *_kernels_asked(op, *inputs, **keywords)])
    if isinstance(op, str):
        found = _describe(op)
        if found:
            return found
    called = op_lookup.operators_of(op)
    shown = op if isinstance(op, str) else getattr(op, "__name__", type(op).__name__)
    if called:
        calls = f"{shown} calls {', '.join(called)}\n\n" if called != [shown] else ""
        return calls + "\n\n".join(_describe(name) for name in called[:MOST])
    composed = op_lookup.composite_of(op)
    if composed:
        return (
            f"aten::{composed} has no rule of its own: torch composes it of other operators, each with its own "
            "meaning. One of them without a rule raises UnsupportedOpError, which names it and the ways out."
        )
    if op_lookup.module_of(op):
        return f"{shown} computes nothing itself: explain the modules that it is made of"
    name = str(shown).rpartition(".")[2]
    if name in sys.modules[__name__.partition(".")[0]].__all__:
        raise KeyError(f"{name!r} of this package is not an operator: help(masked_tensor.{name}) describes it")
    close = difflib.get_close_matches(str(shown), op_lookup.known_operators(), 3)
    hint = f"; did you mean {', '.join(close)}?" if close else "; python -m masked_tensor prints all"
    raise KeyError(f"no operator is known as {shown!r}{hint}")


def _kernels_asked(op: Any, *inputs: Any, **keywords: Any) -> list[str]:
    """Which kernels are asked while the operator runs on these inputs, and what they answer."""
    function = op_lookup.function_of(op)
    if function is None:
        raise TypeError(f"{op!r} cannot be called on inputs: give the function or the module itself")
    with watched() as lines:
        function(*inputs, **keywords)
    return [f"kernel  {line}" for line in lines or ["none is asked: the rule is a formula"]]


MOST = 3  #: operators that are explained of those that a module calls


def _describe(name: str) -> str:
    """What the table says of one operator, by its name in the dispatcher; empty if it has none."""
    wanted = name if "::" in name else f"aten::{name}"
    found = [e for e in table.ENTRIES.values() if wanted in (e.overload.name(), schema(e.overload).name)]
    lines = [str(schema(e.overload)) for e in found]
    for op in {(e.op.rule, tuple(e.op.params.items())): e.op for e in found}.values():
        rule = op.rule
        lines += [
            "",
            *([f"means   {op.summary}"] if op.summary else []),
            "rule    " + ".".join(filter(None, (rule.__module__, rule.__qualname__))),  # code that is run has no module
        ]
        lines += [f"        {line}".rstrip() for line in (inspect.getdoc(rule) or "").splitlines()]
        if op.params:
            lines.append("with    " + ", ".join(f"{k}={_name(v)}" for k, v in op.params.items()))
        lines.append(
            f"packed  {', or '.join(f.name for f in op.packed_rules) or 'no packed rule: converted to padded first'}"
        )
        lines.append(f"sparse  {op.sparse.name if op.sparse else 'no sparse rule: use x.to_dense() first'}")
    return "\n".join(lines)


def _name(value: Any) -> str:
    return str(value.__name__) if inspect.isroutine(value) else repr(value)


def families() -> dict[str, list[str]]:
    """The operators with an entry, by the family their rule belongs to."""
    result: dict[str, list[str]] = {}
    for entry in table.ENTRIES.values():
        group = result.setdefault(_family(entry), [])
        name = schema(entry.overload).name.removeprefix("aten::")
        if entry.kind == "functional" and name not in group:
            group.append(name)
    return {family: sorted(group) for family, group in sorted(result.items())}


def _family(entry: Entry) -> str:
    return _HOME.get(entry.op, entry.overload.namespace).rpartition(".")[2]  # a user's own: the library's name
