"""Whether two masks share memory: static facts, for which no value is compared."""

import torch
from torch import Tensor

from ..compat import shares_memory


def same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two masks are the same memory seen the same way: a static fact, no value is compared."""
    if a is b or torch.compiler.is_dynamo_compiling():  # Dynamo cannot trace the question below
        return a is b
    return (
        shares_memory(a, b)
        and a.shape == b.shape
        and a.stride() == b.stride()
        and a.storage_offset() == b.storage_offset()
    )


def same_rows(a: Tensor, b: Tensor) -> bool:
    """Whether two masks are the same memory seen the same way, but for the sizes along which they are constant."""
    if type(a) is not Tensor or type(b) is not Tensor or torch.compiler.is_dynamo_compiling():
        return False
    if a.dim() != b.dim() or not shares_memory(a, b) or a.storage_offset() != b.storage_offset():
        return False
    for size, stride, other, step in zip(a.shape, a.stride(), b.shape, b.stride(), strict=True):
        if size != other:
            if size == 0 or other == 0 or (size != 1 and stride != 0) or (other != 1 and step != 0):
                return False
        elif stride != step and size != 1:
            return False
    return True
