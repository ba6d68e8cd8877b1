"""What a line of ``everyday.py`` says of itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .timing import Candidates

FINITE = "on finite data"  #: the candidate that is right only if no NaN and no infinity lies under the mask


@dataclass(frozen=True)
class Case:
    """A piece of work, at one size or several, and its goal for ours / by hand."""

    title: str
    goal: str
    make: Callable[[int, torch.dtype], Candidates]  #: plain, by hand and masked, maybe others
    sizes: tuple[int, ...] = (0,)  #: elements; with one only it is part of the title
    half: bool = True  #: in bfloat16, too
    tolerance: float = 2e-2  #: what by hand and ours may differ by; bfloat16 is rounded to 1e-2
    heavy: bool = False  #: not measured to see whether it runs at all


def random_mask(*shape: int, share: float = 0.3) -> Any:
    """A random mask of which that share is masked."""
    return torch.rand(*shape) >= share
