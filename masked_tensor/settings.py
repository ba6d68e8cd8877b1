"""What the context managers of modes.py set and the rules read: the meanings in force, one immutable record.

Every thread has its own, as with ``torch.no_grad()``.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from .compat import current_node, traced

WindowRule = Literal["core", "any", "all"]
ProductRule = Literal["any", "all"]
PaddingRule = Literal["row", "tensor"]
MismatchRule = Literal["and", "raise"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A choice between honest meanings of an op, for each kind of op that has several."""

    convolution: WindowRule = "core"  #: how convolutions and their relatives judge a window that is partly masked
    renormalize: bool = False  #: whether a convolution divides by the valid fraction of its window
    product: ProductRule = "any"  #: how many of its terms a product needs
    padding: PaddingRule = "row"  #: where padding is attached: at each row's own end, or at the tensor's
    mismatch: MismatchRule = "and"  #: what elementwise ops do with masks that differ
    strict: bool = False  #: every convenience is an error
    scope: "Gradient | Trace | None" = None  #: the only place where they are in force

    @property
    def in_gradient(self) -> bool:
        """Whether code that is not ours computes gradients: a hole is a 0."""
        return type(self.scope) is Gradient


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """The backward pass of code that is not ours: its node, and what is in force for everything but its formula."""

    node: Any
    recording: bool  #: whether the formula itself is recorded (create_graph)
    outside: Meaning

    def here(self) -> bool:
        """Whether what runs now is the node's formula: a forward pass that it runs again is recorded, or another's."""
        return current_node() is self.node and torch.is_grad_enabled() is self.recording


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What is being compiled, and what is in force outside of it: a trace may end without leaving what it entered."""

    context: Any
    outside: Meaning

    def here(self) -> bool:
        """Whether it is still being compiled."""
        return traced() is self.context


DEFAULT = Meaning()
MEANING: ContextVar[Meaning] = ContextVar("masked_tensor.meaning", default=DEFAULT)


def current() -> Meaning:
    """The meanings in force."""
    meaning = MEANING.get()
    while meaning.scope is not None and not meaning.scope.here():
        meaning = meaning.scope.outside
    return meaning


def gradient_of(node: Any) -> Meaning:
    """The meanings while ``node`` computes gradients, in which a hole is a 0: it takes nothing from what it meets."""
    scope = Gradient(node, torch.is_grad_enabled(), current())
    return Meaning("any", False, "any", "tensor", "and", False, scope)


#: What takes the place of ``total / number`` in the mean of a loss: (total, number, any valid) to (mean, any valid).
Over = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
OVER: ContextVar[Over | None] = ContextVar("masked_tensor.over", default=None)
