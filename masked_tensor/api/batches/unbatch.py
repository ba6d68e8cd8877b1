"""Batches taken apart: lengths, lists of tensors, nested tensors and packed sequences.

Each takes a batch ``(B, T, ...)`` whose sequences are one run of valid steps each, padded on either side.  Of a packed
batch with the padding behind, the stored rows leave as they are.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, invert_permutation, pack_sequence

from ... import errors, layouts, masks, shapes
from ...compat import current_trace
from ...engine.boundary.enter_leave import enter, leave
from ...engine.boundary.packed import enter_packed, mask_of
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor, add_members, pair_of
from ...packing import Packed
from ...packing.dim_order import GRID, identity_order
from ...packing.packed import canonicalize
from ...packing.views import permute
from ...pair import Pair
from ...shared.names import takes_axis
from .packing import steps_of_batch, with_known_lengths


@takes_axis
def lengths(x: MaskedTensor, dim: int = 1) -> Tensor:
    """The number of steps of each sequence in a batch.

    Masked steps at the ends of a sequence count as padding, unless the batch was packed with its lengths: then these
    are returned.

    Args:
        x (MaskedTensor): A strided batch of sequences ``(B, T, ...)`` of any dtype, each one run of valid steps, padded
            on either side; or packed with its lengths.
        dim (int, optional): The time dimension. Default: 1.

    Returns:
        Tensor: A plain int64 tensor of shape ``(B,)``.

    Raises:
        TypeError: ``x`` is not a MaskedTensor.
        ValueError: ``x`` is not a strided batch ``(B, T, ...)``.
        ValueError: A sequence has masked steps between valid ones, or a step is partly valid.
        ValueError: ``x`` was packed with its lengths, and an op has dropped them.
        UnsupportedOpError: It is called in compiled code where graph breaks are not allowed (``fullgraph=True``,
            export).

    Example:
        >>> mt.masked_tensor([[1.0, 2.0], [3.0, None]]).lengths()
        tensor([2, 1])

    See also:
        :func:`unpad`, :func:`lengths_to_mask`.
    """
    x = with_known_lengths("lengths", x)
    stored = _stored_values(x, dim, "lengths", True)
    return steps_of_runs(x, dim, "lengths").sum(1) if stored is None else stored.grid.lengths.clone()


@takes_axis
def unpad(
    x: MaskedTensor,
    dim: int = 1,
    *,
    lengths: Tensor | Sequence[int] | str | None = None,
    padding_side: str = "right",
) -> list[Tensor]:
    """The sequences of a batch as a list of tensors without padding.

    Without ``lengths``, masked steps at the ends of a sequence count as padding. Gradients flow back.

    Args:
        x (MaskedTensor): A strided batch of sequences ``(B, T, ...)`` of any dtype. Without ``lengths``, each is one
            run of valid steps, padded on either side, unless ``x`` is packed with its lengths.
        dim (int, optional): The time dimension. Default: 1.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.

    Returns:
        list of Tensor: ``B`` tensors ``(T_i, ...)`` in ``x``'s dtype; masked if ``lengths`` are given or ``x`` was
        packed with them, otherwise plain.

    Raises:
        TypeError: ``x`` is not a MaskedTensor, or ``lengths`` are not integers.
        ValueError: ``x`` is not a strided batch ``(B, T, ...)``.
        ValueError: A sequence has masked steps between valid ones, or a step is partly valid, and no ``lengths`` are
            given.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence, or differ from those of a packed
            ``x``.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``x`` was packed with its lengths, and an op has dropped them.
        UnsupportedOpError: It is called in compiled code where graph breaks are not allowed (``fullgraph=True``,
            export).

    Example:
        >>> mt.masked_tensor([[1.0, 2.0], [None, 4.0]]).unpad()
        [tensor([1., 2.]), tensor([4.])]

    See also:
        :func:`from_sequences`, :func:`lengths`, :func:`to_nested`, :func:`to_packed_sequence`.
    """
    rows: Iterable[Tensor]
    x = with_known_lengths("unpad", x, "x.unpad(lengths=[...])") if lengths is None else x
    stored = _stored_values(x, dim, "unpad", True)
    time = shapes.canonical_dim(dim, x.dim())
    if lengths is not None:
        batch, at = (1, 0) if time == 0 else (0, time - 1)
        counts = steps_of_batch("unpad", x, (batch, time), lengths, padding_side).sum(1).tolist()
        first = [x.shape[time] - n if padding_side == "left" else 0 for n in counts]
        rows = (row.narrow(at, *run) for row, *run in zip(x.unbind(batch), first, counts, strict=True))
    elif stored is not None and stored.grid.complete:
        parts = zip(*(t.split(stored.grid.sizes) for t in _steps_first(stored, time)), strict=True)
        rows = (leave(Pair(data.movedim(0, time - 1), mask.movedim(0, time - 1))) for data, mask in parts)
    else:
        rows = _sequences(x, dim, "unpad")
    return [row.clone(memory_format=torch.contiguous_format) for row in rows]


def _steps_first(x: Packed, time: int) -> tuple[Tensor, Tensor]:
    """The stored steps and their mask, ``(N, ...)``, of a batch that is batch first."""
    rest = [d for d in range(1, len(x.order)) if d != time]
    shape = (-1, *(x.shape[d] for d in rest))
    pair = canonicalize(permute(x, [0, time, *rest])).pair()
    return pair.data.reshape(shape), masks.reshape(pair.mask, (len(pair.data), *shape[1:]))


def _sequences(x: MaskedTensor, dim: int, action: str) -> Sequence[Tensor]:
    """The sequences without their padding, as views."""
    stored = _stored_values(x, dim, action)
    if stored is not None:
        sequences: Sequence[Tensor] = stored.values.split(stored.grid.sizes)
        return sequences
    steps = steps_of_runs(x, dim, action)
    starts = steps.to(torch.uint8).argmax(1) if steps.shape[1] else steps.sum(1)
    rows = enter(x, torch.is_grad_enabled()).data.unbind()  # what is masked is left out: nothing to guard
    runs = zip(rows, starts.tolist(), steps.sum(1).tolist(), strict=True)
    time = dim % x.dim() - 1
    return [row.narrow(time, start, length) for row, start, length in runs]


@takes_axis
def to_nested(
    x: MaskedTensor,
    dim: int = 1,
    *,
    lengths: Tensor | Sequence[int] | str | None = None,
    padding_side: str = "right",
) -> Tensor:
    """A nested tensor (``torch.jagged``) of the sequences of a batch.

    Without ``lengths``, masked steps at the ends of a sequence count as padding. A nested tensor has no mask: all steps
    within ``lengths``, or within those of a packed batch, must be valid. Gradients flow back. Nested tensors of one
    packed batch share their offsets, so that torch can add them.

    Args:
        x (MaskedTensor): A strided batch of sequences ``(B, T, ...)`` of any dtype, each one run of valid steps, padded
            on either side.
        dim (int, optional): The time dimension. Default: 1.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.

    Returns:
        Tensor: A nested tensor of shape ``(B, *, ...)`` in ``x``'s dtype.

    Raises:
        TypeError: ``x`` is not a MaskedTensor, or ``lengths`` are not integers.
        ValueError: ``x`` is not a strided batch ``(B, T, ...)``.
        ValueError: A sequence has masked steps between valid ones, or a step is partly valid.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step within ``lengths`` is masked, or one past them is valid.
        UnsupportedOpError: It is called in compiled code where graph breaks are not allowed (``fullgraph=True``,
            export).

    Example:
        >>> nested = mt.masked_tensor([[1.0, 2.0], [3.0, None]]).to_nested()
        >>> [sequence.tolist() for sequence in nested.unbind()]
        [[1.0, 2.0], [3.0]]

    See also:
        :func:`from_nested`, :func:`to_packed_sequence`, :func:`unpad`.

    References:
        ``torch.nested.nested_tensor``.
    """
    x = with_known_lengths("to_nested", x, "x.to_nested(lengths=[...])") if lengths is None else x
    known = _stored_values(x, dim, "to_nested", True)
    if lengths is not None or (known is not None and known.grid.complete):
        _refuse_gaps(x, dim, lengths, padding_side)
    stored = _stored_values(x, dim, "to_nested")
    if stored is not None:
        nested: Tensor = torch.nested.nested_tensor_from_jagged(stored.values.clone(), stored.grid.nested_offsets)
        return nested
    parts = _sequences(x, dim, "to_nested")
    time = dim % x.dim() - 1
    rows = [row.movedim(time, 0) for row in parts]
    nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    return nested if time == 0 else nested.transpose(1, time + 1)


def _refuse_gaps(x: MaskedTensor, dim: int, lengths: Any, side: str) -> None:
    """Raises where a step that exists is masked, also in part: a nested tensor would leave it out, or show it."""
    time = shapes.canonical_dim(dim, x.dim())
    valid = mask_of(x).movedim(time, 1)
    if lengths is not None:
        exists = steps_of_batch("to_nested", x, (0, time), lengths, side)
    else:
        assert x._packed is not None
        exists = x._packed.grid.mask
    if not valid[exists].all():
        raise ValueError(
            "to_nested(): a nested tensor has no mask, and a step that exists is masked; take x.unpad(lengths=...), "
            "whose sequences are masked tensors, or fill the gaps first: ffill, interpolate"
        )


def to_packed_sequence(x: MaskedTensor, enforce_sorted: bool = True) -> PackedSequence:
    """A ``PackedSequence`` of the sequences of a batch, as ``torch.nn.utils.rnn.pack_sequence`` returns.

    Gradients flow back.

    Args:
        x (MaskedTensor): A strided batch of sequences ``(B, T, ...)`` of any dtype, each one run of valid steps, padded
            on either side.
        enforce_sorted (bool, optional): Require sequences in order of decreasing length; False accepts any order.
            Default: True.

    Returns:
        PackedSequence: The sequences, in ``x``'s dtype.

    Raises:
        TypeError: ``x`` is not a MaskedTensor.
        ValueError: ``x`` is not a strided batch ``(B, T, ...)``.
        ValueError: A sequence has masked steps between valid ones, or a step is partly valid.
        RuntimeError: A sequence has no steps.
        RuntimeError: ``enforce_sorted`` is True and the sequences are in another order.
        UnsupportedOpError: It is called in compiled code where graph breaks are not allowed (``fullgraph=True``,
            export).

    Example:
        >>> sequences = mt.masked_tensor([[1.0, 2.0], [3.0, None]]).to_packed_sequence()
        >>> sequences.data, sequences.batch_sizes
        (tensor([1., 3., 2.]), tensor([2, 1]))

    See also:
        :func:`to_nested`, :func:`unpad`.

    References:
        ``torch.nn.utils.rnn.pack_sequence``.
    """
    stored = _stored_values(x, 1, "to_packed_sequence")
    if stored is not None and not enforce_sorted and all(stored.grid.sizes):
        return _packed_steps(stored)
    parts = list(_sequences(x, 1, "to_packed_sequence"))
    if not all(map(len, parts)):
        empty = [i for i, part in enumerate(parts) if not len(part)]
        raise RuntimeError(
            f"a PackedSequence holds no sequence of length 0, which is that of {empty[:8]} here; leave them out: "
            "x[x.lengths() > 0]"
        )
    return pack_sequence(parts, enforce_sorted)


def _packed_steps(stored: Packed) -> PackedSequence:
    """What is stored, step by step, the longest sequence first."""
    rows = stored.grid
    longest_first = rows.lengths.sort(descending=True).indices
    back = invert_permutation(longest_first)
    assert back is not None
    steps = (rows.time * rows.shape[0] + back[rows.batch]).argsort()
    counts = torch.bincount(rows.time).cpu()
    return PackedSequence(stored.values.index_select(0, steps), counts, longest_first, back)


def _stored_values(x: MaskedTensor, dim: int, action: str, missing: bool = False) -> Packed | None:
    """The rows of a packed batch of sequences that begin at their first step: they leave without being padded.

    ``missing``: or of one that was packed with its lengths, of which anything may be masked.
    """
    if type(x) is not MaskedTensor:
        raise errors.not_masked(action, x)
    if current_trace() is not None and type(pair_of(x).mask) is not Tensor:
        raise errors.read_while_compiling(action)
    p = x._packed
    if p is None or x.dim() < 2 or not -x.dim() <= dim < x.dim():
        return None
    if missing and p.grid.complete and (p.order[0], p.order[dim]) == ((0,), (1,)):
        return enter_packed(x)
    if dim % x.dim() != 1:
        return None
    if p.inner is not None or p.first != GRID or p.order != identity_order(x.dim()) or not p.grid.prefix:
        return None
    return enter_packed(x)


def steps_of_runs(x: MaskedTensor, dim: int, action: str) -> Tensor:
    """Which steps ``(B, T)`` are valid."""
    if x.dim() < 2 or layouts.is_sparse(x):
        raise ValueError(f"{action}() needs a strided batch of sequences (B, T, ...), got shape {tuple(x.shape)}")
    time = shapes.canonical_dim(dim, x.dim())
    mask = masks.compact(pair_of(x).mask.movedim(time, 1)[:, :])
    mask = mask.expand(len(x), x.shape[time], *mask.shape[2:])
    mask = mask.flatten(2) if x.dim() > 2 else mask[:, :, None]
    steps = mask.any(2)
    rises = torch.nn.functional.pad(steps, (1, 0)).to(torch.int8).diff(dim=1) > 0
    if not (mask == steps[:, :, None]).all() or (rises.sum(1) > 1).any():
        raise ValueError(
            f"{action}() cannot read the lengths from the mask: a step before the end of a sequence is masked, or only "
            "part of a step. Pass the lengths: x.packed(lengths=[...]), from_sequences(packed=True); or fill the gaps "
            "first (ffill, x.filled(value)). [row.compressed() for row in x] keeps the valid entries alone"
        )
    return steps


mark_opaque(lengths, unpad, to_nested, to_packed_sequence)
add_members(lengths=lengths, unpad=unpad, to_nested=to_nested, to_packed_sequence=to_packed_sequence)
