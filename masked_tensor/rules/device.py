"""Devices: data and mask are on the same device, and are pinned together."""

from typing import Any

from .. import masks
from ..compat import OpOverload
from ..op import Op
from ..pair import Pair


def pin_memory(op: OpOverload, x: Pair, device: Any = None) -> Pair:
    """Page-locked copies of data and mask; for the mask only the entries it stores."""
    return Pair(op(x.data, device), masks.expand_to(op(masks.compact(x.mask), device), x.mask.shape), x.payload)


def ask(op: OpOverload, x: Pair, *args: Any) -> Any:
    """Answers a question about the memory of the data."""
    return op(x.data, *args)


OPS = [
    Op("_pin_memory", pin_memory, generic=True),
    Op("is_pinned", ask, generic=True),
]
