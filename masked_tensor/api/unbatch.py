"""Leaving as sequences: lengths, a list of tensors, nested tensors, packed sequences.

Each takes a batch ``(B, T, ...)`` whose sequences are one run of valid steps each, padded on either side.
"""

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from .. import errors, layouts, masks, shapes
from ..engine.tensor import MaskedTensor, equip, pair_of
from . import convert


def lengths(x: MaskedTensor, dim: int = 1) -> Tensor:
    """The number of valid steps of every sequence of ``x`` ``(B, T, ...)``: a plain int64 tensor ``(B,)``.

    ``dim`` is where the time lies.  Raises ValueError if a sequence has a hole inside, or a step is valid in part.

        >>> masked_tensor([[1.0, 2.0], [3.0, None]]).lengths()
        tensor([2, 1])
    """
    return _steps(x, dim, "lengths").sum(1)


def unpad(x: MaskedTensor, dim: int = 1) -> list[Tensor]:
    """The sequences of ``x`` ``(B, T, ...)`` without their padding: a list of plain tensors ``(T_i, ...)``.

    ``dim`` is where the time lies in ``x``.  Gradients flow back.  Errors as :func:`lengths`.

        >>> masked_tensor([[1.0, 2.0], [None, 4.0]]).unpad()
        [tensor([1., 2.]), tensor([4.])]
    """
    steps = _steps(x, dim, "unpad")
    starts = steps.to(torch.uint8).argmax(1) if steps.shape[1] else steps.sum(1)
    rows = convert.get_data(x).unbind()
    runs = zip(rows, starts.tolist(), steps.sum(1).tolist(), strict=True)
    time = dim % x.dim() - 1
    return [row.narrow(time, start, length) for row, start, length in runs]


def to_nested(x: MaskedTensor, dim: int = 1) -> Tensor:
    """``x`` as a nested tensor of layout ``torch.jagged``, without its padding.  Arguments and errors as :func:`unpad`.

    >>> masked_tensor([[1.0, 2.0], [3.0, None]]).to_nested().offsets()
    tensor([0, 2, 3])
    """
    time = dim % x.dim() - 1
    rows = [row.movedim(time, 0) for row in unpad(x, dim)]
    nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    return nested if time == 0 else nested.transpose(1, time + 1)


def to_packed_sequence(x: MaskedTensor, enforce_sorted: bool = False) -> PackedSequence:
    """``x`` ``(B, T, ...)`` as a ``PackedSequence``.  Errors as :func:`unpad`; torch packs no empty sequence.

    >>> masked_tensor([[1.0, 2.0], [3.0, None]]).to_packed_sequence().batch_sizes
    tensor([2, 1])
    """
    return pack_sequence(unpad(x), enforce_sorted)


def _steps(x: MaskedTensor, dim: int, action: str) -> Tensor:
    """Which steps ``(B, T)`` are valid."""
    if type(x) is not MaskedTensor:
        raise errors.not_masked(action, x)
    if x.dim() < 2 or layouts.is_sparse(x):
        raise ValueError(f"{action}() takes a strided batch of sequences (B, T, ...), got shape {tuple(x.shape)}")
    (time,) = shapes.canonical_dims(dim, x.dim())
    mask = masks.compact(pair_of(x).mask.movedim(time, 1)[:, :])
    mask = mask.expand(len(x), x.shape[time], *mask.shape[2:]).flatten(2) if x.dim() > 2 else mask[:, :, None]
    steps = mask.any(2)
    rises = torch.nn.functional.pad(steps, (1, 0)).to(torch.int8).diff(dim=1) > 0
    if not (mask == steps[:, :, None]).all() or (rises.sum(1) > 1).any():
        raise ValueError(
            f"{action}() takes sequences that are one run of valid steps; x has a hole inside one. Fill it first "
            "(x.filled(value) and from_lengths, or ffill), or take what is valid: [row.compressed() for row in x]"
        )
    return steps


equip(lengths=lengths, unpad=unpad, to_nested=to_nested, to_packed_sequence=to_packed_sequence)
