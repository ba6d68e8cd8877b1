"""The pair of a packed tensor, made anew whenever it is read."""

from typing import Any

from .. import errors, rows
from ..compat import without_modes


class Spread:
    """``x._pair`` of a packed tensor: not kept, so that what is stored is stored once (a pair shadows this)."""

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is None:
            return self
        if x._packed is None:
            raise errors.not_made()
        with without_modes():  # a tracer reads it under its own modes
            return rows.spread(x._packed)
