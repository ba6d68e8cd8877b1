"""Flat tokens: the steps of all sequences of a batch in one row, as plain data with positions and boundaries."""

from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from ... import errors
from ...compat import current_trace, in_transform, is_readable_memory
from ...engine.boundary.enter_leave import enter, leave
from ...engine.boundary.packed import enter_packed
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor, add_members
from ...op import NoRule
from ...packing import Grid, Packed, pack
from ...packing.dim_order import GRID, identity_order
from ...packing.missing import leave_out, lift
from ...packing.packed import pack_values, unpack


@dataclass(frozen=True, eq=False)
class FlatTokens:
    """The result of ``x.to_flat()``: the tokens of a batch as one row of plain data, and the position of each sequence.

    Attributes:
        values (Tensor): The tokens ``(1, N, ...)``, plain, in the dtype of the batch.
    """

    values: Tensor
    grid: Grid

    @property
    def position_ids(self) -> Tensor:
        """The position of each token in its sequence, from 0; int64, ``(1, N)``."""
        return positions_of(self.grid)[None]

    @property
    def cu_seqlens(self) -> Tensor:
        """The start of each sequence, and the end of the last one; int32, ``(B + 1,)``."""
        bounds: Tensor = self.grid.bounds
        return bounds

    @property
    def max_seqlen(self) -> int:
        """An upper bound of the sequence lengths."""
        return self.grid.shape[1]

    def __repr__(self) -> str:
        sequences, tokens = self.grid.shape[0], self.values.shape[1]
        return f"FlatTokens({tokens} tokens of {sequences} sequences, values {tuple(self.values.shape)})"


def to_flat(x: MaskedTensor) -> FlatTokens:
    """The steps of all sequences in one row, as plain data with the arguments of variable-length attention.

    Args:
        x (MaskedTensor): A batch ``(B, T, ...)`` of any dtype, padded on either side, or packed. Each step is either
            valid in all its features or padding.

    Returns:
        FlatTokens: ``values`` ``(1, N, ...)`` in ``x``'s dtype, through which gradients flow back to ``x``;
        ``position_ids`` ``(1, N)``, ``cu_seqlens`` ``(B + 1,)`` and ``max_seqlen``.

    Raises:
        TypeError: ``x`` is not a MaskedTensor.
        ValueError: ``x`` is not a batch ``(B, T, ...)``.
        ValueError: A step within a sequence is missing or partly valid.
        UnsupportedOpError: It is called in compiled code.

    Example:
        >>> x = mt.from_lengths(torch.arange(6.0).view(2, 3), [3, 2])
        >>> flat = x.to_flat()
        >>> flat.values, flat.cu_seqlens
        (tensor([[0., 1., 2., 3., 4.]]), tensor([0, 3, 5], dtype=torch.int32))
        >>> mt.from_flat(flat.values * 2, flat).unpad()
        [tensor([0., 2., 4.]), tensor([6., 8.])]
    """
    if type(x) is not MaskedTensor:
        raise errors.not_masked("to_flat", x)
    if x.layout is not torch.strided or x.dim() < GRID:
        raise ValueError(
            f"to_flat() needs a strided batch (B, T, ...), got layout {x.layout} and shape {tuple(x.shape)}"
        )
    if current_trace() is not None:
        raise errors.read_while_compiling("to_flat")
    return tokens_of(whole_steps(x))


def whole_steps(x: MaskedTensor) -> Packed:
    """A batch ``(B, T, ...)`` as the record of its tokens, of which nothing is missing."""
    stored = stored_tokens(x)
    if not stored.is_plain_grid or stored.order[:GRID] != ((0,), (1,)):
        raise ValueError(
            "to_flat() needs a batch (B, T, ...), with the batch first and time second, which this packed tensor has "
            "elsewhere: move them to the front, x.movedim(...)"
        )
    if stored.inner is not None and stored.grid.complete is False:
        with suppress(NoRule):  # a step that is masked in part; or no value may be looked at
            stored = leave_out(stored)
    if stored.inner is not None:
        raise ValueError(_missing(stored))
    return stored


def stored_tokens(x: MaskedTensor) -> Packed:
    """A batch as the record of its tokens, connected with it where autograd records."""
    recording = torch.is_grad_enabled()
    if x._packed is not None:
        return enter_packed(x, recording)
    if current_trace() is not None:
        raise errors.read_while_compiling("packed")
    return pack(enter(x, recording))


