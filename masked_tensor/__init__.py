"""Tensors with holes that simply work."""

from . import doors
from .create import as_masked_tensor, masked_tensor
from .doors import register_rule
from .pair import Pair, Payload
from .tensor import MaskedTensor
