"""pytorch-crf: padded sequences with 0 in the padding, and the mask beside them."""

from inspect import BoundArguments
from typing import Any

from .. import MaskedSizeError
from ..extend.libraries import replace
from .places import CRF
from .wrapping import Function, call, data_of, mask_of, which_rows, with_masked


def _sequences(function: Function, given: BoundArguments) -> Any:
    names = [name for name in ("emissions", "tags") if name in given.arguments]
    emissions, told = given.arguments["emissions"], given.arguments["mask"]
    mask = which_rows("CRF", emissions, 2)
    if "tags" in names:
        mask = mask & mask_of(given.arguments["tags"])
    if told is not None:
        mask = mask & data_of(told).bool()
    steps = mask if given.arguments["self"].batch_first else mask.T
    if (steps[:, 1:] & ~steps[:, :-1]).any():
        raise MaskedSizeError(
            "CRF would score a valid step as if it followed the last valid one before a gap; give it sequences without "
            "gaps, padded behind: masked_tensor.to_left(x)"
        )
    given.arguments |= {name: data_of(given.arguments[name]) for name in names} | {"mask": mask}
    return call(function, given)


replace(CRF, with_masked(_sequences))
