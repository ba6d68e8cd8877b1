"""The functions of ``torch.nn.init`` keep the mask, even those that copy a matrix or write at positions in it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...engine.tensor import MaskedTensor, pair_of, wrap
from ...pair import Pair
from ...patches.places import INITIALIZERS, wrap_when_imported


def _keep_mask(initialize: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The initializer runs on a plain tensor, of which a masked one takes the values, under its own mask."""

    def run(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if type(tensor) is not MaskedTensor:
            return initialize(tensor, *args, **kwargs)
        with torch.no_grad():
            old = pair_of(tensor)
            data = initialize(torch.empty_like(old.data), *args, **kwargs)
            return tensor.copy_(wrap(Pair(data, old.mask)))

    return run


wrap_when_imported(INITIALIZERS, _keep_mask)
