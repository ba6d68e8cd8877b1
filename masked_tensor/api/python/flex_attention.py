"""``flex_attention``: its kernels take a mask as a function, so a masked tensor gets an error that names the call."""

from typing import Any, NoReturn

from ...engine.tensor import MaskedTensor
from ...errors import UnsupportedOpError
from ...patches.imports import when_imported
from ...patches.places import FLEX_ATTENTION


def refuse(*args: Any, **kwargs: Any) -> NoReturn:
    """What the operator does with masked tensors."""
    raise UnsupportedOpError(
        "flex_attention does not support masked tensors; use "
        "torch.nn.functional.scaled_dot_product_attention(query, key, value), which hides masked keys. For documents "
        "in one row, make a batch with from_documents(rows, position_ids=...). For plain tensors, pass a block mask: "
        "create_block_mask(lambda b, h, i, j: valid[b, j], ...)"
    )


when_imported(FLEX_ATTENTION, lambda module: module.flex_attention.py_impl(MaskedTensor)(refuse))
