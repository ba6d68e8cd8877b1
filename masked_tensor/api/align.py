"""Rows turned so that they begin, or end, where the batch does."""

from typing import Any

import torch

from .. import masks, shapes
from ..engine.tensor import MaskedTensor
from ..pair import Pair
from ..shared import extents
from .containers import accepted_inputs
from .create import as_result


def to_left(x: Any, dim: int = 1) -> MaskedTensor:
    """A batch whose sequences are rotated to begin at step 0, so that padding comes last.

    For code that reads sequences from the first step, such as a state-space model, and would carry padding into its
    state. A sequence begins at its first step with a valid entry. What is rotated out at one end comes in at the other,
    so nothing is lost, and gradients flow back.

    Args:
        x (Tensor): A batch ``(B, ..., T, ...)`` of any dtype, padded anywhere; or anything that :func:`masked_tensor`
            takes.
        dim (int, optional): The dimension of time; not 0, which is the batch.

    Returns:
        MaskedTensor: The batch, of the same shape and dtype.

    Raises:
        TypeError: ``x`` is nothing that a tensor can be made of.
        ValueError: ``x`` has no ``dim`` besides that of the batch.
        IndexError: ``dim`` is out of range.
        RuntimeError: a sparse tensor breaks the rules of its layout.

    Example:
        >>> x = mt.masked_tensor([[None, None, 1.0, 2.0], [3.0, 4.0, 5.0, 6.0]])
        >>> mt.to_left(x).tolist()
        [[1.0, 2.0, None, None], [3.0, 4.0, 5.0, 6.0]]
    """
    return _shift_rows(x, dim, "to_left")


def to_right(x: Any, dim: int = 1) -> MaskedTensor:
    """A batch whose sequences are rotated to end at the last step, so that padding comes first.

    The inverse of :func:`to_left` for sequences that end where the batch ends. A sequence ends at its last step with a
    valid entry.

    Args:
        x (Tensor): A batch ``(B, ..., T, ...)`` of any dtype, padded anywhere; or anything that :func:`masked_tensor`
            takes.
        dim (int, optional): The dimension of time; not 0, which is the batch.

    Returns:
        MaskedTensor: The batch, of the same shape and dtype.

    Raises:
        TypeError: ``x`` is nothing that a tensor can be made of.
        ValueError: ``x`` has no ``dim`` besides that of the batch.
        IndexError: ``dim`` is out of range.
        RuntimeError: a sparse tensor breaks the rules of its layout.

    Example:
        >>> x = mt.masked_tensor([[1.0, 2.0, None, None], [3.0, 4.0, 5.0, 6.0]])
        >>> mt.to_right(x).tolist()
        [[None, None, 1.0, 2.0], [3.0, 4.0, 5.0, 6.0]]
    """
    return _shift_rows(x, dim, "to_right")


def _shift_rows(x: Any, dim: int, name: str) -> MaskedTensor:
    pair = accepted_inputs.pair_of_input(x)
    if pair.data.dim() < 2 or shapes.canonical_dims(dim, pair.data.dim()) == (0,):
        raise ValueError(
            f"{name} turns the rows of a batch along a dimension of its own: x has shape {tuple(pair.data.shape)}, "
            f"dim is {dim}; give a batch (B, T, ...), x.unsqueeze(0) for a single row"
        )
    (dim,) = shapes.canonical_dims(dim, pair.data.dim())
    if masks.is_constant(pair.mask, dim) or pair.data.numel() == 0:
        return as_result(pair)
    size = pair.data.shape[dim]
    small = masks.compact(pair.mask)
    others = [d for d in range(1, small.dim()) if d != dim]
    steps = masks.any(small, others, keepdim=True) if others else small
    first, last = extents.first_and_last(steps, dim)
    place = extents.reshape_along(torch.arange(size, device=first.device), dim, small.dim())
    index = (place + (first if name == "to_left" else last + 1)) % size
    data, mask = (extents.gather_along(v, dim, index) for v in (pair.data, small))
    return as_result(Pair(data, masks.expand_to(mask, data.shape), pair.payload))
