"""Tensors with holes that simply work."""

from . import batching, comparison, functional, protocol  # noqa: F401 (they register kernels and methods)
from .convert import (
    compressed,
    count,
    filled,
    get_data,
    get_mask,
    is_masked_tensor,
    to_numpy_ma,
    to_tensor,
)
from .create import (
    as_masked_tensor,
    from_lengths,
    lengths_to_mask,
    masked_equal,
    masked_invalid,
    masked_tensor,
    masked_where,
    pad_sequence,
)
from .doors import register_rule
from .errors import MaskedValueError, MaskedWriteError, MaskMismatchError, UnsupportedOpError
from .frames import run_eagerly
from .functional import *  # noqa: F403 (its names are listed there)
from .inspect import explain
from .layouts import specified_mask
from .modes import convolution_validity, mask_mismatch
from .pair import Pair, Payload
from .tensor import MaskedTensor

__all__ = [
    "MaskMismatchError",
    "MaskedTensor",
    "MaskedValueError",
    "MaskedWriteError",
    "Pair",
    "Payload",
    "UnsupportedOpError",
    "as_masked_tensor",
    "compressed",
    "convolution_validity",
    "count",
    "explain",
    "filled",
    "from_lengths",
    "get_data",
    "get_mask",
    "is_masked_tensor",
    "lengths_to_mask",
    "mask_mismatch",
    "masked_equal",
    "masked_invalid",
    "masked_tensor",
    "masked_where",
    "pad_sequence",
    "register_rule",
    "specified_mask",
    "to_numpy_ma",
    "to_tensor",
]
__all__ += functional.__all__

run_eagerly(__name__)
