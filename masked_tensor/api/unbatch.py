"""Leaving as sequences: lengths, a list of tensors, nested tensors, packed sequences.

Each takes a batch ``(B, T, ...)`` whose sequences are one run of valid steps each, padded on either side.  Of a packed
batch with the padding behind, the stored rows leave as they are.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, invert_permutation, pack_sequence

from .. import errors, layouts, masks, shapes
from ..compat import current_trace
from ..engine.boundary.enter_leave import enter
from ..engine.boundary.packed import enter_packed
from ..engine.dynamo import mark_opaque
from ..engine.tensor import MaskedTensor, add_members, pair_of
from ..packing import Packed
from ..packing.dim_order import GRID, identity_order


def lengths(x: MaskedTensor, dim: int = 1) -> Tensor:
    """The number of valid steps of every sequence of a batch.

    Args:
        x (MaskedTensor): A strided batch of sequences ``(B, T, ...)`` of any dtype, each one run of valid steps, padded
            on either side.
        dim (int, optional): The dimension of time.

    Returns:
        Tensor: A plain int64 tensor of shape ``(B,)``.

    Raises:
        TypeError: ``x`` is no MaskedTensor.
        ValueError: ``x`` is no strided batch ``(B, T, ...)``, a sequence has masked steps between valid ones, or a step
            is valid in part.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: It is called in compiled code that does not leave it to eager code.

    Example:
        >>> mt.masked_tensor([[1.0, 2.0], [3.0, None]]).lengths()
        tensor([2, 1])
    """
    stored = _stored_values(x, dim, "lengths")
    return _steps(x, dim, "lengths").sum(1) if stored is None else stored.grid.lengths.clone()


def unpad(x: MaskedTensor, dim: int = 1) -> list[Tensor]:
    """The sequences of a batch without their padding, as a list of plain tensors.

    Gradients flow back.

    Args:
        x (MaskedTensor): A strided batch of sequences ``(B, T, ...)`` of any dtype, each one run of valid steps, padded
            on either side.
        dim (int, optional): The dimension of time.

    Returns:
        list of Tensor: ``B`` tensors ``(T_i, ...)`` in ``x``'s dtype.

    Raises:
        TypeError: ``x`` is no MaskedTensor.
        ValueError: ``x`` is no strided batch ``(B, T, ...)``, a sequence has masked steps between valid ones, or a step
            is valid in part.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: It is called in compiled code that does not leave it to eager code.

    Example:
        >>> mt.masked_tensor([[1.0, 2.0], [None, 4.0]]).unpad()
        [tensor([1., 2.]), tensor([4.])]
    """
    return [row.clone(memory_format=torch.contiguous_format) for row in _sequences(x, dim, "unpad")]


def _sequences(x: MaskedTensor, dim: int, action: str) -> Sequence[Tensor]:
    """The sequences without their padding, as views."""
    stored = _stored_values(x, dim, action)
    if stored is not None:
        sequences: Sequence[Tensor] = stored.values.split(stored.grid.sizes)
        return sequences
    steps = _steps(x, dim, action)
    starts = steps.to(torch.uint8).argmax(1) if steps.shape[1] else steps.sum(1)
    rows = enter(x, torch.is_grad_enabled()).data.unbind()  # what is masked is left out: nothing to guard
    runs = zip(rows, starts.tolist(), steps.sum(1).tolist(), strict=True)
    time = dim % x.dim() - 1
    return [row.narrow(time, start, length) for row, start, length in runs]


def to_nested(x: MaskedTensor, dim: int = 1) -> Tensor:
    """A nested tensor of layout ``torch.jagged`` of the sequences of a batch, without their padding.

    Gradients flow back. Those of one packed batch share their offsets, without which torch does not add them.

    Args:
        x (MaskedTensor): A strided batch of sequences ``(B, T, ...)`` of any dtype, each one run of valid steps, padded
            on either side.
        dim (int, optional): The dimension of time.

    Returns:
        Tensor: A nested tensor of shape ``(B, *, ...)`` in ``x``'s dtype.

    Raises:
        TypeError: ``x`` is no MaskedTensor.
        ValueError: ``x`` is no strided batch ``(B, T, ...)``, a sequence has masked steps between valid ones, or a step
            is valid in part.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: It is called in compiled code that does not leave it to eager code.

    Example:
        >>> mt.masked_tensor([[1.0, 2.0], [3.0, None]]).to_nested().offsets()
        tensor([0, 2, 3])

    References:
        ``torch.nested.nested_tensor``.
    """
    stored = _stored_values(x, dim, "to_nested")
    if stored is not None:
        nested: Tensor = torch.nested.nested_tensor_from_jagged(stored.values.clone(), stored.grid.nested_offsets)
        return nested
    parts = _sequences(x, dim, "to_nested")
    time = dim % x.dim() - 1
    rows = [row.movedim(time, 0) for row in parts]
    nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    return nested if time == 0 else nested.transpose(1, time + 1)


def to_packed_sequence(x: MaskedTensor, enforce_sorted: bool = True) -> PackedSequence:
    """A ``PackedSequence`` of the sequences of a batch, with torch's default for sorting.

    Gradients flow back.

    Args:
        x (MaskedTensor): A strided batch of sequences ``(B, T, ...)`` of any dtype, each one run of valid steps, padded
            on either side.
        enforce_sorted (bool, optional): Expect the longest sequence first and none longer than the one before it; False
            takes them in any order.

    Returns:
        PackedSequence: The sequences, in ``x``'s dtype.

    Raises:
        TypeError: ``x`` is no MaskedTensor.
        ValueError: ``x`` is no strided batch ``(B, T, ...)``, a sequence has masked steps between valid ones, or a step
            is valid in part.
        RuntimeError: A sequence is empty, or ``enforce_sorted`` is True and the sequences are in another order.
        UnsupportedOpError: It is called in compiled code that does not leave it to eager code.

    Example:
        >>> mt.masked_tensor([[1.0, 2.0], [3.0, None]]).to_packed_sequence().batch_sizes
        tensor([2, 1])

    References:
        ``torch.nn.utils.rnn.pack_sequence``.
    """
    stored = _stored_values(x, 1, "to_packed_sequence")
    if stored is None or enforce_sorted or not all(stored.grid.sizes):
        return pack_sequence(list(_sequences(x, 1, "to_packed_sequence")), enforce_sorted)
    rows = stored.grid
    longest_first = rows.lengths.sort(descending=True).indices
    back = invert_permutation(longest_first)
    assert back is not None
    steps = (rows.time * rows.shape[0] + back[rows.batch]).argsort()
    counts = torch.bincount(rows.time).cpu()
    return PackedSequence(stored.values.index_select(0, steps), counts, longest_first, back)


def _stored_values(x: MaskedTensor, dim: int, action: str) -> Packed | None:
    """The rows of a packed batch of sequences that begin at their first step: they leave without being padded."""
    if type(x) is not MaskedTensor:
        raise errors.not_masked(action, x)
    if current_trace() is not None and type(pair_of(x).mask) is not Tensor:
        raise errors.read_while_compiling(action)
    if x._packed is None or x.dim() < 2 or dim % x.dim() != 1:
        return None
    p = x._packed
    if p.inner is not None or p.first != GRID or p.order != identity_order(x.dim()) or not p.grid.prefix:
        return None
    return enter_packed(x, torch.is_grad_enabled(), enter)


def _steps(x: MaskedTensor, dim: int, action: str) -> Tensor:
    """Which steps ``(B, T)`` are valid."""
    if x.dim() < 2 or layouts.is_sparse(x):
        raise ValueError(f"{action}() takes a strided batch of sequences (B, T, ...), got shape {tuple(x.shape)}")
    (time,) = shapes.canonical_dims(dim, x.dim())
    mask = masks.compact(pair_of(x).mask.movedim(time, 1)[:, :])
    mask = mask.expand(len(x), x.shape[time], *mask.shape[2:])
    mask = mask.flatten(2) if x.dim() > 2 else mask[:, :, None]
    steps = mask.any(2)
    rises = torch.nn.functional.pad(steps, (1, 0)).to(torch.int8).diff(dim=1) > 0
    if not (mask == steps[:, :, None]).all() or (rises.sum(1) > 1).any():
        raise ValueError(
            f"{action}() takes sequences whose masked steps are at an end, and steps that are valid as a whole; fill x "
            "first (x.filled(value) and from_lengths, or ffill), or take what is valid: [row.compressed() for row in x]"
        )
    return steps


mark_opaque(lengths, unpad, to_nested, to_packed_sequence)
add_members(lengths=lengths, unpad=unpad, to_nested=to_nested, to_packed_sequence=to_packed_sequence)
