"""How devices differ, as questions with a meaning: no other file names a device."""

import torch
from torch import Tensor

from .precision import WIDER


def is_host(device: torch.device) -> bool:
    """Whether memory there is read without waiting for anything, and a call costs less than what it computes."""
    return device.type == "cpu"


def sums_of_rows(x: Tensor) -> bool:
    """Whether ``embedding_bag`` adds up rows of ``x``, forward and backward."""
    return x.device.type in ("cpu", "cuda")


def wider(data: Tensor) -> torch.dtype:
    """The dtype of twice the precision, where there is one on the device of ``data``."""
    return data.dtype if data.device.type == "mps" else WIDER.get(data.dtype, data.dtype)


def gelu_in_products(x: Tensor) -> str:
    """How torch's products that end in gelu approximate it."""
    return "tanh" if x.is_cuda else "none"
