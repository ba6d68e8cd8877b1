"""Gradients in code that is not ours: a user's ``torch.autograd.Function`` between masked tensors.

What such a Function is handed, and what it hands back, is put right at its node of the graph:

- A gradient that arrives is data with exact zeros, valid everywhere: a derivative may shift, scan or convolve it, and a
  0 takes nothing from what it is added to, where a masked entry would.
- While its backward runs, a masked entry of a tensor that it saved is a 0 in a sum and masks a product, which is the
  0 that its share of the gradient is (``settings.InGradient``).
- A gradient that it hands back gets the mask of the tensor that it is for; that of a plain tensor is plain.

The hooks are the node's, behind those of its tensors: a tensor's own hooks, ``retain_grad`` and ``torch.autograd.grad``
see what they always see, a gradient with the tensor's own mask.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from ... import layouts, masks
from ...callers import first_caller
from ...compat import current_node, has_forward_mode
from ...pair import Pair, Payload
from ...select import zero_masked
from ...settings import STACK, InGradient
from ..alias_records import history_of
from ..contexts import stack
from ..tensor import MaskedTensor, pair_of
from ..torch_keys import is_foreign_node, is_torchscript_node

_MET = "masked_tensor"  # in a node's metadata: its hooks are in place


def running_function(history: Any) -> tuple[str, MaskedTensor] | None:
    """The user's Function whose forward runs now and was given a tensor with this history; and that tensor.

    torch takes the histories of the arguments before the forward runs, and theirs that it marks as dirty after; it
    knows nothing of what a masked view shares with its base.
    """
    if has_forward_mode():
        return None
    frame, _ = first_caller()
    while frame is not None:
        for a in _arguments(frame):
            if type(a) is MaskedTensor and history_of(a) is history:
                for function in _functions(torch.autograd.Function):
                    if getattr(inspect.unwrap(function.forward), "__code__", None) is frame.f_code:
                        return function.__name__, a
        frame = frame.f_back
    return None


def _arguments(frame: Any) -> Iterator[Any]:
    """What the function of a frame was called with, as its names stand now."""
    code = frame.f_code
    named = code.co_argcount + code.co_kwonlyargcount
    for name in code.co_varnames[:named]:
        yield frame.f_locals.get(name)
    if code.co_flags & inspect.CO_VARARGS:
        yield from frame.f_locals.get(code.co_varnames[named], ())


def _functions(base: type[torch.autograd.Function]) -> Iterator[type[torch.autograd.Function]]:
    """Every ``autograd.Function`` that there is."""
    for function in base.__subclasses__():
        yield function
        yield from _functions(function)


def disconnected_error(function: str, what: str) -> RuntimeError:
    """What ``function`` did with a view has no place in the history that it shares."""
    return RuntimeError(
        f"the gradient of {function}, a torch.autograd.Function, would be wrong, because it {what}. Pass it the "
        "base, take the view again, or work on a clone"
    )


def check_returned(x: MaskedTensor) -> None:
    """Raises for a view whose base was written since, which a user's Function returns as it was given.

    torch makes a view of it then.  Where ``apply`` was stored before it was replaced (``before_functions``), torch has
    taken the old history.
    """
    history = history_of(x)
    base = None if history is None else history.base()
    if base is None or base.requires_grad:
        raise disconnected_error("what runs", "returns a view whose base was written since it was taken")


class GradientHooks:
    """The hooks of foreign nodes, made of the two Functions (``masked``: our nodes whose tensors are masked)."""

    def __init__(
        self, enter: Callable[[Any, bool], Any], leave: Callable[[Any], Any], fitted: Callable[..., Tensor], masked: Any
    ) -> None:
        self.enter, self.leave, self.fitted, self.masked = enter, leave, fitted, masked

    def meet(self, node: Any) -> None:
        """Registers the hooks on ``node`` and on the foreign nodes behind it, if they are not there yet."""
        if is_torchscript_node(node):
            raise RuntimeError(
                f"a masked tensor was computed by {node.name()}, whose derivative knows nothing of masks; TorchScript "
                "differentiates by formulas of its own: call the function without torch.jit, or compile it with "
                "torch.compile"
            )
        todo: list[Any] = [node]
        while todo:
            node = todo.pop()
            if is_foreign_node(node) and _MET not in node.metadata:
                node.metadata[_MET] = True
                node.register_prehook(self.arrives)
                node.register_hook(self.returns)
                todo += [behind for behind, _ in node.next_functions]

    def arrives(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Before a foreign derivative: its gradients with exact zeros, valid everywhere."""
        stack.resume(InGradient(current_node()))
        return tuple(self._everywhere(g) if type(g) is MaskedTensor else g for g in grads)

    def returns(self, grads: tuple[Any, ...], _: tuple[Any, ...]) -> tuple[Any, ...]:
        """After a foreign derivative: each gradient as the tensor that it is for."""
        node: Any = current_node()
        for use in STACK.get():
            if type(use) is InGradient and use.owner is node:
                stack.finish(use)
        edges = node.next_functions
        return tuple(self._return_gradient(g, behind) for g, (behind, _) in zip(grads, edges, strict=True))

    def _return_gradient(self, grad: Any, behind: Any) -> Any:
        if grad is None or behind is None:
            return grad
        python = isinstance(behind, BackwardCFunction)
        leaf = None if python else getattr(behind, "variable", None)
        if type(leaf) is MaskedTensor:
            mask = pair_of(leaf).mask
            return self.leave(Pair(self.fitted(grad, mask), mask, Payload.ZERO))
        if type(grad) is not MaskedTensor:
            return grad
        if python and (type(behind) in self.masked or is_foreign_node(behind)):
            return self._everywhere(grad)
        return zero_masked(self.enter(grad, torch.is_grad_enabled()))

    def _everywhere(self, grad: MaskedTensor) -> Any:
        pair = self.enter(grad, torch.is_grad_enabled())
        if layouts.is_sparse(pair.data):
            return grad
        return self.leave(Pair(zero_masked(pair), masks.full(pair.data.shape, pair.data.device), Payload.ZERO))
