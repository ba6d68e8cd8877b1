"""Batches concatenated, padded to the longest, or joined sequence by sequence along time."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import errors, layouts, masks, packing, shapes
from ...compat import current_trace
from ...engine.boundary.enter_leave import enter, leave
from ...engine.boundary.lengths import pack_arguments
from ...engine.boundary.packed import enter_packed
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor, pair_of
from ...op import NoRule
from ...packing import dim_order as orders
from ...packing import joins
from ...packing.grid import grid_of_mask
from ...pair import Pair
from ...shared import feature_joins
from ...shared.names import takes_axis
from ...shared.rows.lengths import check_side
from ..containers import accepted_inputs, ragged
from ..make.create import as_result, masked_tensor
from .packing import knows_lengths, with_known_lengths
from .unbatch import steps_of_runs


@takes_axis
def cat(tensors: Sequence[Any], dim: int = 0, *, padding_side: str = "right") -> MaskedTensor:
    """Batches concatenated along ``dim``, shorter ones padded to the longest; ``join`` appends along time instead.

    This is ``torch.cat`` for batches of different padded lengths; the new padding is masked. Packed batches stay
    packed, and no padded tensor is allocated. Gradients flow back.

    Args:
        tensors (list of Tensor): Strided tensors of any shape and dtype with the same number of dimensions: masked,
            packed or plain, or anything that :func:`masked_tensor` accepts. Different dtypes are promoted.
        dim (int, optional): The dimension to concatenate along. ``axis`` is accepted as well. Default: 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.

    Returns:
        MaskedTensor: The shape has the sum of the sizes along ``dim`` and the largest size along every other dimension;
        the dtype is the promoted one. It is packed if all ``tensors`` are and ``dim`` is one that ``torch.cat`` keeps
        packed, such as the batch.

    Raises:
        TypeError: One of ``tensors`` cannot be converted to a tensor.
        ValueError: There are no tensors, or their numbers of dimensions are 0 or differ.
        ValueError: ``padding_side`` is neither ``"right"`` nor ``"left"``.
        IndexError: ``dim`` is out of range.
        RuntimeError: A sparse tensor violates the invariants of its layout.
        UnsupportedOpError: A tensor is sparse.

    Example:
        >>> a = mt.from_sequences([torch.ones(3), torch.ones(1)])
        >>> b = mt.from_sequences([torch.zeros(2)])
        >>> mt.cat([a, b])
        masked_tensor([[1.0000, 1.0000, 1.0000],
                       [1.0000,     --,     --],
                       [0.0000, 0.0000,     --]], valid=6/9)

    See also:
        :func:`join`.

    References:
        ``torch.cat``.
    """
    check_side(padding_side)
    given = [t if isinstance(t, Tensor) else masked_tensor(t) for t in tensors]
    given = [t for t in given if t.shape != (0,)] or given[:1]  # torch skips empty 1-D parts, whatever the others are
    if not given:
        raise ValueError("cat needs at least one tensor")
    for t in given:
        if layouts.is_sparse(t):
            raise errors.no_sparse_functional_rule("cat", t)
    counts = {t.dim() for t in given}
    if len(counts) > 1 or counts == {0}:
        shown = [tuple(t.shape) for t in given[:4]]
        raise ValueError(f"cat: tensors must have the same number of dimensions, 1 or more, got shapes {shown}")
    dim = shapes.canonical_dim(dim, given[0].dim())
    given = list(pack_arguments(tuple(given)))
    if all(type(t) is MaskedTensor and t._packed is not None for t in given):
        made = _cat_packed(given, dim, padding_side)
        if made is not None:
            return made
    pairs = [accepted_inputs.pair_of_input(t) for t in given]
    longest = [max(p.data.shape[d] for p in pairs) for d in range(given[0].dim())]
    padded = [
        ragged.pad_dims(p, [p.data.shape[d] if d == dim else n for d, n in enumerate(longest)], padding_side)
        for p in pairs
    ]
    data, valid = torch.cat(ragged.promote([p.data for p in padded]), dim), [p.mask for p in padded]
    if dim and data.dim() > 2:
        feature_joins.look("masked_tensor.cat", valid, dim)
    return as_result(Pair(data, masks.expand_to(joins.cat_masks(valid, dim), data.shape)))


def _cat_packed(tensors: Sequence[Any], dim: int, side: str) -> MaskedTensor | None:
    """Packed batches one after the other, as packed ones; None if the padded ones are to be joined."""
    if any(t._packed.order[dim] != (0,) for t in tensors):
        fits = len({tuple(n for d, n in enumerate(t.shape) if d != dim) for t in tensors}) == 1
        joined: Any = torch.cat(list(tensors), dim) if fits else None
        return joined if type(joined) is MaskedTensor else None
    try:
        stored = joins.cat_batches([enter_packed(t) for t in tensors], side)
    except NoRule:
        return None
    made: MaskedTensor = leave(stored)
    return made


@takes_axis
def join(*batches: MaskedTensor, dim: int = 1, padding_side: str = "right") -> MaskedTensor:
    """Batches joined along time, sequence by sequence, without padding in between; ``cat`` adds sequences instead.

    Sequence ``i`` of the result is sequence ``i`` of the first batch, followed by that of the next: left-padded prompts
    and right-padded answers become whole sequences. Gradients flow back.

    Args:
        *batches (MaskedTensor): Strided batches ``(B, T, ...)`` of any dtype with the same ``B`` and features. Each
            sequence is one run of valid steps, padded on either side, unless the batch is packed with its lengths; a
            plain tensor has no padding.
        dim (int, optional): The time dimension. ``axis`` is accepted as well. Default: 1.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.

    Returns:
        MaskedTensor: The batch ``(B, T, ...)``, with ``T`` the longest sum of lengths, in the promoted dtype; packed if
        all ``batches`` are.

    Raises:
        TypeError: A batch is not a tensor.
        ValueError: There is no batch, or one is not a strided ``(B, T, ...)``.
        ValueError: Shapes differ in a dimension other than time.
        ValueError: A sequence has masked steps between valid ones.
        ValueError: A batch was packed with its lengths, and an op has dropped them.
        ValueError: ``padding_side`` is neither ``"right"`` nor ``"left"``.
        RuntimeError: A sparse tensor violates the invariants of its layout.
        UnsupportedOpError: It is called in compiled code where graph breaks are not allowed (``fullgraph=True``,
            export).

    Example:
        >>> a = mt.from_sequences([torch.ones(2), torch.ones(1)])
        >>> b = mt.from_sequences([torch.zeros(1), torch.zeros(3)])
        >>> mt.join(a, b)
        masked_tensor([[1.0000, 1.0000, 0.0000,     --],
                       [1.0000, 0.0000, 0.0000, 0.0000]], valid=7/8)

    See also:
        :func:`cat`.
    """
    check_side(padding_side)
    if not batches:
        raise ValueError("join needs at least one batch")
    for x in batches:
        if not isinstance(x, Tensor):
            raise TypeError(f"join() expects masked tensors, got {type(x).__name__}; use from_sequences(sequences)")
    given = [x if type(x) is MaskedTensor else as_result(accepted_inputs.pair_of_input(x)) for x in batches]
    if current_trace() is not None and any(type(pair_of(x).mask) is not Tensor for x in given):
        raise errors.read_while_compiling("join")
    given = [with_known_lengths("join", x) for x in given]
    first = given[0]
    exists = [_steps(x, dim) for x in given]
    time = shapes.canonical_dim(dim, first.dim())
    if time == 0:
        raise ValueError("join: dim=0 is the batch; the time lies in a later dimension")
    around = {tuple(n for d, n in enumerate(x.shape) if d != time) for x in given}
    if len(around) > 1:
        shown = [tuple(x.shape) for x in given[:4]]
        raise ValueError(f"join: batches may differ along dimension {time} alone, got shapes {shown}")
    if not all(x.shape.numel() for x in given):
        given = [x for x in given if x.shape.numel()] or [first]
        return given[0] if len(given) == 1 else join(*given, dim=dim, padding_side=padding_side)
    dtype = ragged.promote([x.get_data()[:0] for x in given])[0].dtype if len({x.dtype for x in given}) > 1 else None
    parts = [_stored(x if dtype is None else x.to(dtype), steps, time) for x, steps in zip(given, exists, strict=True)]
    made: MaskedTensor = leave(joins.join_sequences(parts, padding_side))
    return made if all(x._packed is not None for x in batches if type(x) is MaskedTensor) else made.unpacked()


def _steps(x: MaskedTensor, dim: int) -> Tensor:
    """Which steps ``(B, T)`` of a batch exist."""
    if x.dim() > 1 and x._packed is not None and knows_lengths(x, [0, dim % x.dim()]):
        return x._packed.grid.mask
    return steps_of_runs(x, dim, "join")


def _stored(x: MaskedTensor, exists: Tensor, time: int) -> packing.Packed:
    """Exactly the steps that exist, batch and time first among what is stored."""
    if x._packed is not None and x._packed.grid.complete and x._packed.order == orders.identity_order(x.dim()):
        return enter_packed(x)
    rest = iter(range(orders.GRID, x.dim()))
    order = tuple((0,) if d == 0 else (1,) if d == time else (next(rest),) for d in range(x.dim()))
    return packing.pack(enter(x, torch.is_grad_enabled()), order, grid_of_mask(exists))


mark_opaque(join)
