"""soft-moe-pytorch: slots of the valid tokens, where a batch is padded to a multiple of the experts."""

from inspect import BoundArguments
from typing import Any

from ...engine.tensor import MaskedTensor
from ...patches.libraries import DYNAMIC_SLOTS
from .wrapping import Function, call, data_of, replace, which_rows, with_masked


def _slots(forward: Function, given: BoundArguments) -> Any:
    x, told = given.arguments["x"], given.arguments["mask"]
    if type(x) is MaskedTensor:
        own = which_rows("DynamicSlotsSoftMoE", x if x.dim() < 4 else x.movedim(1, -1).flatten(1, 2), 2)
        given.arguments["mask"] = own if told is None else own & data_of(told)
    return call(forward, given)


replace(DYNAMIC_SLOTS, with_masked(_slots))
