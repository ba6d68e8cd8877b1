"""Copies and likes: the plain op on harmless data, under the same mask."""

from typing import Any

from ..helpers.harness import Masked
from .random import under


def fresh(op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """``new_*``: valid everywhere."""
    return op(x.data if isinstance(x, Masked) else x, *args, **kwargs)


ORACLES: dict[str, Any] = {
    **dict.fromkeys(("clone", "zeros_like", "ones_like", "full_like"), under(0)),
    **dict.fromkeys(("new_zeros", "new_ones", "new_full"), fresh),
}
