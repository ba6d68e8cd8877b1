"""Making masked tensors."""

from typing import Any

import torch
from torch import Tensor

from .pair import Pair, Payload
from .select import select
from .tensor import MaskedTensor, wrap


def masked_tensor(data: Any, mask: Any, *, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor that copies ``data`` and zeroes what is masked out."""
    data, mask = torch.as_tensor(data), torch.as_tensor(mask)
    mask = mask.expand(data.shape)
    return wrap(Pair(select(data.detach(), mask, 0).clone(), mask, Payload.ZERO)).requires_grad_(requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor around ``data``, without a copy."""
    return wrap(Pair(data, mask.expand(data.shape)))
