"""Second derivatives by an intermediate result, which leave nothing out, or raise.

``exp``, ``softmax`` and others keep their result for their derivative.  What a rule's op keeps is the plain tensor
inside: a derivative that was itself recorded (``create_graph=True``) leads to that, past the masked tensor around it.
For a leaf nothing is missing.  The gradient at the masked tensor, which ``torch.autograd.grad``, hooks and
``retain_grad`` see, would lack that part.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakSet

import torch

from ... import errors
from ...compat import in_transform
from ..tensor import MaskedTensor, add_members
from ..torch_keys import sequence_number
from .autograd_queries import connect
from .enter_leave import MASKED

#: The nodes of tensors whose gradient was requested, as long as their graphs exist.
WATCHED: WeakSet[Any] = WeakSet()
#: Ops that hand on what they are given: behind them lies what the op of the rule kept.
_COPIES = frozenset(
    ("Alias", "AsStrided", "Clone", "Expand", "Permute", "ReshapeAlias", "Slice", "Squeeze", "T", "ToCopy", "Transpose",
     "UnsafeView", "Unsqueeze", "View", "Where", "Guard", "Select")
)  # fmt: skip


#: Ops that keep their result, by which their derivative does not change.
_FLAT = ("Relu",)


class State:
    """What has happened so far in this process; until then nobody looks."""

    created = False  #: a backward pass was recorded


def check(roots: Sequence[Any], inputs: Iterable[Any]) -> None:
    """Before a backward pass: raises RuntimeError where a gradient that is asked for would be incomplete."""
    if not in_transform():
        nodes = [x._node for x in inputs if type(x) is MaskedTensor]
        if WATCHED:
            nodes += [node for node in _reached(_nodes(roots)) if node in WATCHED]
        for node in nodes:
            if type(node) in MASKED and _is_passed_by(node, roots):
                raise errors.incomplete_second_derivative(_kept(node)[-1].name())


def watch(x: MaskedTensor) -> None:
    """Somebody asks for the gradient of ``x`` in later backward passes."""
    node: Any = x._node
    if type(node) in MASKED:
        WATCHED.add(node)


def _is_passed_by(leave: Any, roots: Sequence[Any]) -> bool:
    """Whether something recorded after ``leave`` leads to what the rule's op kept, and not through ``leave``."""
    kept, since = set(_kept(leave)), sequence_number(leave)
    for node in _reached(_nodes(roots), leave):
        if sequence_number(node) > since and type(node) not in MASKED and not kept.isdisjoint(_behind(node)):
            return True
    return False


def _kept(leave: Any) -> list[Any]:
    """The nodes of a rule whose results are what ``leave`` hands out, and would be kept for their derivatives."""
    found, todo = [], _behind(leave)
    while todo:
        node = todo.pop()
        op = node.name().partition("Backward")[0].lstrip("_")  # a Function of this package, or an op of torch
        if op not in _FLAT:
            found.append(node)
        if op in _COPIES:
            todo += _behind(node)
    return found


def _behind(node: Any) -> list[Any]:
    return [behind for behind, _ in node.next_functions if behind is not None]


def _nodes(roots: Sequence[Any]) -> list[Any]:
    return [getattr(root, "node", None) or getattr(root, "grad_fn", None) for root in roots]


def _reached(nodes: list[Any], without: Any = None) -> Iterator[Any]:
    """The nodes of the graph behind ``nodes``, these included, as far as they are reached without ``without``."""
    todo, seen = [node for node in nodes if node is not None and node is not without], set[Any]()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            yield node
            todo += [behind for behind in _behind(node) if behind is not without]


def _watching(name: str) -> Any:
    found = getattr(torch.Tensor, name)

    def asked(x: MaskedTensor, *args: Any) -> Any:
        connect(x)
        watch(x)
        return found(x, *args)

    asked.__doc__ = f"``torch.Tensor.{name}``, including earlier writes to the base of the tensor."
    return asked


add_members(**{name: _watching(name) for name in ("register_hook", "retain_grad")})
