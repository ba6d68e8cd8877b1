"""Functions of bool masks, True = valid, that keep a constant dimension at one byte.

A padding mask of a ``(B, T, C)`` tensor has stride 0 along ``C``. These functions work on its ``B * T`` bytes and give
masks that also have stride 0 there. None of them reads a value on the host, so none waits for a GPU.

Example:
    >>> from masked_tensor.extend import masks
    >>> mask = torch.tensor([[True], [False]]).expand(2, 3)
    >>> masks.count(mask, 1)
    tensor([3, 0])
    >>> masks.logical_and(mask, masks.full((2, 3), mask.device)).stride()
    (1, 0)
"""

from .. import masks as _masks
from ..shared.names import names_arguments as _named

__all__ = ["all", "any", "count", "expand_to", "full", "logical_and", "reduce_validity", "reshape"]

all, any, count = _named(_masks.all), _named(_masks.any), _named(_masks.count)
expand_to, full, logical_and = _named(_masks.expand_to), _named(_masks.full), _named(_masks.logical_and)
reduce_validity, reshape = _named(_masks.reduce_validity), _named(_masks.reshape)
