"""Batches of sequences from padded data and lengths, lists, tokenizers and nested tensors.

One convention: batch first, ``dim`` is where the time lies in the batch, ``padding_side`` is where the padding goes.
"""

import copy
import warnings
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from ... import errors, masks, shapes
from ...callers import line_of_user
from ...engine.boundary.enter_leave import leave
from ...engine.dynamo import leave_graph, mark_opaque
from ...engine.tensor import MaskedTensor
from ...masks import sides
from ...packing import Packed
from ...pair import Pair, plain_pair
from ...shared.names import names_arguments
from ...shared.rows.lengths import as_lengths, check_side, padded_length, time_elsewhere
from ..containers import accepted_inputs, lists, ragged
from ..make.create import as_result, mask_more, warn_of_nan
from .packing import expect_capacity, from_packed_sequence, pack_list, pack_sequences
from .packing import packed as pack


@names_arguments
def from_lengths(
    padded: Any,
    lengths: Any,
    batch_first: bool = True,
    *,
    dim: int | None = None,
    padding_side: str = "right",
    packed: bool = False,
) -> MaskedTensor:
    """A padded batch in which everything past the end of each sequence is masked.

    The mask takes ``B * T`` bytes, whatever the number of features. Gradients flow back to ``padded``.

    Args:
        padded (Tensor): A padded batch ``(B, T, ...)`` of any dtype, or anything that :func:`masked_tensor` accepts.
        lengths (Tensor): The number of steps of each sequence: integers ``(B,)`` or a list of int.
        batch_first (bool, optional): Whether the batch is ``(B, T, ...)``; False for ``(T, B, ...)``. Default: True.
        dim (int, optional): The time dimension of a batch-first batch, such as 2 for ``(B, C, T)``.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        packed (bool, optional): Store the batch without padding, as :func:`packed` does, with all steps of the
            sequences. Default: False.

    Returns:
        MaskedTensor: Data of the shape and dtype of ``padded``.

    Raises:
        TypeError: ``lengths`` are not integers, or ``padded`` cannot be converted to a tensor.
        ValueError: There is not one length per sequence, or ``lengths`` are given first.
        ValueError: A length is negative or above ``T``.
        ValueError: ``padding_side`` is neither ``"right"`` nor ``"left"``.
        ValueError: ``dim`` is 0, or given with ``batch_first=False``.
        RuntimeError: A sparse tensor violates the invariants of its layout.
        RuntimeError: ``lengths`` cannot be converted to a tensor.
        UnsupportedOpError: ``packed=True`` is given in compiled code.

    Example:
        >>> mt.from_lengths(torch.ones(2, 3), [3, 1])
        masked_tensor([[1.0000, 1.0000, 1.0000],
                       [1.0000,     --,     --]], valid=4/6)
        >>> mt.from_lengths(torch.ones(2, 1, 3), [3, 1], dim=2, padding_side="left").tolist()
        [[[1.0, 1.0, 1.0]], [[None, None, 1.0]]]

    See also:
        :func:`from_sequences`, :func:`from_attention_mask`, :func:`lengths_to_mask`.
    """
    check_side(padding_side)
    pair = accepted_inputs.pair_of_input(padded)
    warn_of_nan(padded, pair)
    lengths = as_lengths(lengths, pair.data.device)
    if pair.data.dim() == 1 and lengths.dim() > 1:
        raise ValueError(
            "from_lengths(padded, lengths): the padded batch comes first, then the length of each sequence"
        )
    batch, time = _dims(dim, batch_first, pair.data.dim())
    if pair.data.dim() < 2 or tuple(lengths.shape) != (pair.data.shape[batch],):
        raise ValueError(
            f"from_lengths needs one length per sequence: padded has shape {tuple(pair.data.shape)} "
            f"({'batch, time' if batch_first else 'time, batch'}, ...), lengths has shape {tuple(lengths.shape)}"
        )
    try:
        mask = lengths_to_mask(lengths, pair.data.shape[time])
    except ValueError as error:
        way = time_elsewhere(lengths, pair.data.shape, time) if batch_first else ""
        raise ValueError(f"from_lengths: {error}{way}") from None
    mask = ragged.per_step(mask.flip(1) if padding_side == "left" else mask, pair.data, time, batch)
    made = mask_more(pair, mask)
    if padding_side == "left":
        sides.note_left(made._pair.mask, time)
    return pack(made, (batch, time), lengths=lengths, padding_side=padding_side) if packed else made


