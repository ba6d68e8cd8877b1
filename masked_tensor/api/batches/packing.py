"""Packed and back: a representation, never a value.  ``x.packed()`` stores only the valid steps of a padded batch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from ... import errors, packing, shapes
from ...compat import current_trace
from ...engine.boundary.enter_leave import enter, leave
from ...engine.boundary.lengths import knows_steps, pack_again
from ...engine.boundary.packed import enter_packed, mask_of
from ...engine.tensor import LOST, MaskedTensor, add_members, pair_of
from ...packing import dim_order as orders
from ...packing.capacity import pack_capacity
from ...packing.grid import grid_of_lengths
from ...packing.joins import cat_masks
from ...packing.packed import Frame, drop_full_inner, pack_values
from ...pair import Pair, Payload
from ...shared.names import names_arguments
from ...shared.rows.lengths import check_side, steps_that_exist


@names_arguments
def packed(
    x: MaskedTensor,
    dims: Sequence[int] = (0, 1),
    *,
    like: MaskedTensor | None = None,
    lengths: Tensor | Sequence[int] | str | None = None,
    padding_side: str = "right",
    capacity: int | None = None,
) -> MaskedTensor:
    """The same masked tensor, stored without padding; without ``lengths``, masked steps count as padding.

    Values, validity, dtype and gradients do not change. It takes less memory, and ops with a packed rule take less
    time. Other ops convert to the padded layout and return the same result; ``masked_tensor.extend.packing_report()``
    lists them. Packing reads the number of valid steps, which waits for the device.

    Gaps count as padding as well. To store them as missing steps, pass ``lengths`` or use
    ``from_sequences(packed=True)``.

    Args:
        x (MaskedTensor): A strided tensor of two dimensions or more, such as ``(B, T, ...)``, of any dtype.
        dims (tuple of int, optional): The batch dimension and the time dimension. All features of a step with a valid
            entry are stored. Default: (0, 1).
        like (MaskedTensor, optional): A packed tensor of any dtype with ``x``'s shape in ``dims``. Its stored steps are
            stored here, so that ops on both need no comparison.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. All of them are stored, even missing ones, and the result keeps them as
            its :meth:`lengths`.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        capacity (int, optional): Store exactly this many steps: the valid ones, and masked ones for the rest. Sizes
            then do not change from batch to batch, and compiled code may call it.

    Returns:
        MaskedTensor: A tensor of ``x``'s shape and dtype, whose ``is_packed`` is True; ``x`` itself if it is packed or
        has no elements.

    Raises:
        TypeError: ``x`` is not a MaskedTensor, or ``lengths`` or ``capacity`` are not integers.
        ValueError: ``x`` is sparse, or ``dims`` are not two of its dimensions.
        ValueError: ``capacity`` is below 1, or below the number of valid steps.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence, or differ from those of a packed
            ``x``.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``like`` is not packed, or does not store a step that is valid in ``x``.
        ValueError: ``like`` is given with ``lengths`` or ``capacity``, or these two together.
        RuntimeError: ``capacity`` is below the number of valid steps, on a GPU or in compiled code.
        UnsupportedOpError: It is called in compiled code without a ``capacity``.

    Example:
        >>> x = mt.from_lengths(torch.ones(2, 3, 4), [3, 1])
        >>> y = x.packed()
        >>> y.is_packed, y.shape, y.lengths()
        (True, torch.Size([2, 3, 4]), tensor([3, 1]))
        >>> (y * 2).sum().item(), (x * 2).sum().item()  # the same values
        (32.0, 32.0)
        >>> x.packed(capacity=5).sum().item()
        16.0

    See also:
        :func:`unpacked`, :func:`flat`.
    """
    if type(x) is not MaskedTensor:
        raise errors.not_masked("packed", x)
    if x.layout is not torch.strided:
        raise ValueError(f"packed() stores the rows of a strided tensor, got layout {x.layout}; x.to_dense() first")
    n = x.dim()
    if len(dims) != 2 or not all(-n <= d < n for d in dims) or len({d % n for d in dims}) != 2:
        raise ValueError(
            f"packed(dims=...) needs two dimensions of the tensor, got {tuple(dims)} of shape {tuple(x.shape)}"
        )
    if lengths is not None and like is not None:
        raise ValueError("packed() got both lengths= and like=; pass one of them")
    check_side(padding_side)
    if capacity is not None:
        if like is not None or lengths is not None:
            raise ValueError(
                "packed() got capacity= beside like= or lengths=, which already say which steps "
                "are stored; leave out capacity="
            )
        capacity = expect_capacity("packed", capacity)
        return _packed_at_capacity(x, [d % n for d in dims], capacity)
    if x._packed is not None and like is None and lengths is None:
        return x
    if x._steps is not None and lengths is None and like is None and x.shape.numel():
        return _packed_again(x, [d % n for d in dims])
    if current_trace() is not None and type(pair_of(x).mask) is not Tensor:
        raise errors.read_while_compiling("packed")
    grid = [d % n for d in dims]
    exists = None if lengths is None else steps_of_batch("packed", x, grid, lengths, padding_side)
    if x.shape.numel() == 0 or (exists is not None and knows_lengths(x, grid)):
        return x
    pattern = None if like is None else _grid_of(like)
    if exists is not None:
        counts = exists.expand(x.shape[grid[0]], -1).sum(1).tolist()
        pattern = grid_of_lengths(counts, padding_side, exists.device, x.shape[grid[1]])
    result: MaskedTensor = leave(packing.pack(enter(x, torch.is_grad_enabled()), _order_of(grid, n), pattern))
    return result


def expect_capacity(name: str, capacity: Any) -> int:
    """The number of steps that ``name`` was given; that of a tracer as it is, or the graph would be for one alone."""
    if isinstance(capacity, torch.SymInt):
        return capacity  # type: ignore[return-value]  # which stands for an int
    return shapes.expect_int(f"{name}(capacity=...)", capacity, 1)


def _packed_at_capacity(x: MaskedTensor, dims: list[int], capacity: int) -> MaskedTensor:
    """A batch at ``capacity`` places: nothing is read but the sizes, so compiled code may call it."""
    x = unpacked(x)
    if x.shape.numel() == 0:
        return x
    made: MaskedTensor = leave(pack_capacity(enter(x, torch.is_grad_enabled()), _order_of(dims, x.dim()), capacity))
    return made


def _order_of(dims: Sequence[int], n: int) -> orders.Order:
    """How the ``n`` dimensions of a batch are made of the grid, which ``dims`` are, and of features."""
    rest = iter(range(orders.GRID, n))
    return tuple((dims.index(d),) if d in dims else (next(rest),) for d in range(n))


def _packed_again(x: MaskedTensor, dims: Sequence[int]) -> MaskedTensor:
    """A batch whose lengths were said, packed with them; where they are lost, by its valid steps, and they stay so."""
    frame = x._steps
    if knows_steps(x) and [frame.order[d] for d in dims] == [(0,), (1,)]:
        again: MaskedTensor = leave(pack_again(enter(x, torch.is_grad_enabled()), frame))
        return again
    stored = packing.pack(enter(x, torch.is_grad_enabled()), _order_of(dims, x.dim()))
    grid = packing.Grid(stored.grid.index, stored.grid.shape, None)
    made: MaskedTensor = leave(packing.Packed(stored.values, grid, stored.order, stored.inner, stored.payload))
    return made


def with_known_lengths(name: str, x: MaskedTensor, way_out: str = "x = x.packed(lengths=[...])") -> MaskedTensor:
    """``x`` itself, or packed again if it was packed with its lengths.  Raises where they were said, and are lost."""
    if type(x) is not MaskedTensor or (x._steps is None if x._packed is None else x._packed.grid.complete is not None):
        return x
    if x._packed is not None or not knows_steps(x):
        raise ValueError(
            f"{name}() needs the lengths: this batch was packed with lengths, but an op dropped them (it mixed steps, "
            "changed their number, met a batch of other lengths, or made padding valid). Say how many steps each "
            f"sequence has: {way_out}"
        )
    if 0 in x._steps.stored:
        return x
    again: MaskedTensor = leave(pack_again(enter(x, torch.is_grad_enabled()), x._steps))
    return again


def knows_lengths(x: MaskedTensor, dims: Sequence[int]) -> bool:
    """Whether ``x`` is packed over its batch and its time with every step that exists."""
    p = x._packed
    return p is not None and p.grid.complete is True and [p.order[d] for d in dims] == [(0,), (1,)]


def steps_of_batch(name: str, x: MaskedTensor, dims: Sequence[int], lengths: Any, side: str) -> Tensor:
    """Which steps ``(B, T)`` of a batch exist, by its ``lengths``."""
    check_side(side)
    mask = mask_of(x).movedim(list(dims), (0, 1))
    if isinstance(lengths, str) and lengths == "full":
        lengths = torch.full(mask.shape[:1], mask.shape[1])
    exists, _ = steps_that_exist(name, lengths, side, mask, 1, mask)
    exists = exists.flatten(1)
    if x._packed is not None and knows_lengths(x, dims) and not exists.equal(x._packed.grid.mask):
        raise ValueError(
            f"{name}: this packed tensor stores sequences of the lengths {x._packed.grid.lengths.tolist()}, which "
            "lengths= or padding_side= contradicts: leave them out"
        )
    return exists


def _grid_of(like: MaskedTensor) -> packing.Grid:
    if type(like) is not MaskedTensor or like._packed is None:
        raise ValueError("packed(like=other) needs a packed masked tensor; pack other first")
    if len(like._packed.grid.shape) != orders.GRID:
        raise ValueError(
            "packed(like=other) needs an other that is a batch of sequences, not their products over time; "
            "pack the tensor by itself"
        )
    return like._packed.grid


def pack_sequences(values: Tensor, lengths: Sequence[int], time: int | None = None) -> packing.Packed:
    """Sequences that lie one after the other in ``values`` ``(N, ...)``, as rows ``(B, T, ...)``.

    ``time`` is the ``T`` of the batch, by default the longest.
    """
    pattern = grid_of_lengths(lengths, "right", values.device, time)
    return pack_values(values, packing.Packed(values, pattern, orders.identity_order(values.dim() + 1)))


def from_packed_sequence(sequences: PackedSequence, time: int | None = None) -> packing.Packed:
    """What lies step by step in a ``PackedSequence`` one sequence after the other, in the order they were given in."""
    counts, back = sequences.batch_sizes, sequences.unsorted_indices
    places = torch.arange(int(counts[0])) if back is None else back.cpu()  # of each sequence within a step
    lengths = (places[:, None] < counts).sum(1)
    starts = counts.cumsum(0) - counts
    steps = (starts + places[:, None])[torch.arange(len(counts)) < lengths[:, None]]
    return pack_sequences(sequences.data.index_select(0, steps.to(sequences.data.device)), lengths.tolist(), time)


def pack_list(
    sequences: Sequence[Pair], side: str, batch: int, time: int, whole: bool, length: int | None = None
) -> packing.Packed:
    """Sequences as rows, never padded; ``batch`` and ``time`` are their dimensions in the batch.

    ``whole`` says that none of them has masked entries.  ``length`` is how long the batch is, by default the longest.
    """
    at = time - 1 if batch == 0 else 0
    first = [s.data.movedim(at, 0) for s in sequences]
    pattern = grid_of_lengths([len(s) for s in first], side, first[0].device, length)
    values = torch.cat(first)
    rest = iter(range(orders.GRID, values.dim() + 1))
    order = tuple((0,) if d == batch else (1,) if d == time else (next(rest),) for d in range(values.dim() + 1))
    stored = packing.Packed(values, pattern, order)
    if not whole:
        inner = cat_masks([s.mask.movedim(at, 0) for s in sequences], 0)
        stored = drop_full_inner(packing.Packed(values, pattern, order, inner, Payload.ANY))
    return pack_values(stored.operand(), stored)


def unpacked(x: MaskedTensor) -> MaskedTensor:
    """The same masked tensor, stored with its padding: the inverse of :func:`packed`.

    Values, validity, dtype and gradients do not change.

    Args:
        x (MaskedTensor): Any shape and dtype, packed or not.

    Returns:
        MaskedTensor: A tensor of ``x``'s shape and dtype, whose ``is_packed`` is False, as for its views and the
        results of ops on it. ``x`` itself if it was never packed; a view of ``x`` if a write has unpacked it.

    Raises:
        TypeError: ``x`` is not a MaskedTensor.

    Example:
        >>> mt.from_lengths(torch.ones(2, 3), [3, 1]).packed().unpacked().is_packed
        False

    See also:
        :func:`packed`.
    """
    if type(x) is not MaskedTensor:
        raise errors.not_masked("unpacked", x)
    if x._packed is None:
        if type(x._steps) is not Frame or x._stays_padded:
            return x
        # A write has unpacked it, and results of ops on it are packed again: those of this view are not.
        seen: MaskedTensor = torch.ops.aten.alias.default(x)
        seen._steps, seen._stays_padded = x._steps, True
        return seen
    p = enter_packed(x)
    padded = packing.unpack(p)
    if p.grid.full:  # this is the memory of x, into which the owner of the result may write
        padded = Pair(padded.data.clone(), padded.mask, padded.payload)
    result: MaskedTensor = leave(padded)
    if p.grid.complete is not False:
        result._steps, result._stays_padded = p.frame if p.grid.complete else LOST, True
    return result


def is_packed(x: MaskedTensor) -> bool:
    """Whether the tensor is stored without padding, as by :meth:`packed`.

    It is False after a write that unpacks the tensor; results of ops on it are packed again.

    Example:
        >>> x = mt.from_lengths(torch.ones(2, 3), [3, 1])
        >>> x.is_packed, x.packed().is_packed
        (False, True)
    """
    return x._packed is not None


add_members(packed=packed, unpacked=unpacked, is_packed=property(is_packed))
