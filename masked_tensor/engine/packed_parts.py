"""The pair of a packed tensor, made anew whenever it is read, and what a graph is given of it."""

import enum
from typing import Any

import torch
from torch import Tensor

from .. import errors, packing
from ..compat import without_modes
from ..pair import Payload
from ..select import select


class UnpackedCopy(enum.Enum):
    """What a graph is told of a packed input in place of a ``Payload``: it is 0 where masked, and writes there are
    lost."""

    COPY = "copy"


UNPACKED_COPY = UnpackedCopy.COPY


def unpacked_parts(x: Any) -> tuple[Tensor, Tensor]:
    """Data and bytes of the mask of a packed tensor, as a graph takes them.

    They are kept while the tensor is: guards tell the parts of inputs apart by identity, and two that are made only
    for a moment may come to lie at one address.  Not if somebody wrote into them, such as through a graph's output.
    """
    kept = x._parts
    if kept is None or kept[0] is not x._packed or kept[1]._version != kept[3]:
        with without_modes():
            pair = packing.unpack(x._packed)
            data = pair.data if pair.payload is Payload.ZERO else select(pair.data, pair.mask, 0)
            data = data.contiguous()  # as the strides of a packed tensor say
            kept = x._parts = x._packed, data, pair.mask.view(torch.uint8), data._version
    return kept[1], kept[2]


class PairOfPacked:
    """``x._pair`` of a packed tensor: not kept, so that what is stored is stored once (a pair shadows this)."""

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is None:
            return self
        if x._packed is None:
            raise errors.not_made()
        if type(x._packed.values) is not Tensor:
            return packing.unpack(x._packed)
        with without_modes():  # a tracer reads it under its own modes
            return packing.unpack(x._packed)
