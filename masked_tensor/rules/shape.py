"""Views and shape ops: data and mask move alike.

A view of a masked tensor is a true view: it shares memory with its base, and what is written into one is seen by the
other, data and validity.
"""

from typing import Any

from torch._ops import OpOverload

from ..op import Op
from ..pair import Pair


def move(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Any:
    """Any op that only rearranges entries: the same call on data and mask."""
    data, mask = op(x.data, *args, **kwargs), op(x.mask, *args, **kwargs)
    if isinstance(data, list | tuple):
        return [Pair(d, m, x.payload) for d, m in zip(data, mask, strict=True)]
    return Pair(data, mask, x.payload)


ROWS = [
    Op(name, move, generic=True)
    for name in (
        "view _unsafe_view reshape t transpose permute unsqueeze squeeze expand select slice diagonal unfold unbind split "
        "split_with_sizes as_strided alias flip roll movedim"
    ).split()
]
