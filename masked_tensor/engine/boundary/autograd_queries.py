"""What autograd itself asks of a tensor: a view whose base was written since takes its history from there first.

An op sees to that when it enters.  ``torch.autograd.grad``, ``backward``, hooks, attributes such as ``grad_fn`` and a
user's ``autograd.Function`` call no op.  They are met here, in Python, before torch takes the histories.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ...compat import in_transform
from ...patches.functions import before_functions
from ..alias_records import WHEN_SHARED
from ..tensor import MaskedTensor, add_members
from .enter_leave import renew_history
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
    """Whether autograd records what is done with the tensor, after what was last written to its base."""
    return x._tracks if x._alias.history is None or _try_connect(x) else True


def _require(x: MaskedTensor, required: bool) -> None:
    connect(x)
    x._tracks = required


def is_leaf(x: MaskedTensor) -> bool:
    """Whether no recorded op made the tensor, after what was last written to its base."""
    return x._node is None and (x._alias.history is None or (_try_connect(x) and x._node is None))


def _after_connecting(name: str) -> Any:
    found = getattr(Tensor, name)

    def asked(x: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        connect(x)
        return found(x, *args, **kwargs) if callable(found) else found.__get__(x)

    asked.__doc__ = f"``torch.Tensor.{name}``, after what was last written to the base of the tensor."
    return asked if callable(found) else property(asked)


WHEN_SHARED.append(lambda: before_functions(connect_all))
add_members(
    requires_grad=property(requires_grad, _require),
    is_leaf=property(is_leaf),
    **{name: _after_connecting(name) for name in ("grad_fn", "output_nr", "requires_grad_", "retain_grad")},
)