def _dims(dim: int | None, batch_first: bool, count: int) -> tuple[int, int]:
    """Where the batch and its time lie."""
    if dim is not None and not batch_first:
        raise ValueError("dim says where the time lies in a batch that is batch first; leave out batch_first=False")
    if dim is None or count < 2:
        return (0, 1) if batch_first else (1, 0)
    time = shapes.canonical_dim(dim, count)
    if time == 0:
        raise ValueError("dim=0 is the batch; the time lies in a later dimension")
    return 0, time


@names_arguments
def lengths_to_mask(lengths: Any, max_length: int | None = None) -> Tensor:
    """A bool mask that is True at the first ``lengths`` positions: ``mask[..., t] = t < lengths[...]``.

    Args:
        lengths (Tensor): The number of True entries: integers of any shape ``(...)`` or a list of int.
        max_length (int, optional): The size of the new dimension; by default the largest length. Required in compiled
            code, since the default reads the data.

    Returns:
        Tensor: A bool mask of shape ``(..., max_length)``.

    Raises:
        TypeError: ``lengths`` are not integers.
        ValueError: A length is negative or above ``max_length``.
        RuntimeError: ``lengths`` cannot be converted to a tensor.

    Example:
        >>> mt.lengths_to_mask(torch.tensor([2, 0, 3]))
        tensor([[ True,  True, False],
                [False, False, False],
                [ True,  True,  True]])

    See also:
        :func:`from_lengths`, :func:`lengths`.
    """
    lengths = as_lengths(lengths)
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype is torch.bool:
        raise TypeError(f"lengths must be integers, got {errors.dtype_name(lengths.dtype)}")
    if type(lengths) is Tensor and lengths.device.type == "cpu" and lengths.numel():  # no look at what is traced
        low, high = (int(v) for v in lengths.aminmax())
        if low < 0 or (max_length is not None and high > max_length):
            raise ValueError(f"lengths must lie between 0 and {max_length}, got {low} to {high}")
    return masks.lengths_to_mask(lengths, max_length if lengths.numel() else max_length or 0)


@names_arguments
def from_sequences(
    sequences: Sequence[Any],
    *,
    batch_first: bool = True,
    padding_value: float = 0.0,
    dim: int | None = None,
    padding_side: str = "right",
    packed: bool = False,
    length: int | None = None,
    pad_to_multiple_of: int | None = None,
    capacity: int | None = None,
) -> MaskedTensor:
    """A padded batch of sequences of different lengths, batch first, with the padding masked.

    With ``packed=True``, gaps are stored as missing steps, whereas ``x.packed()`` treats them as padding. Gradients
    flow back to the sequences. :func:`pad_sequence` is the same function with torch's arguments.

    Args:
        sequences (list of Tensor): Tensors ``(T_i, ...)`` of any dtype, plain or masked, or anything that
            :func:`masked_tensor` accepts. Different dtypes are promoted.
        batch_first (bool, optional): Whether the result is ``(B, T, ...)``; False for ``(T, B, ...)``. Default: True.
        padding_value (float, optional): The masked-out data of the padding; no result depends on it. Default: 0.0.
        dim (int, optional): The time dimension of the batch, such as 2 for sequences ``(C, T_i)``.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        packed (bool, optional): Store the batch without padding, as :func:`packed` does, with all steps of the
            sequences, even missing ones. No padded tensor is allocated. Default: False.
        length (int, optional): The time size ``T`` of the batch, for code that is compiled for one shape.
        pad_to_multiple_of (int, optional): Round the largest ``T_i`` up to a multiple of this.
        capacity (int, optional): Store exactly this many steps, as :func:`packed` does with ``capacity``. With
            ``length``, all batches of ``B`` sequences have the same sizes.

    Returns:
        MaskedTensor: The batch ``(B, T, ...)``, with ``T`` the largest ``T_i`` unless ``length`` or
        ``pad_to_multiple_of`` is larger, in the dtype of the sequences. For no sequences, an empty batch ``(0, T)``.

    Raises:
        TypeError: A sequence cannot be converted to a tensor.
        TypeError: ``dim``, ``length`` or ``capacity`` is not an int.
        ValueError: Shapes differ in a dimension other than time.
        ValueError: A sequence is longer than ``length``, or both ``length`` and ``pad_to_multiple_of`` are given.
        ValueError: ``padding_side`` is neither ``"right"`` nor ``"left"``.
        ValueError: ``dim`` is 0, or given with ``batch_first=False``.
        ValueError: ``capacity`` is below 1, or below the number of valid steps.
        RuntimeError: A sparse tensor violates the invariants of its layout.
        RuntimeError: ``capacity`` is below the number of valid steps, on a GPU.
        UnsupportedOpError: ``packed=True`` is given in compiled code.

    Example:
        >>> mt.from_sequences([torch.ones(3), torch.zeros(1)])
        masked_tensor([[1.0000, 1.0000, 1.0000],
                       [0.0000,     --,     --]], valid=4/6)
        >>> mt.from_sequences([torch.ones(3), torch.zeros(1)], pad_to_multiple_of=8).shape
        torch.Size([2, 8])
        >>> mt.from_sequences([torch.ones(3), torch.zeros(1)], length=8, capacity=6).is_packed
        True

    See also:
        :func:`from_lengths`, :func:`pad_sequence`, :func:`collate`, :func:`from_nested`, :func:`unpad`.
    """
    if dim is not None and not isinstance(dim, int):
        raise TypeError(
            f"from_sequences pads along one dimension, got dim={dim!r}; masked_tensor(sequences) pads along all that "
            "differ"
        )
    check_side(padding_side)
    if capacity is not None:
        capacity = expect_capacity("from_sequences", capacity)
    if not len(sequences):
        return _empty_batch(dim, batch_first, padded_length("from_sequences", 0, length, pad_to_multiple_of))
    pairs = [accepted_inputs.pair_of_input(s) for s in sequences]
    for given, pair in zip(sequences, pairs, strict=True):
        warn_of_nan(given, pair)
    batch, time = _dims(dim, batch_first, pairs[0].data.dim() + 1)
    along = time - 1 if batch == 0 else 0
    ragged.expect_one("from_sequences", pairs, along, 1)
    lengths = [p.data.shape[along] for p in pairs]
    steps = padded_length("from_sequences", max(lengths), length, pad_to_multiple_of)
    whole = all(_is_whole(s) for s in sequences)
    if packed and capacity is None and max(len(p.data.shape) and p.data.numel() for p in pairs):
        made: MaskedTensor = leave(pack_list(pairs, padding_side, batch, time, whole, steps))
        return made
    pair = ragged.pad_and_stack(pairs, padding_side, padding_value, whole=whole, wanted=(along, steps))
    if batch == 1:
        pair = Pair(pair.data.transpose(0, 1), pair.mask.transpose(0, 1))
    made = as_result(pair)
    if capacity is not None:
        return pack(made, (batch, time), capacity=capacity)
    return pack(made, (batch, time), lengths=lengths, padding_side=padding_side) if packed else made


