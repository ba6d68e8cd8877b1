"""A batch packed into a given number of places: its sizes follow from the arguments alone, and nothing is read.

The places that the valid steps leave over are filled with masked steps of the batch itself, so every rule sees an
ordinary packed tensor whose ``inner`` masks some of the stored tokens.
"""

from contextlib import suppress

import torch
from torch import Tensor

from ..compat import is_readable_memory
from ..kernels.devices import is_host
from ..op import NoRule
from ..pair import Pair
from .dim_order import Order
from .grid import Grid
from .packed import Packed, batch_first, gather_stored, pack_values
from .valid_first import valid_first


def pack_capacity(x: Pair, order: Order, capacity: int) -> Packed:
    """A strided pair at ``capacity`` places, or at all if it has no more: its valid ones and the first masked ones."""
    data, valid, some = batch_first(x, order)
    stored = gather_stored(data, valid, grid_of_capacity(some, capacity), order, x.payload)
    packed = pack_values(stored.operand(), stored)
    if packed.grid.host and not is_host(data.device):
        with suppress(NoRule):  # steps that are masked in part
            valid_first(packed).prepare()
    return packed


def grid_of_capacity(some: Tensor, capacity: int) -> Grid:
    """The True places of a ``(B, T)`` mask and the first False ones, ``capacity`` together where there are as many."""
    flat = some.reshape(-1)
    index = flat.logical_not().to(torch.uint8).sort(stable=True).indices[:capacity].sort().values
    if capacity < flat.shape[0]:
        index = _fitting(index, flat.sum(), capacity)
    return Grid(index, (some.shape[0], some.shape[1])).prepare()


def _fitting(index: Tensor, count: Tensor, capacity: int) -> Tensor:
    """The index.  Raises where more steps are valid: at once where looking is free, elsewhere as the device knows."""
    if is_readable_memory(count):
        if int(count) > capacity:
            raise ValueError(
                f"packed(capacity={capacity}): {int(count)} steps are valid; give a capacity that holds them, or "
                "batches of fewer steps"
            )
        return index
    result: Tensor = torch.ops.masked_tensor.expected(  # what depends on the result cannot outlive the check
        index, count <= capacity, f"packed(capacity={capacity}): more steps are valid than are stored"
    )
    return result
