"""What the context managers of modes.py set and the rules read."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

WindowRule = Literal["core", "any", "all"]
MismatchRule = Literal["and", "raise"]


@dataclass(frozen=True, slots=True)
class Convolution:
    """How convolutions and their relatives judge a window that is partly masked."""

    rule: WindowRule = "core"
    renormalize: bool = False


CONVOLUTION: ContextVar[Convolution] = ContextVar("masked_tensor.convolution", default=Convolution())  # noqa: B039 (frozen)
MISMATCH: ContextVar[MismatchRule] = ContextVar("masked_tensor.mismatch", default="and")

#: What takes the place of ``total / number`` in the mean of a loss: (total, number, any valid) to (mean, any valid).
Over = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
OVER: ContextVar[Over | None] = ContextVar("masked_tensor.over", default=None)