def _empty_batch(dim: int | None, batch_first: bool, steps: int) -> MaskedTensor:
    """A batch of no sequences, with as many dimensions as are known of."""
    batch, time = _dims(dim, batch_first, 2 if dim is None else max(dim, 1) + 1)
    shape = [0] * (max(batch, time) + 1)
    shape[time] = steps
    return as_result(plain_pair(torch.zeros(shape)))


@names_arguments
def pad_sequence(
    sequences: Sequence[Any],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
    *,
    length: int | None = None,
    pad_to_multiple_of: int | None = None,
) -> MaskedTensor:
    """An alias of :func:`from_sequences` with torch's arguments and torch's default, time first.

    Changing the import from torch's function keeps all shapes. New code should use :func:`from_sequences`, which is
    batch first and has more options.

    Args:
        sequences (list of Tensor): Tensors ``(T_i, ...)`` of any dtype, plain or masked, or anything that
            :func:`masked_tensor` accepts. Different dtypes are promoted.
        batch_first (bool, optional): Whether the result is ``(B, T, ...)`` instead of ``(T, B, ...)``. Default: False.
        padding_value (float, optional): The masked-out data of the padding; no result depends on it. Default: 0.0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        length (int, optional): The time size ``T`` of the batch.
        pad_to_multiple_of (int, optional): Round the largest ``T_i`` up to a multiple of this.

    Returns:
        MaskedTensor: The batch ``(T, B, ...)``, with ``T`` the largest ``T_i`` unless ``length`` or
        ``pad_to_multiple_of`` is larger, in the dtype of the sequences.

    Raises:
        TypeError: A sequence cannot be converted to a tensor.
        TypeError: ``length`` is not an int.
        ValueError: Shapes differ after the first dimension.
        ValueError: A sequence is longer than ``length``, or both ``length`` and ``pad_to_multiple_of`` are given.
        ValueError: ``padding_side`` is neither ``"right"`` nor ``"left"``.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> mt.pad_sequence([torch.ones(2), torch.zeros(1)])
        masked_tensor([[1.0000, 0.0000],
                       [1.0000,     --]], valid=3/4)

    See also:
        :func:`from_sequences`, :func:`collate`.

    References:
        ``torch.nn.utils.rnn.pad_sequence``.
    """
    return from_sequences(
        sequences,
        batch_first=batch_first,
        padding_value=padding_value,
        padding_side=padding_side,
        length=length,
        pad_to_multiple_of=pad_to_multiple_of,
    )


