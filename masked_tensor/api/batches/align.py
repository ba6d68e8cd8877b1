"""Sequences rotated so that they start, or end, where the batch does."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import masks, shapes
from ...engine.boundary.enter_leave import leave
from ...engine.boundary.packed import enter_packed
from ...engine.tensor import MaskedTensor
from ...masks import sides
from ...packing import Packed
from ...packing.grid import grid_of_lengths
from ...pair import Pair
from ...shared.names import takes_axis
from ...shared.rows import ends
from ...shared.rows.lengths import check_side
from ..containers import accepted_inputs
from ..make.create import as_result
from .packing import packed, steps_of_batch, unpacked, with_known_lengths


@takes_axis
def to_left(
    x: Any,
    dim: int = 1,
    *,
    lengths: Tensor | Sequence[int] | str | None = None,
    padding_side: str = "left",
) -> MaskedTensor:
    """A batch whose sequences are shifted to start at step 0, such as a left-padded batch made right-padded.

    Use it for code that reads sequences from the first step, such as a state-space model, and would carry padding into
    its state. Without ``lengths``, a sequence starts at its first step with a valid entry, and missing steps count as
    padding. Sequences are rotated, so nothing is lost; gradients flow back.

    Args:
        x (Tensor): A batch ``(B, ..., T, ...)`` of any dtype, padded anywhere; or anything that :func:`masked_tensor`
            accepts.
        dim (int, optional): The time dimension; not 0, which is the batch. Default: 1.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Not needed for a batch that was packed with its lengths.
        padding_side (str, optional): The side on which ``x`` is padded now, with ``lengths``: ``"right"`` or
            ``"left"``. Default: ``"left"``.

    Returns:
        MaskedTensor: The batch, of the same shape and dtype; packed, if ``x`` is.

    Raises:
        TypeError: ``x`` cannot be converted to a tensor, or ``lengths`` are not integers.
        ValueError: ``x`` has no dimension ``dim`` besides the batch.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence, or differ from those of a packed
            ``x``.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``x`` was packed with its lengths, and an op has dropped them.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> x = mt.masked_tensor([[None, None, 1.0, 2.0], [3.0, 4.0, 5.0, 6.0]])
        >>> mt.to_left(x).tolist()
        [[1.0, 2.0, None, None], [3.0, 4.0, 5.0, 6.0]]

    See also:
        :func:`to_right`.
    """
    return _shift_rows(x, dim, "to_left", lengths, padding_side)


@takes_axis
def to_right(
    x: Any,
    dim: int = 1,
    *,
    lengths: Tensor | Sequence[int] | str | None = None,
    padding_side: str = "right",
) -> MaskedTensor:
    """A batch whose sequences are shifted to end at the last step, such as a right-padded batch made left-padded.

    It is the inverse of :func:`to_left`, for example before generating from prompts of different lengths. Without
    ``lengths``, a sequence ends at its last step with a valid entry, and missing steps count as padding. Sequences are
    rotated, so nothing is lost; gradients flow back.

    Args:
        x (Tensor): A batch ``(B, ..., T, ...)`` of any dtype, padded anywhere; or anything that :func:`masked_tensor`
            accepts.
        dim (int, optional): The time dimension; not 0, which is the batch. Default: 1.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Not needed for a batch that was packed with its lengths.
        padding_side (str, optional): The side on which ``x`` is padded now, with ``lengths``: ``"right"`` or
            ``"left"``. Default: ``"right"``.

    Returns:
        MaskedTensor: The batch, of the same shape and dtype; packed, if ``x`` is.

    Raises:
        TypeError: ``x`` cannot be converted to a tensor, or ``lengths`` are not integers.
        ValueError: ``x`` has no dimension ``dim`` besides the batch.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence, or differ from those of a packed
            ``x``.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``x`` was packed with its lengths, and an op has dropped them.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> x = mt.masked_tensor([[1.0, 2.0, None, None], [3.0, 4.0, 5.0, 6.0]])
        >>> mt.to_right(x).tolist()
        [[None, None, 1.0, 2.0], [3.0, 4.0, 5.0, 6.0]]

    See also:
        :func:`to_left`.
    """
    return _shift_rows(x, dim, "to_right", lengths, padding_side)


def _shift_rows(x: Any, dim: int, name: str, lengths: Any, side: str) -> MaskedTensor:
    check_side(side)
    if type(x) is MaskedTensor and lengths is None and (x._steps is not None or x._packed is not None):
        known = with_known_lengths(name, x, f"mt.{name}(x, lengths=[...])")
        if known is not x:  # as strided as it was given
            return unpacked(_shift_rows(known, dim, name, lengths, side))
    pair = accepted_inputs.pair_of_input(x) if type(x) is not MaskedTensor or x._packed is None else None
    shape = tuple(x.shape if pair is None else pair.data.shape)
    if len(shape) < 2 or shapes.canonical_dims(dim, len(shape)) == (0,):
        raise ValueError(
            f"{name} turns the rows of a batch along a dimension of its own: x has shape {shape}, "
            f"dim is {dim}; give a batch (B, T, ...), x.unsqueeze(0) for a single row"
        )
    dim = shapes.canonical_dim(dim, len(shape))
    if pair is None:
        return _shift_packed(x, dim, name, lengths, side)
    exists = None
    if lengths is not None:
        exists = steps_of_batch(name, x if type(x) is MaskedTensor else as_result(pair), (0, dim), lengths, side)
    return _shift_padded(pair, dim, name, exists)


def _shift_packed(x: MaskedTensor, dim: int, name: str, lengths: Any, side: str) -> MaskedTensor:
    """If all steps of the batch are stored, they stay in place, and only the grid changes."""
    whole = packed(x, (0, dim), lengths=lengths, padding_side=side) if lengths is not None else x
    p = whole._packed
    if p is None or not p.grid.complete or (p.order[0], p.order[dim]) != ((0,), (1,)):
        moved = _shift_padded(accepted_inputs.pair_of_input(x), dim, name, None)
        return moved if p is None else packed(moved, (0, dim))
    stored = enter_packed(whole)
    to = "right" if name == "to_left" else "left"
    grid = grid_of_lengths(stored.grid.sizes, to, stored.grid.device, stored.grid.shape[1])
    result: MaskedTensor = leave(Packed(stored.values, grid, stored.order, stored.inner, stored.payload))
    return result


def _shift_padded(pair: Pair, dim: int, name: str, exists: Tensor | None) -> MaskedTensor:
    constant = masks.is_constant(pair.mask, dim) if exists is None else bool(exists.all())
    if constant or pair.data.numel() == 0:
        return as_result(pair)
    size = pair.data.shape[dim]
    small = masks.compact(pair.mask)
    if exists is None:
        others = [d for d in range(1, small.dim()) if d != dim]
        steps = masks.any(small, others, keepdim=True) if others else small
    else:
        steps = exists.view([n if d in (0, dim) else 1 for d, n in enumerate(pair.data.shape)])
        small = small.expand([n if d in (0, dim) else small.shape[d] for d, n in enumerate(pair.data.shape)])
    first, last = ends.first_and_last(steps, dim)
    place = ends.reshape_along(torch.arange(size, device=first.device), dim, small.dim())
    index = (place + (first if name == "to_left" else last + 1)) % size
    data, mask = (ends.gather_along(v, dim, index) for v in (pair.data, small))
    if name == "to_right":
        sides.note_left(mask, dim)
    return as_result(Pair(data, masks.expand_to(mask, data.shape), pair.payload))
