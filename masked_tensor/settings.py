"""What the context managers of modes.py set and the rules read."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

WindowRule = Literal["core", "any", "all"]
MismatchRule = Literal["and", "raise"]


@dataclass(frozen=True, slots=True)
class Convolution:
    """How convolutions and their relatives judge a window that is partly masked."""

    rule: WindowRule = "core"
    renormalize: bool = False


CONVOLUTION: ContextVar[Convolution] = ContextVar("masked_tensor.convolution", default=Convolution())  # noqa: B039 (frozen)
MISMATCH: ContextVar[MismatchRule] = ContextVar("masked_tensor.mismatch", default="and")