def _is_whole(sequence: Any) -> bool:
    return isinstance(sequence, Tensor) and not accepted_inputs.has_validity(sequence)


@names_arguments
def from_nested(
    nested: Tensor | PackedSequence,
    *,
    packed: bool = False,
    length: int | None = None,
    pad_to_multiple_of: int | None = None,
) -> MaskedTensor:
    """A padded batch from a nested tensor or a ``PackedSequence``, with the padding masked.

    Each dimension is as long as the longest component; ``length`` sets the time dimension. Gradients flow back.

    Args:
        nested (Tensor): A nested tensor ``(B, *, ...)``, jagged or strided, of any dtype; or a ``PackedSequence``,
            whose sequences keep their original order.
        packed (bool, optional): Store the batch without padding, as :func:`packed` does. The values of a jagged tensor
            ``(B, T, ...)`` are not copied. Default: False.
        length (int, optional): The time size ``T`` of the batch.
        pad_to_multiple_of (int, optional): Round the largest ``T`` up to a multiple of this.

    Returns:
        MaskedTensor: The batch ``(B, T, ...)``, in the dtype of ``nested``.

    Raises:
        TypeError: ``nested`` is neither a nested tensor nor a ``PackedSequence``.
        TypeError: ``length`` is not an int.
        ValueError: A sequence is longer than ``length``, or both ``length`` and ``pad_to_multiple_of`` are given.
        ValueError: A nested tensor has no components.
        RuntimeError: A sparse tensor violates the invariants of its layout.
        UnsupportedOpError: ``packed=True`` is given in compiled code.

    Example:
        >>> parts = [torch.ones(2), torch.ones(1)]
        >>> nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
        >>> mt.from_nested(nested)
        masked_tensor([[1.0000, 1.0000],
                       [1.0000,     --]], valid=3/4)

    See also:
        :func:`from_sequences`, :func:`to_nested`.

    References:
        ``torch.nested``, ``torch.nn.utils.rnn.pad_packed_sequence``.
    """
    plain = isinstance(nested, PackedSequence) and type(nested.data) is not MaskedTensor
    if not plain and not (isinstance(nested, Tensor) and nested.is_nested):
        raise TypeError(f"from_nested expects a nested tensor, got {type(nested).__name__}; use masked_tensor(data)")
    steps = partial(padded_length, "from_nested", length=length, multiple=pad_to_multiple_of)
    runs = None
    if packed and isinstance(nested, PackedSequence):
        runs = from_packed_sequence(nested, steps(len(nested.batch_sizes)))
    elif packed:
        runs = _runs(nested, steps)
    if runs is not None:
        made: MaskedTensor = leave(runs)
        return made
    pair, time = accepted_inputs.pair_of_input(nested), _time_of(nested)
    sizes = [steps(n) if d == time else n for d, n in enumerate(pair.data.shape)]
    found = as_result(ragged.pad_dims(pair, sizes))
    if not packed or found.dim() == 1 or not isinstance(nested, Tensor):
        return found
    return pack(found, lengths=[len(part) for part in nested.unbind()])


def _time_of(nested: Any) -> int:
    """The dimension along which the components of a nested tensor differ; of a strided one, the first."""
    if not isinstance(nested, Tensor) or nested.layout is not torch.jagged:
        return 1
    return next((d for d, n in enumerate(nested.shape[1:], 1) if not isinstance(n, int)), 1)


def _runs(nested: Any, steps: Callable[[int], int]) -> Packed | None:
    """The components of a nested tensor as rows, if they lie one after the other in its values ``(N, ...)``."""
    if nested.layout is not torch.jagged or isinstance(nested.shape[1], int) or nested.lengths() is not None:
        return None
    values, lengths = nested.values(), nested.offsets().diff().tolist()
    return pack_sequences(values, lengths, steps(max(lengths))) if values.numel() else None


