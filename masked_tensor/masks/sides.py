"""Which masks are known to be padded on the left: a note on their memory, which all views of it see.

Whoever makes such a batch notes along which dimension, and so does an op that keeps the ends of rows.  A dimension of a
view is that one if it has its stride and its size.  A mask of new memory is not known, nor are masks that are traced:
what is not known is not said, and nothing is read.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..compat import is_wrapped

_NOTHING = (0, 0)


def note_left(mask: Tensor, dim: int) -> None:
    """Notes that the rows of ``mask`` along ``dim`` end where it ends."""
    if _is_plain(mask) and mask.shape[dim] > 1 and mask.stride(dim):
        mask.untyped_storage().padded_left = (mask.stride(dim), mask.shape[dim])  # type: ignore[attr-defined]  # a note


def is_left(mask: Tensor, dim: int) -> bool:
    """Whether the rows of ``mask`` along ``dim`` are known to end where it ends."""
    if not _is_plain(mask):
        return False
    noted = mask.untyped_storage().__dict__.get("padded_left", _NOTHING)
    return noted is not _NOTHING and bool(noted == (mask.stride(dim), mask.shape[dim]))


def note_as(mask: Tensor, dims: Iterable[int], before: Tensor) -> None:
    """Notes of ``mask`` what is known of ``before`` along ``dims``, which are theirs alike."""
    if mask is not before:
        for dim in dims:
            if is_left(before, dim):
                note_left(mask, dim)


def _is_plain(mask: Tensor) -> bool:
    return (
        type(mask) is Tensor
        and not torch.compiler.is_dynamo_compiling()
        and mask.layout is torch.strided
        and not is_wrapped(mask)
    )
