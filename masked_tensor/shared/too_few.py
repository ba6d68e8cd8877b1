"""Results of too few valid entries: how many are needed, and the plain result of fewer."""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

Number = float | int | bool | complex

_INF = float("inf")
_OF_NOTHING: dict[str, Number] = {
    "sum": 0, "nansum": 0, "count_nonzero": 0, "prod": 1, "amax": -_INF, "max": -_INF, "amin": _INF, "min": _INF,
    "logsumexp": -_INF, "any": False, "all": True, "argmax": 0, "argmin": 0, "norm": 0, "dist": 0, "none": 0,
}  # fmt: skip


def of_nothing(reduction: str) -> Number:
    """What a plain result of nothing is: NaN, unless the reduction of no entries has a value."""
    return _OF_NOTHING.get(reduction, float("nan"))


def representable(value: Number, dtype: torch.dtype) -> Number:
    """``value`` as ``dtype`` can hold it: an integer has no NaN (0 stands for it) and no infinity (its extremes do)."""
    if dtype.is_floating_point or dtype.is_complex or isinstance(value, (int, complex)):
        return value
    if value != value:
        return 0
    if value in (float("inf"), float("-inf")):
        if dtype is torch.bool:
            return value > 0
        return torch.iinfo(dtype).max if value > 0 else torch.iinfo(dtype).min
    return value


def is_enough(number: Tensor, needed: int | None = None) -> Tensor:
    """Whether so many valid entries are as many as a result needs: one, if nothing else is said."""
    return number >= (1 if needed is None else needed)


def needed_for(correction: float, min_count: int | None = None) -> int:
    """How many valid entries a variance needs, whose divisor is their number less ``correction``."""
    return max(min_count or 1, math.floor(correction) + 1)


@final
@dataclass(frozen=True, slots=True)
class TooFew:
    """What the results of too few valid entries are."""

    empty: Number  #: of none at all, if they are plain
    fill_value: Number | None = None
    min_count: int | None = None

    @property
    def is_shown(self) -> bool:
        """Whether results of no valid entry have a value."""
        return self.fill_value is not None or self.min_count == 0

    def positions(self) -> "TooFew":
        """The same of positions, which nothing fills."""
        return TooFew(0, None, self.min_count)


MASKED = TooFew(0)  #: nobody sees them
