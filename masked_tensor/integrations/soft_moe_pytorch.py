"""soft-moe-pytorch: slots of the valid tokens, where a batch is padded to a multiple of the experts."""

from inspect import BoundArguments
from typing import Any

from .. import MaskedTensor, as_masked_tensor
from ..extend.libraries import replace
from .places import DYNAMIC_SLOTS
from .wrapping import Function, call, data_of, which_rows, with_masked


def _slots(forward: Function, given: BoundArguments) -> Any:
    """Runs on tokens with 0 in the padding, with the mask; in an image, the tokens follow the channels."""
    x, told = given.arguments["x"], given.arguments["mask"]
    if type(x) is not MaskedTensor:
        return call(forward, given)
    channels = 1 if x.dim() == 4 else -1
    valid = which_rows("DynamicSlotsSoftMoE", x.movedim(channels, -1), x.dim() - 1)
    mask = valid.flatten(1)
    given.arguments |= {"x": data_of(x), "mask": mask if told is None else mask & data_of(told)}
    found = call(forward, given)
    return as_masked_tensor(found, valid.unsqueeze(channels).expand(found.shape))


replace(DYNAMIC_SLOTS, with_masked(_slots))
