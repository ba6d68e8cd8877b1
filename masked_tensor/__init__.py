"""Tensors with holes that simply work."""

from . import functional
from .api import comparison, protocol  # noqa: F401 (they register methods)
from .api.convert import (
    compressed,
    count,
    filled,
    get_data,
    get_mask,
    is_masked_tensor,
    to_numpy_ma,
    to_tensor,
)
from .api.copies import rebuild  # noqa: F401 (pickles name it)
from .api.create import (
    as_masked_tensor,
    from_lengths,
    lengths_to_mask,
    masked_equal,
    masked_invalid,
    masked_tensor,
    masked_where,
    pad_sequence,
)
from .api.factories import masked_factories
from .api.inspect import explain
from .api.modes import convolution_validity, mask_mismatch
from .engine import batching  # noqa: F401 (it registers kernels)
from .engine.doors import register_rule
from .engine.frames import run_eagerly
from .engine.tensor import MaskedTensor
from .errors import MaskedValueError, MaskedWriteError, MaskMismatchError, UnsupportedOpError
from .functional import *  # noqa: F403 (its names are listed there)
from .layouts import specified_mask
from .pair import Pair, Payload

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
    "masked_factories",
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