@names_arguments
def from_attention_mask(inputs: Any, attention_mask: Any = None, *, dim: int = 1) -> Any:
    """The output of a tokenizer or feature extractor, masked where its ``attention_mask`` is 0.

    In a mapping, every tensor with the batch and time dimensions of the mask is masked, and ``attention_mask`` itself
    is removed. For a mask that is True at padding, such as ``src_key_padding_mask``, pass ``~mask``. On the CPU, a
    sequence without a valid step causes a UserWarning.

    Args:
        inputs (Tensor): Data ``(B, T, ...)`` of any dtype, or a mapping of such tensors.
        attention_mask (Tensor, optional): 1 = valid; ``(B, T)``, bool or the integers 0 and 1. By default, that of the
            mapping.
        dim (int, optional): The time dimension, such as 2 for ``(B, C, T)``. Default: 1.

    Returns:
        MaskedTensor or dict: Data of the shape and dtype of ``inputs``, or a dict of them. For a ``BatchEncoding`` or
        another ``UserDict``, an object of the same type, so that ``.to(device)`` works.

    Raises:
        TypeError: ``inputs`` is not a mapping and no ``attention_mask`` is given.
        TypeError: ``inputs`` or the mask cannot be converted to a tensor, or the mask is floating point.
        ValueError: The mapping has no ``attention_mask``.
        ValueError: The mask has another batch or time size than ``inputs``, or holds integers other than 0 and 1.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> ids = torch.tensor([[5, 6, 7], [8, 0, 0]])
        >>> mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
        >>> mt.from_attention_mask(ids, mask)
        masked_tensor([[ 5,  6,  7],
                       [ 8, --, --]], valid=4/6)
        >>> batch = {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([1, 0])}
        >>> mt.from_attention_mask(batch)
        {'input_ids': masked_tensor([[ 5,  6,  7],
                       [ 8, --, --]], valid=4/6), 'labels': tensor([1, 0])}

    See also:
        :func:`from_lengths`.
    """
    if isinstance(inputs, Mapping):
        rest = dict(inputs)
        found = rest.pop("attention_mask", None) if attention_mask is None else attention_mask
        if found is None:
            raise ValueError("inputs have no attention_mask; call the tokenizer with return_attention_mask=True")
        mask = _as_bool(found)
        masked = {name: _mask_fitting(value, mask, dim) if _is_data(value) else value for name, value in rest.items()}
        if not isinstance(inputs, UserDict):
            return masked
        result = copy.copy(inputs)  # a BatchEncoding keeps its words and offsets
        result.data = masked
        return result
    if attention_mask is None:
        raise TypeError("from_attention_mask needs inputs and attention_mask, or one dict that holds both")
    return _mask_steps(inputs, _as_bool(attention_mask), dim)


def _mask_steps(inputs: Any, mask: Tensor, dim: int) -> MaskedTensor:
    pair = accepted_inputs.pair_of_input(inputs)
    if not _fits(pair.data, mask, dim):
        raise ValueError(
            f"attention_mask must have the batch and time of inputs {tuple(pair.data.shape)} (time at dim={dim}), got "
            f"{tuple(mask.shape)}"
        )
    return mask_more(pair, ragged.per_step(mask.to(pair.data.device), pair.data, dim))


def _as_bool(attention_mask: Any) -> Tensor:
    numbers = accepted_inputs.pair_of_input(attention_mask)  # of lists, rows of different length are padded
    if numbers.data.is_floating_point() or numbers.data.is_complex():
        raise errors.mask_of_floats("attention_mask", numbers.data)
    mask = accepted_inputs.mask_of_input(attention_mask, numbers.data, "attention_mask")
    if type(mask) is Tensor and mask.device.type == "cpu" and mask.numel() and not mask.any(-1).all():
        warnings.warn(
            "attention_mask has rows without a valid step; 1 and True mean valid. If yours is True at padding, as "
            "src_key_padding_mask is, pass ~mask",
            stacklevel=line_of_user(),
        )
    return mask


def _is_data(value: Any) -> bool:
    return isinstance(value, Tensor) or lists.is_array(value) or lists.of_numbers(value)


def _mask_fitting(value: Any, mask: Tensor, dim: int) -> Any:
    pair = accepted_inputs.pair_of_input(value)
    if not _fits(pair.data, mask, dim):
        return value
    return mask_more(pair, ragged.per_step(mask.to(pair.data.device), pair.data, dim))


def _fits(data: Tensor, mask: Tensor, dim: int) -> bool:
    return mask.dim() == 2 and -data.dim() <= dim < data.dim() and (data.shape[0], data.shape[dim]) == tuple(mask.shape)


mark_opaque(from_lengths, _as_bool, _mask_fitting, _mask_steps)
leave_graph(
    from_sequences,
    "the lengths would be sizes of the graph, and each batch would be compiled anew: make the batch outside, such as "
    "in the DataLoader, or give the compiled function padded data and lengths, for from_lengths(data, lengths)",
)