def tokens_of(stored: Packed) -> FlatTokens:
    """The flat tokens of a packed batch ``(B, T, ...)`` of which nothing is missing."""
    return FlatTokens(stored.values.reshape(1, -1, *stored.shape[GRID:]), stored.grid)


def positions_of(grid: Grid) -> Tensor:
    """How many steps after the first one of its sequence each token is: (N,)."""
    key = "positions"
    if key not in grid.known:
        first = grid.time.new_zeros(grid.index.shape[0]) if grid.index.shape[0] == 0 else grid.time[grid.around[0]]
        grid.known[key] = grid.time - first
    found: Tensor = grid.known[key]
    return found


def _missing(stored: Packed) -> str:
    """Which step is missing, or a part of it; in a graph, that one is."""
    assert stored.inner is not None
    if stored.grid.host and stored.grid.complete is False and not is_readable_memory(stored.inner):
        return (
            "mt.flat: which steps of this batch are masked would be read from the device, for which eager code would "
            "wait; call the flat module in compiled code, or pack the batch without a capacity"
        )
    which = "a step, or a feature of one, is missing"
    if stored.grid.host:
        whole = stored.inner.view(len(stored.inner), -1).all(1)
        at = int((~whole).nonzero()[0])
        b, t = int(stored.grid.batch[at]), int(stored.grid.time[at])
        part = "" if not bool(stored.inner[at].any()) else "a feature of "
        which = f"{part}step {t} of sequence {b} is missing"
    return (
        f"flat tokens have no mask, and {which}: call the module on the masked batch, without mt.flat, or fill the gap "
        "first (mt.ffill, mt.interpolate, x.filled)"
    )


def from_flat(values: Tensor, flat: FlatTokens) -> MaskedTensor:
    """A packed masked batch from flat tokens, the inverse of ``x.to_flat()``.

    Args:
        values (Tensor): Plain ``(1, N, ...)`` of any dtype, such as the output of a model for ``flat.values``.
        flat (FlatTokens): The result of ``x.to_flat()``, which holds the lengths.

    Returns:
        MaskedTensor: The packed batch ``(B, T, ...)``, in ``values``' dtype. Gradients flow back to ``values``.

    Raises:
        TypeError: ``values`` is not a plain tensor.
        TypeError: ``flat`` is not a result of ``x.to_flat()``.
        ValueError: ``values`` are not one row of as many tokens as in ``flat``.

    Example:
        >>> flat = mt.from_lengths(torch.ones(2, 3), [3, 1]).to_flat()
        >>> y = mt.from_flat(flat.values * 2, flat)
        >>> y.is_packed, y.lengths()
        (True, tensor([3, 1]))
        >>> y
        masked_tensor([[2.0000, 2.0000, 2.0000],
                       [2.0000,     --,     --]], valid=4/6)

    See also:
        :func:`flat`.
    """
    if not isinstance(flat, FlatTokens):
        raise TypeError(f"from_flat: flat must be what x.to_flat() gave, got {type(flat).__name__}")
    if not isinstance(values, Tensor) or type(values) is MaskedTensor:
        raise TypeError(f"from_flat: values must be a plain tensor, got {type(values).__name__}")
    tokens = flat.grid.index.shape[0]
    if values.dim() < 2 or tuple(values.shape[:2]) != (1, tokens):
        raise ValueError(
            f"from_flat: values must be one row of {tokens} tokens, (1, {tokens}, ...), got {tuple(values.shape)}"
        )
    grid = flat.grid.on(values.device)
    record = Packed(values[0], grid, identity_order(values.dim()))
    stored = lift(pack_values(values[0], record))
    result: MaskedTensor = leave(unpack(stored) if in_transform() else stored)  # torch.func knows padded tensors only
    return result


def gathered(flat: FlatTokens, plain: Tensor) -> Tensor:
    """A plain ``(B, T, ...)`` beside the batch, at its tokens: ``(1, N, ...)``."""
    return plain.flatten(0, 1).index_select(0, flat.grid.index.to(plain.device))[None]


add_members(to_flat=to_flat)
mark_opaque(to_flat, from_flat)
