"""Forward mode: a tangent has the mask of its tensor, and is exactly 0 at masked entries, whatever was passed there.

The same holds for the tangent of a result. No tangent depends on masked-out data.
"""

from typing import Any

import torch
from torch import Tensor

from .. import errors, masks
from ..compat import RUNNING, mode_is_active
from ..op import Op
from ..pair import Pair, Payload, data_of
from ..select import select, zero_masked


def make_dual(primal: Pair | Tensor, tangent: Pair | Tensor, level: int) -> Any:
    """``forward_ad.make_dual``: a tensor and its tangent; the result for a plain tensor is plain."""
    _check_not_traced()
    moved = zero_masked(tangent) if type(tangent) is Pair else data_of(tangent)
    if type(primal) is not Pair:
        return torch._make_dual(primal, moved, level)
    return Pair(torch._make_dual(primal.data, select(moved, primal.mask, 0), level), primal.mask, primal.payload)


def unpack_dual(dual: Pair, level: int) -> tuple[Pair, Pair | None]:
    """``forward_ad.unpack_dual``: the tensor, and the tangent if it has one; both have its mask."""
    _check_not_traced()
    primal, tangent = torch._unpack_dual(dual.data, level)
    out = Pair(primal, dual.mask, dual.payload)
    return out, None if tangent is None else Pair(select(tangent, dual.mask, 0), dual.mask, Payload.ZERO)


def add_batch_dim(x: Pair, dim: int, level: int) -> Tensor:
    """Adds a batch dimension to the gradients passed with ``is_grads_batched``: they are 0 where masked."""
    return torch._add_batch_dim(zero_masked(x), dim, level)


def remove_batch_dim(x: Pair, level: int, size: int, dim: int) -> Pair:
    """Turns the batch dimension of the returned gradients into an ordinary one."""
    data = torch._remove_batch_dim(x.data, level, size, dim)
    return Pair(data, masks.expand_to(x.mask.unsqueeze(dim), data.shape), x.payload)


def _check_not_traced() -> None:
    if not RUNNING.levels and mode_is_active():  # as linearize does, which would make a constant of the result
        raise errors.forward_mode_traced()


OPS = [
    Op("_make_dual", make_dual),
    Op("_unpack_dual", unpack_dual),
    Op("_add_batch_dim", add_batch_dim),
    Op("_remove_batch_dim", remove_batch_dim),
]
