"""Batches of sequences: made from padded data and lengths, from lists, from tokenizers, from nested tensors.

One convention: batch first, ``dim`` is where the time lies in the batch, ``padding_side`` is where the padding goes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from .. import errors, masks, shapes
from ..engine.boundary.enter_leave import leave
from ..engine.dynamo import mark_opaque
from ..engine.tensor import MaskedTensor
from ..packing import Packed
from ..pair import Pair
from . import accepted_inputs, lists, ragged
from .create import as_result, mask_more
from .packing import from_packed_sequence, pack_list, pack_sequences
from .packing import packed as pack


def from_lengths(
    padded: Any,
    lengths: Any,
    batch_first: bool = True,
    *,
    dim: int | None = None,
    padding_side: str = "right",
    packed: bool = False,
) -> MaskedTensor:
    """A padded batch ``(B, T, ...)`` of which sequence ``b`` is valid up to ``lengths[b]``.

    ``dim`` is the dimension of time, such as 2 for ``(B, C, T)``; ``padding_side="left"`` for padding that comes
    first.  The mask takes ``B * T`` bytes however many features there are.  ``batch_first=False``: the batch is
    ``(T, B, ...)``.
    ``packed``: stored without the padding (:func:`masked_tensor.packed`).
    Raises ValueError if there is not one length per sequence, or one is negative or above T.

        >>> from_lengths(torch.ones(2, 3), [3, 1])
        masked_tensor([[1.0000, 1.0000, 1.0000],
                       [1.0000,     --,     --]], valid=4/6)
        >>> from_lengths(torch.ones(2, 1, 3), [3, 1], dim=2, padding_side="left").tolist()
        [[[1.0, 1.0, 1.0]], [[None, None, 1.0]]]
    """
    ragged.check_side(padding_side)
    pair = accepted_inputs.pair_of_input(padded)
    lengths = torch.as_tensor(lengths, device=pair.data.device)
    batch, time = _dims(dim, batch_first, pair.data.dim())
    if pair.data.dim() < 2 or tuple(lengths.shape) != (pair.data.shape[batch],):
        raise ValueError(
            f"from_lengths needs one length per sequence: padded has shape {tuple(pair.data.shape)} "
            f"({'batch, time' if batch_first else 'time, batch'}, ...), lengths has shape {tuple(lengths.shape)}"
        )
    mask = lengths_to_mask(lengths, pair.data.shape[time])
    made = mask_more(pair, ragged.per_step(mask.flip(1) if padding_side == "left" else mask, pair.data, time, batch))
    return pack(made, (batch, time)) if packed else made


def _dims(dim: int | None, batch_first: bool, count: int) -> tuple[int, int]:
    """Where the batch and its time lie."""
    if dim is not None and not batch_first:
        raise ValueError("dim says where the time lies in a batch that is batch first; leave out batch_first=False")
    if dim is None or count < 2:
        return (0, 1) if batch_first else (1, 0)
    (time,) = shapes.canonical_dims(dim, count)
    if time == 0:
        raise ValueError("dim=0 is the batch; the time lies in a later dimension")
    return 0, time


def lengths_to_mask(lengths: Any, max_length: int | None = None) -> Tensor:
    """The bool mask ``(..., max_length)`` that is True at positions below each of the ``lengths`` ``(...)``.

    Without ``max_length`` the longest length decides, for which the lengths must be read: give it in compiled code.

        >>> lengths_to_mask(torch.tensor([2, 0, 3]))
        tensor([[ True,  True, False],
                [False, False, False],
                [ True,  True,  True]])
    """
    lengths = torch.as_tensor(lengths)
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype is torch.bool:
        raise TypeError(f"lengths must be integers, got {errors.dtype_name(lengths.dtype)}")
    if type(lengths) is Tensor and lengths.device.type == "cpu" and lengths.numel():  # no look at what is traced
        low, high = (int(v) for v in lengths.aminmax())
        if low < 0 or (max_length is not None and high > max_length):
            raise ValueError(f"lengths must lie between 0 and {max_length}, got {low} to {high}")
    return masks.lengths_to_mask(lengths, max_length if lengths.numel() else max_length or 0)


def from_sequences(
    sequences: Sequence[Any],
    *,
    batch_first: bool = True,
    padding_value: float = 0.0,
    dim: int | None = None,
    padding_side: str = "right",
    packed: bool = False,
) -> MaskedTensor:
    """Sequences of different length as one batch, batch first, in which the padding is masked.

    ``sequences`` are tensors ``(T_i, ...)``, plain or masked, or what :func:`masked_tensor` takes; the result is
    ``(B, T, ...)``, or ``(T, B, ...)`` with ``batch_first=False``.  ``dim`` is where the time lies in the batch, such
    as 2 for sequences ``(C, T_i)``; ``padding_side="left"`` puts the padding first.
    ``padding_value`` only says what lies under the mask. ``packed``: the padding is never made
    (:func:`masked_tensor.packed`). Gradients flow back. Raises ValueError for no sequences, or if their shapes differ
    elsewhere.  :func:`pad_sequence` is the same with torch's arguments.

        >>> from_sequences([torch.ones(3), torch.zeros(1)])
        masked_tensor([[1.0000, 1.0000, 1.0000],
                       [0.0000,     --,     --]], valid=4/6)
    """
    if not len(sequences):
        raise ValueError("from_sequences needs at least one sequence")
    pairs = [accepted_inputs.pair_of_input(s) for s in sequences]
    batch, time = _dims(dim, batch_first, pairs[0].data.dim() + 1)
    ragged.expect_one("from_sequences", pairs, time - 1 if batch == 0 else 0)
    whole = all(_is_whole(s) for s in sequences)
    if packed and whole and max(len(p.data.shape) and p.data.numel() for p in pairs):
        made: MaskedTensor = leave(pack_list([p.data for p in pairs], padding_side, batch, time))
        return made
    pair = ragged.pad_and_stack(pairs, padding_side, padding_value, whole=whole)
    if batch == 1:
        pair = Pair(pair.data.transpose(0, 1), pair.mask.transpose(0, 1))
    return pack(as_result(pair), (batch, time)) if packed else as_result(pair)


def pad_sequence(
    sequences: Sequence[Any],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> MaskedTensor:
    """``torch.nn.utils.rnn.pad_sequence`` with its arguments and shapes, in which the padding is masked.

    The result is ``(T, B, ...)``, or ``(B, T, ...)`` with ``batch_first=True``, as torch's, so that a changed import
    changes no shape.  :func:`from_sequences` is batch first and takes more.  Errors as there.

        >>> pad_sequence([torch.ones(2), torch.zeros(1)])
        masked_tensor([[1.0000, 0.0000],
                       [1.0000,     --]], valid=3/4)
    """
    return from_sequences(sequences, batch_first=batch_first, padding_value=padding_value, padding_side=padding_side)


def _is_whole(sequence: Any) -> bool:
    return isinstance(sequence, Tensor) and not accepted_inputs.has_validity(sequence)


def from_nested(nested: Tensor | PackedSequence, *, packed: bool = False) -> MaskedTensor:
    """A nested tensor, jagged or strided, as a batch: every dimension is as long as the longest of its components.

    Or a ``PackedSequence``, batch first, its sequences in the order in which they were given.  ``packed``: stored
    without padding (:func:`masked_tensor.packed`); the values of a jagged tensor ``(B, T, ...)`` are taken as they are,
    those of a ``PackedSequence`` only put in order.  Gradients flow back.  Raises TypeError for anything else.

        >>> parts = [torch.ones(2), torch.ones(1)]
        >>> nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
        >>> from_nested(nested)
        masked_tensor([[1.0000, 1.0000],
                       [1.0000,     --]], valid=3/4)
    """
    steps = isinstance(nested, PackedSequence) and type(nested.data) is not MaskedTensor
    if not steps and not (isinstance(nested, Tensor) and nested.is_nested):
        raise TypeError(f"from_nested takes a nested tensor, got {type(nested).__name__}; use masked_tensor(data)")
    runs = None if not packed else from_packed_sequence(nested) if isinstance(nested, PackedSequence) else _runs(nested)
    if runs is not None:
        made: MaskedTensor = leave(runs)
        return made
    found = as_result(accepted_inputs.pair_of_input(nested))
    return pack(found) if packed and found.dim() > 1 else found


def _runs(nested: Any) -> Packed | None:
    """The components of a nested tensor as rows, if they lie one after the other in its values ``(N, ...)``."""
    if nested.layout is not torch.jagged or isinstance(nested.shape[1], int) or nested.lengths() is not None:
        return None
    values: Tensor = nested.values()
    return pack_sequences(values, nested.offsets().diff().tolist()) if values.numel() else None


def from_attention_mask(inputs: Any, attention_mask: Any = None, *, dim: int = 1) -> Any:
    """What a tokenizer or feature extractor made, with holes where its ``attention_mask`` ``(B, T)`` is 0.

    ``inputs`` is one tensor ``(B, T, ...)``, or the whole mapping (a ``BatchEncoding``): then the result is a dict in
    which every tensor with that batch and time has holes, without ``attention_mask``, as nobody needs it any more.
    ``dim`` is where the time lies, such as 2 for ``(B, C, T)``.

        >>> ids = torch.tensor([[5, 6, 7], [8, 0, 0]])
        >>> mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
        >>> from_attention_mask(ids, mask)
        masked_tensor([[ 5,  6,  7],
                       [ 8, --, --]], valid=4/6)
        >>> batch = {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([1, 0])}
        >>> from_attention_mask(batch)
        {'input_ids': masked_tensor([[ 5,  6,  7],
                       [ 8, --, --]], valid=4/6), 'labels': tensor([1, 0])}
    """
    if isinstance(inputs, Mapping):
        rest = dict(inputs)
        found = rest.pop("attention_mask", None) if attention_mask is None else attention_mask
        if found is None:
            raise KeyError("inputs have no attention_mask; ask the tokenizer for it: return_attention_mask=True")
        mask = _as_bool(found)
        return {name: _expand_mask(value, mask, dim) for name, value in rest.items()}
    if attention_mask is None:
        raise TypeError("from_attention_mask takes a mapping with an attention_mask, or inputs and attention_mask")
    pair, mask = accepted_inputs.pair_of_input(inputs), _as_bool(attention_mask)
    if not _fits(pair.data, mask, dim):
        raise ValueError(
            f"attention_mask must have the batch and time of inputs {tuple(pair.data.shape)} (time at dim={dim}), got "
            f"{tuple(mask.shape)}"
        )
    return mask_more(pair, ragged.per_step(mask.to(pair.data.device), pair.data, dim))


def _as_bool(attention_mask: Any) -> Tensor:
    numbers = accepted_inputs.pair_of_input(attention_mask)  # of lists, rows of different length end in holes
    return accepted_inputs.mask_of_input(attention_mask, numbers.data, "attention_mask")


def _expand_mask(value: Any, mask: Tensor, dim: int) -> Any:
    if not isinstance(value, Tensor) and not lists.is_array(value) and not lists.of_numbers(value):
        return value
    pair = accepted_inputs.pair_of_input(value)
    if not _fits(pair.data, mask, dim):
        return value
    return mask_more(pair, ragged.per_step(mask.to(pair.data.device), pair.data, dim))


def _fits(data: Tensor, mask: Tensor, dim: int) -> bool:
    return mask.dim() == 2 and data.dim() > dim and (data.shape[0], data.shape[dim]) == tuple(mask.shape)


mark_opaque(from_lengths)
