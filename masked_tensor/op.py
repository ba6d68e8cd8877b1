"""One op of the table: everything the package knows about an aten op.

Which rule it follows, with which parameters, and how that rule serves data that is stored in another way.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Rule = Callable[..., Any]


Arguments = tuple[str | int, ...]  # by their names in the operator's schema, or by their places


@dataclass(frozen=True, slots=True, eq=False)
class Takes:
    """What a rule for packed (or sparse) tensors may be given, argument by argument; it is not asked for other calls.

    An argument that is not named must be plain; if none is named ``stored`` or ``whole``, the first tensor is stored.
    All of this holds for each tensor of an argument that is a list.

    The engine compares a call with it, so that a rule need not look what its arguments are.
    """

    stored: Arguments = ()  #: must be packed (or sparse); of what it stores, entries may be masked
    whole: Arguments = ()  #: must be packed; the rule is given no masked entry of it (see ``packing/missing.py``)
    masked: Arguments = ()  #: may be masked, but must be strided
    free: Arguments = ()  #: may be anything
    within: str | int | None = None  #: what is valid in the (first) result lies in the stored steps of this argument,
    mixes: bool = False  #: but if the last dimension is mixed, only where that is one of features


@dataclass(frozen=True, slots=True, eq=False)
class StorageRule:
    """Takes the rule for strided pairs (for packed tensors also the plain op), and returns the one that serves others.

    ``name`` is what it is called, ``says`` what it does, for the documentation.  ``takes`` declares its arguments
    (None: any tensor may be anything); it raises :class:`NoRule` for what else it does not serve.
    """

    name: str
    make: Callable[..., Rule]
    takes: Takes | None = Takes()
    says: str = ""


class NoRule(Exception):
    """The exception that a sparse or packed rule raises for a call that it does not support; its text is the reason.

    Example:
        >>> from masked_tensor.extend import NoRule, packed_rule
        >>> @packed_rule
        ... def second_of_batch_first(x):
        ...     raise NoRule("only tensors that are batch first")
    """


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An op of the table: ``Op("amax", reduce, {"identity": ...})``.

    ``name`` is an operator name without its namespace (``"add"``: every overload; ``"div.Tensor_mode"``: that one
    only), or with one (``"mylib::scale"``).  The in-place variant (``add_``) and the ``out=`` variants are derived.

    With ``binding`` a generic rule gets torch's own Python function of that name, if there is one, in place of the
    overload: it takes the same arguments and parses them faster.

    ``rule`` is called with the operator's arguments in Python's own convention, each masked argument as a ``Pair``,
    followed by ``params`` as keywords.  With ``generic=True`` the overload itself comes first, so that one rule can
    serve many operators.

    ``sparse`` is the rule for pairs with sparse data; without one they are refused.
    ``packed`` is the rule for packed tensors, or several, each for what those before it do not serve; without
    one they are unpacked.
    """

    name: str
    rule: Rule
    params: Mapping[str, Any] = field(default_factory=dict)
    generic: bool = False
    binding: bool = False
    sparse: StorageRule | None = None
    packed: StorageRule | tuple[StorageRule, ...] = ()
    batched: bool = False  #: a compiled ``vmap`` runs it once per entry: taken apart, it would lose its meaning
    each: bool = False  #: ``vmap`` runs it once per entry: its rule reads values, or the memory of its argument
    detaches: bool = False  #: the result shares memory with the argument, but no history
    copies: bool = False  #: the result is the argument in other memory: its mask is as hard as the argument's
    arrives: bool = False  #: what it is given first is written when it is waited for, though the schema does not say so
    same: bool = False  #: in place, entries that lie in one place of memory may be written if they become one value
    replaces: bool = False  #: in place, nothing is kept of what was there: a packed target takes the result's tokens
    conditions: Rule | None = None  #: of a write at keys: the keys for a plain target, which holds no mask
    optional: bool = False  #: not every version of torch that is supported has it
    #: Given what the rule is, of a tracked tensor without its history, and without keywords: the result, and what makes
    #: of its gradient that of the data, which autograd need not find out; or None, for the rule.
    closed: Rule | None = None
    shares: bool = False  #: the result shares memory with the argument though the schema does not say so

    @property
    def packed_rules(self) -> tuple[StorageRule, ...]:
        """The rules for packed tensors, in the order in which they are asked."""
        return self.packed if isinstance(self.packed, tuple) else (self.packed,)

    @property
    def summary(self) -> str:
        """The sentence that states what the op's family means: the first paragraph of the rule's module."""
        module = sys.modules.get(self.rule.__module__)  # one that was run and not imported is none
        return " ".join(((module and module.__doc__) or "").strip().split("\n\n")[0].split())


def ops(names: str, rule: Rule, **said: Any) -> list[Op]:
    """One op for each of the names, which all say the same."""
    return [Op(name, rule, **said) for name in names.split()]
