"""What a recurrent net is given: its states, and its operands in one dtype."""

from typing import Any

import torch

from .. import pair
from ..pair import Pair


def cast(x: Pair, states: list[Pair], weights: list[Any]) -> tuple[Pair, list[Pair], list[Any]]:
    """Operands of several dtypes in autocast's, if there is one around; elsewhere that is the kernel's to judge.

    In inference mode torch ends autocast before a rule is called, and does not say whether it was on: but without it
    such operands would be refused.
    """
    given = [x.data, *(h.data for h in states), *(w for w in weights if w is not None)]
    device = x.data.device.type
    if len({t.dtype for t in given}) == 1 or not _within_autocast() or torch.is_autocast_enabled(device):
        return x, states, weights
    dtype = torch.get_autocast_dtype(device)
    first, *rest = (Pair(p.data.to(dtype), p.mask, p.payload) for p in (x, *states))
    return first, rest, [w if w is None else w.to(dtype) for w in weights]


def _within_autocast() -> bool:
    """Whether a ``torch.autocast`` block is open, enabled or not: all that can be seen of it from below."""
    depth = torch.autocast_increment_nesting()
    torch.autocast_decrement_nesting()
    return depth > 1


def states_of(hx: Any) -> list[Pair]:
    """The states of a recurrent net: a list for lstm, one for the others."""
    return [pair.of(h) for h in (hx if isinstance(hx, list | tuple) else [hx])]
