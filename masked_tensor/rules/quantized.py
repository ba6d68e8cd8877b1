"""Linear layers with quantized weights: masked entries count as 0; an output is valid iff a valid entry goes into it.

If the input is also quantized, its range is the range of the valid entries.
"""

from typing import Any

from .. import masks
from ..compat import OpOverload
from ..op import Op, ops
from ..pair import Pair
from ..select import zero_masked


def linear(op: OpOverload, x: Pair, *packed: Any, **kwargs: Any) -> Pair:
    """``quantized::linear_dynamic`` and its relatives.  The range of quantization always includes 0."""
    data = op(zero_masked(x), *packed, **kwargs)
    return Pair(data, masks.expand_to(masks.any(x.mask, -1, keepdim=True), data.shape))


_NAMES = "linear_dynamic linear_relu_dynamic linear_dynamic_fp16 linear_relu_dynamic_fp16"
OPS: list[Op] = ops(" ".join(f"quantized::{name}" for name in _NAMES.split()), linear, generic=True)
