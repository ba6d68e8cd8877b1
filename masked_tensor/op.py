"""One row of the table: which rule an aten op follows, and with which parameters."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """A row: ``Op("amax", reduce, {"identity": ...})``.

    ``name`` is an operator name without its namespace (``"add"``: every overload; ``"div.Tensor_mode"``: that one
    only), or with one (``"mylib::scale"``).  The in-place twin (``add_``) and the ``out=`` twins are derived.

    With ``binding`` a generic rule gets torch's own Python function of that name, if there is one, in place of the
    overload: it takes the same arguments and parses them faster.

    ``rule`` is called with the operator's arguments in Python's own convention, each masked argument as a ``Pair``,
    followed by ``params`` as keywords.  With ``generic=True`` the overload itself comes first, so that one rule can
    serve many operators.
    """

    name: str
    rule: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    generic: bool = False
    binding: bool = False

    @property
    def law(self) -> str:
        """The sentence that states what the row's family means: the first paragraph of the rule's module."""
        module = sys.modules[self.rule.__module__]
        return " ".join((module.__doc__ or "").strip().split("\n\n")[0].split())
