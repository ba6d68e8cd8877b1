"""The entrance of functions along time: which dimension that is has no default where there are several."""

from typing import Any

from torch import Tensor

from .. import masks, shapes
from ..pair import Pair
from .entrance import Input, as_pair, enter_input, refuse_sparse
from .names import check_dim


def enter_series(name: str, input: Tensor, dim: int | None, mask: Any) -> tuple[Input, Pair, int]:
    """What was given, its pair with a mask of its shape, and the dimension of time."""
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
    x = as_pair(given)
    return given, Pair(x.data, masks.expand_to(x.mask, x.data.shape), x.payload), dim
