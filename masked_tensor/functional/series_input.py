"""The entrance of functions along time: which dimension that is, and which steps of a padded batch exist.

A mask says what is valid.  It does not say whether another step is missing, which can be filled, or padding, which is
nothing.  The caller says so, and whether it must be said is told by the call alone, not by the data.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .. import masks, shapes
from ..engine.tensor import MaskedTensor
from ..pair import Pair
from ..shared.lengths import check_side, steps_that_exist
from .entrance import Input, as_pair, enter_input, refuse_sparse
from .names import check_dim


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """What a function along time is given."""

    given: Input
    x: Pair  #: with a mask of its shape, False behind the ends
    dim: int  #: time
    exists: Tensor | None = None  #: which steps exist, broadcast to the data; None: all of them
    unsaid: bool = False  #: whether there may be padding, of which nothing is said

    def without_padding(self, result: Pair, step: int = 1) -> Pair:
        """``result`` with nothing valid behind an end, of each ``step``-th entry of time."""
        if self.exists is None:
            return result
        exists = self.exists[(slice(None),) * self.dim + (slice(None, None, step),)]
        return Pair(result.data, masks.logical_and(result.mask, masks.expand_to(exists, result.data.shape)))


def enter_series(name: str, input: Tensor, dim: int | None, mask: Any, lengths: Any, side: str) -> Series:
    """What was given; see :class:`Series`."""
    given = enter_input(input, mask)
    refuse_sparse(name, given)
    dims = given.data.dim()
    if dims == 0:
        raise ValueError(f"{name} needs a dimension to go along, got a 0-d tensor")
    if dim is None and dims > 1:
        raise ValueError(
            f"{name}: say which dimension of shape {tuple(given.data.shape)} is time: dim=1 for (batch, time, ...), "
            "dim=0 for (time, ...)"
        )
    dim = 0 if dim is None else dim
    check_dim(name, dim, True)
    (dim,) = shapes.canonical_dims(dim, dims)
    check_side(side)
    x, exists = as_pair(given), None
    full = isinstance(lengths, str) and lengths == "full"
    if lengths is not None and not full:
        exists, seen = steps_that_exist(name, lengths, side, given.data, dim, given.mask)
        if not seen:  # else the mask is the one that counts are kept with
            x = Pair(x.data, masks.logical_and(x.mask, masks.expand_to(exists, x.data.shape)))
            given = Input(x, given.masked)
    packed = type(input) is MaskedTensor and input._packed is not None
    unsaid = lengths is None and type(given.x) is Pair and (packed or dims > 2 or dim != 0)
    return Series(given, Pair(x.data, masks.expand_to(x.mask, x.data.shape), x.payload), dim, exists, unsaid)


def expect_lengths(name: str, series: Series) -> None:
    """Raises for a batch that may be padded, of which it is not said: what is padding would be filled, or counted."""
    if series.unsaid:
        raise ValueError(
            f"{name}: a masked step of shape {tuple(series.x.data.shape)} along dim={series.dim} may be missing, or "
            "padding, which must not be filled. Say lengths=[...], how many steps each sequence has; lengths='full', "
            "if nothing is padding; or give each sequence alone"
        )
