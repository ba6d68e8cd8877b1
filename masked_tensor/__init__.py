"""Tensors with holes that simply work."""

from . import doors, protocol, show
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
from .pair import Pair, Payload
from .tensor import MaskedTensor
