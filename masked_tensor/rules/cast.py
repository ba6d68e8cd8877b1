"""Casts: the data changes dtype, device or memory format, and the mask moves to the device with it.

``x.to(...)``, ``x.float()``, ``x.cuda()`` and autocast all decompose into ``_to_copy``, or return ``x`` itself.
0 is 0 in every dtype, so masked-out data that is known to be 0 stays known to be 0.
"""

from typing import Any

from .. import masks
from ..compat import OpOverload
from ..op import Op
from ..packing.kinds import keep_storage
from ..pair import Pair
from ..shared.memory_format import copied
from ..sparse.rules import on_values


def to_copy(op: OpOverload, x: Pair, **kwargs: Any) -> Pair:
    """``dtype``, ``layout``, ``device``, ``pin_memory``, ``non_blocking``, ``memory_format`` as in the plain op."""
    if kwargs.keys() == {"dtype"}:
        return copied(x, x.data.to(dtype=kwargs["dtype"], copy=True))  # in half the time
    data = op(x.data, **kwargs)
    return copied(Pair(x.data, masks.to_device(x.mask, data.device), x.payload), data)


OPS = [Op("_to_copy", to_copy, generic=True, sparse=on_values, packed=keep_storage, copies=True)]
