"""What autograd itself asks of a tensor: a view whose base was written since takes its history from there first.

An op sees to that when it enters.  ``torch.autograd.grad``, ``backward``, hooks, attributes such as ``grad_fn`` and a
user's ``autograd.Function`` call no op.  They are met here, in Python, before torch takes the histories.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ...compat import has_real_memory, in_transform, mode_is_active
from ...pair import Pair, Payload
from ...patches.first_use import when_first_made
from ...patches.functions import before_functions, make_first_gradients
from ..alias_records import WHEN_SHARED
from ..tensor import MaskedTensor, add_members, pair_of, wrap
from .enter_leave import renew_history, watch_grad_fn
from .user_functions import running_function


def connect(x: MaskedTensor) -> None:
    """Gives ``x`` the history of its base, if the base was written since.  Raises RuntimeError where it cannot."""
    if not x._alias.is_behind or torch.is_inference_mode_enabled() or in_transform():
        return
    if torch.is_grad_enabled():
        renew_history(x)
    elif running_function(x._alias.history) is None:  # torch has taken the histories of a Function's arguments
        with torch.enable_grad():
            renew_history(x)


def connect_all(values: Iterable[Any]) -> None:
    """The same for the masked tensors among ``values``."""
    for value in values:
        if type(value) is MaskedTensor and value._alias.history is not None:
            connect(value)


def _try_connect(x: MaskedTensor) -> bool:
    try:
        connect(x)
    except RuntimeError:  # who goes on with it is told
        return False
    return True


def requires_grad(x: MaskedTensor) -> bool:
    """Whether autograd records operations on the tensor, including earlier writes to its base."""
    return x._tracks if x._alias.history is None or _try_connect(x) else True


def _require(x: MaskedTensor, required: bool) -> None:
    connect(x)
    x._tracks = required


def is_leaf(x: MaskedTensor) -> bool:
    """Whether the tensor is a leaf of the autograd graph, including earlier writes to its base."""
    return x._node is None and (x._alias.history is None or (_try_connect(x) and x._node is None))


def _after_connecting(name: str) -> Any:
    found = getattr(Tensor, name)

    def asked(x: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        connect(x)
        return found(x, *args, **kwargs) if callable(found) else found.__get__(x)

    asked.__doc__ = f"``torch.Tensor.{name}``, including earlier writes to the base of the tensor."
    return asked if callable(found) else property(asked)


def first_gradient(output: Any, gradient: Any) -> Tensor | None:
    """What a backward pass starts with at ``output``: ``gradient``, or the one of a loss.  None: torch shall say.

    What torch would refuse, or make by symbolic shapes, is left to it.
    """
    if mode_is_active() or in_transform() or not (_is_plain_inside(output) and output.requires_grad):
        return None
    if gradient is not None:
        alike = _is_plain_inside(gradient) and output.dtype.is_complex == gradient.dtype.is_complex
        return gradient if alike and output.shape == gradient.shape else None
    if not output.dtype.is_floating_point:
        return None
    if type(output) is not MaskedTensor:
        return torch.ones_like(output) if output.numel() == 1 else None
    pair = pair_of(output)
    if pair.data.numel() != 1:
        return None
    watch_grad_fn(output)
    return wrap(Pair(pair.mask.to(pair.data.dtype), pair.mask, Payload.ZERO))  # 1 where valid, else 0


def _is_plain_inside(x: Any) -> bool:
    """Whether ``x`` is a strided tensor of real memory, or a masked one around two."""
    if type(x) is MaskedTensor:
        return x._packed is None and _is_plain_inside(x._pair.data) and has_real_memory(x._pair.mask)
    return has_real_memory(x) and x.layout is torch.strided


WHEN_SHARED.append(lambda: before_functions(connect_all))
when_first_made(lambda: make_first_gradients(MaskedTensor, first_gradient))
add_members(
    requires_grad=property(requires_grad, _require),
    is_leaf=property(is_leaf),
    **{name: _after_connecting(name) for name in ("grad_fn", "output_nr", "requires_grad_")},
)
