"""open_clip: the sigmoid loss of the pairs whose image and text are both valid."""

from inspect import BoundArguments
from typing import Any

from .. import MaskedSizeError
from ..extend.libraries import replace
from .places import SIGLIP
from .wrapping import Function, call, valid_rows, with_masked


def _loss(loss: Function, given: BoundArguments) -> Any:
    if given.arguments["negative_only"]:
        raise MaskedSizeError(
            "SigLipLoss would also divide by the masked pairs of other ranks; with world_size > 1 pass it the valid "
            "rows of both, image_features[valid] and text_features[valid]"
        )
    names = "image_features", "text_features"
    valid = valid_rows("SigLipLoss", *(given.arguments[name] for name in names))
    given.arguments.update(zip(names, valid, strict=True))
    return call(loss, given)


replace(SIGLIP, with_masked(_loss))
