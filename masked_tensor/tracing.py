"""Static facts about how a tensor is being computed; none of them looks at a value."""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def tracked(data: Tensor) -> bool:
    """Whether autograd records what is done with ``data``."""
    return data.requires_grad and torch.is_grad_enabled()


def transforming() -> bool:
    """Whether a torch.func transform or forward-mode AD is active: then only plain differentiable ops may be used."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def real(x: Tensor) -> bool:
    """Whether ``x`` is memory on the CPU that may be read as another dtype: no tracing, torch.func or other device."""
    plain = type(x) is Tensor or type(x) is torch.nn.Parameter
    return plain and x.device.type == "cpu" and not transforming()
