"""Static facts about how a tensor is being computed; none of them looks at a value."""

import torch
from torch import Tensor
from torch._C._autograd import _saved_tensors_hooks_get_disabled_error_message as _refusal_of_hooks
from torch._C._autograd import _saved_tensors_hooks_is_enabled as _hooks_allowed  # type: ignore[attr-defined]
from torch._C._functorch import TransformType
from torch._functorch import eager_transforms
from torch.autograd import forward_ad


def tracked(data: Tensor) -> bool:
    """Whether autograd records what is done with ``data``."""
    return data.requires_grad and torch.is_grad_enabled()


def transforming() -> bool:
    """Whether a torch.func transform or forward-mode AD is active: then only plain differentiable ops may be used."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def bypassed() -> bool:
    """Whether ``torch.func.grad``, ``vjp`` or ``jvp`` runs an op of its own on a masked tensor that it has wrapped.

    While torch calls what lies below a transform, it takes the transform off the stack of interpreters, so that such a
    call looks like any other.  What stays is that ``grad`` and ``vjp`` forbid saved-tensor hooks, by a message that
    names them, and that ``jvp`` counts its nesting.  A call from the user's own function finds the transform in place.
    """
    if _hooks_allowed() and forward_ad._current_level < 0:
        return False
    reverse = (_refusal_of_hooks() or "").startswith("torch.func")
    running = {t.key() for t in torch._C._functorch.get_interpreter_stack() or ()}
    forward = eager_transforms.JVP_NESTING > 0
    return (reverse and TransformType.Grad not in running) or (forward and TransformType.Jvp not in running)


def real(x: Tensor) -> bool:
    """Whether ``x`` is memory on the CPU that may be read as another dtype: no tracing, torch.func or other device."""
    plain = type(x) is Tensor or type(x) is torch.nn.Parameter
    if not plain or x.device.type != "cpu" or transforming():
        return False
    return not torch._C._functorch.is_legacy_batchedtensor(x)  # what ``is_grads_batched`` makes
