"""What a recurrent net is given: its states."""

from typing import Any

from .. import pair
from ..pair import Pair


def states_of(hx: Any) -> list[Pair]:
    """The states of a recurrent net: a list for lstm, one for the others."""
    return [pair.as_pair(h) for h in (hx if isinstance(hx, list | tuple) else [hx])]
