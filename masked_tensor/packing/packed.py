"""``Packed``: the stored values of a padded batch, and its two moves: unpack and gather."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor

from .. import masks, shapes
from ..compat import is_readable_memory, is_tracked
from ..masks import sides
from ..op import NoRule
from ..pair import Pair, Payload
from . import dim_order as orders
from .dim_order import GRID, Order
from .grid import Grid, grid_of_mask
from .scatter_gather import gather_mask, gather_tokens, scatter_mask, scatter_tokens


class _Once:
    """``cached_property`` without its lock, which takes longer than what is worked out here."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make, self.name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, x: Any, owner: Any = None) -> Any:
        if x is None:
            return self
        x.__dict__[self.name] = value = self.make(x)
        return value


@dataclass(frozen=True, eq=False)
class Frame:
    """All that a packed tensor is, but for its values: what its gradient needs to know."""

    stored: torch.Size  #: (N, F1 .. Fk)
    grid: Grid
    order: Order
    inner: Tensor | None

    @property
    def first(self) -> int:
        """The atom of the first feature."""
        return len(self.grid.shape)

    @_Once
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the atoms: (B, T, F1 .. Fk)."""
        return (*self.grid.shape, *self.stored[1:])

    @_Once
    def shape(self) -> tuple[int, ...]:
        """What the world sees."""
        return orders.logical_shape(self.order, self.sizes)


@dataclass(slots=True, eq=False)
class Packed:
    """A packed masked tensor, as a packed rule receives it; the rule must not write into its parts.

    Rules outside this package use only ``values``, ``inner``, ``shape`` and ``pair()``. Inside it, ``grid`` records
    which tokens of the padded batch are stored, ``order`` how the dimensions of ``shape`` are composed of grid and
    features, and ``payload`` what is known about the values where ``inner`` is False.

    Attributes:
        values (Tensor): The stored tokens, ``(N, features...)``; any dtype.
        inner (Tensor): Their mask, bool, of the shape of ``values``; None if all are valid.
        shape (tuple of int): The shape of the masked tensor.

    Example:
        >>> from masked_tensor.extend import packed_rule
        >>> @packed_rule
        ... def double(stored):
        ...     return stored.values.shape
        >>> type(double).__name__
        'StorageRule'
    """

    values: Tensor
    grid: Grid
    order: Order
    inner: Tensor | None = None
    payload: Payload = Payload.ZERO
    parts: dict[int, tuple[Tensor, ...]] | None = None  #: the values unbound along a dimension: all selects share one
    known: list[Frame] = field(default_factory=list)  #: the frame, once asked for; results that have the same share it

    @property
    def first(self) -> int:
        """The atom of the first feature."""
        return len(self.grid.shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the atoms: (B, T, F1 .. Fk)."""
        return (*self.grid.shape, *self.values.shape[1:])

    def part(self, at: int, index: int) -> Tensor:
        """``values.select(at, index)``; of few parts, one unbind: its backward makes one gradient, not one for each."""
        if self.values.shape[at] > 4 or not is_tracked(self.values):
            return self.values.select(at, index)
        self.parts = {} if self.parts is None else self.parts
        if at not in self.parts:
            self.parts[at] = self.values.unbind(at)
        return self.parts[at][index]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the masked tensor.

        Example:
            >>> from masked_tensor.extend import packed_rule
            >>> @packed_rule
            ... def shape_of(stored):
            ...     return stored.shape
        """
        seen: tuple[int, ...] = self.frame.shape
        return seen

    @property
    def is_plain_grid(self) -> bool:
        """Whether values, their mask, index, order and shape say it all: batch and time are seen as such."""
        return self.first == GRID and (0,) in self.order and (1,) in self.order

    @property
    def stored(self) -> torch.Size:
        """The shape of the values: (N, F1 .. Fk)."""
        return self.values.shape

    @property
    def frame(self) -> Frame:
        """All but the values."""
        known = self.known
        if not known:
            known.append(Frame(self.values.shape, self.grid, self.order, self.inner))
        return known[0]

    def holding(self, values: Tensor) -> "Packed":
        """The same with other values, of the same shape and validity."""
        return Packed(values, self.grid, self.order, self.inner, self.payload, known=self.known)

    def pair(self) -> Pair:
        """The stored tokens and their mask as a :class:`Pair`.

        Returns:
            Pair: The tokens, of shape ``(N, features...)``.

        Example:
            >>> from masked_tensor.extend import packed_rule
            >>> @packed_rule
            ... def double(stored):
            ...     return stored.holding(stored.pair().data * 2)
        """
        if self.inner is None:
            return Pair(self.values, masks.full(self.values.shape, self.values.device), Payload.ZERO)
        return Pair(self.values, self.inner, self.payload)

    def operand(self) -> Pair | Tensor:
        """As :meth:`pair`; values of which all are valid are a plain tensor."""
        return self.values if self.inner is None else Pair(self.values, self.inner, self.payload)


def pack_values(values: Pair | Tensor, like: Packed, order: Order | None = None) -> Packed:
    """Values on the tokens of ``like``, in its order unless another is given; atoms of size 1 are left out."""
    inner, payload, data = None, Payload.ZERO, values
    if type(values) is Pair:
        data, inner, payload = values.data, masks.expand_to(values.mask, values.data.shape), values.payload
    assert isinstance(data, Tensor)
    order = like.order if order is None else order
    if 1 in data.shape[1:]:
        gone = [d for d in range(1, data.dim()) if data.shape[d] == 1]
        order = orders.drop_atoms(order, [d + like.first - 1 for d in gone])
        data = data.squeeze(gone)
        inner = inner if inner is None else inner.squeeze(gone)
    grid = like.grid.on(data.device)
    same = order is like.order and inner is like.inner and grid is like.grid and data.shape == like.values.shape
    return Packed(data, grid, order, inner, payload, known=like.known if same else [])


def from_parts(
    values: Tensor, index: Tensor, inner: Tensor | None, shape: Sequence[int], order: Order, complete: bool | None,
    payload: Payload,
) -> Packed:  # fmt: skip
    """What is :attr:`~Packed.is_plain_grid` these values at these places of ``shape``, seen in that order."""
    grid = Grid(index, (shape[order.index((0,))], shape[order.index((1,))]), complete)
    return Packed(values, grid, order, inner, payload)


def canonicalize(x: Packed) -> Packed:
    """``x`` with its features stored as they are read: two tensors of one shape and grid then agree."""
    order, joined = orders.join_features(x.order, x.first)
    if order == x.order and all(len(j) == 1 for j in joined):
        return x
    perm = [0, *(a - x.first + 1 for j in joined for a in j)]
    shape = [x.values.shape[0], *(prod(x.sizes[a] for a in j) for j in joined)]
    values = x.values.permute(perm).reshape(shape)
    inner = None if x.inner is None else masks.reshape(x.inner.permute(perm), shape)
    return Packed(values, x.grid, order, inner, x.payload)


def logical_mask(x: Packed) -> Tensor:
    """The validity that the world sees."""
    grid, features = x.grid.mask, x.values.shape[1:]
    if x.inner is None:
        wide = grid.reshape(*x.grid.shape, *(1,) * len(features)).expand(*x.grid.shape, *features)
    else:
        wide = masks.reshape(scatter_mask(x.inner, x.grid), (*x.grid.shape, *features))
        sides.note_as(wide, range(len(x.grid.shape)), grid.view(*grid.shape, *[1] * len(features)))
    return masks.reshape(wide.permute(orders.read_order(x.order)), x.shape)


def unpack(x: Packed) -> Pair:
    """The strided pair: one differentiable scatter, 0 wherever nothing is stored.

    It is contiguous, as the strides of every packed tensor say: ``as_strided`` reads memory, and so does a graph.
    """
    wide = scatter_tokens(x.values, x.grid).view(x.sizes)
    data = wide.permute(orders.read_order(x.order)).reshape(x.shape).contiguous()
    return Pair(data, logical_mask(x), x.payload)


def to_atoms(x: Tensor, like: Packed | Frame) -> Tensor:
    """A tensor that broadcasts to the shape of ``like``, with one dimension per atom: its size, or 1."""
    seen = (1,) * (len(like.order) - x.dim()) + tuple(x.shape)
    if not shapes.can_expand(seen, like.shape):
        raise NoRule  # the strided rule says what is wrong
    cut = [like.sizes[a] if n != 1 else 1 for n, dim in zip(seen, like.order, strict=True) for a in dim]
    read = orders.read_order(like.order)
    return x.reshape(cut).permute([read.index(a) for a in range(len(read))])


def values_at_tokens(x: Tensor, like: Packed | Frame) -> Tensor:
    """A tensor that broadcasts to the shape of ``like``, read at its tokens: ``(N or 1, F1 or 1, ..)``."""
    wide = to_atoms(x, like)
    if like.first != GRID:
        return like.grid.read(wide)
    batch, time = (n > 1 for n in wide.shape[:GRID])
    if batch and time:
        return gather_tokens(wide.flatten(0, 1), like.grid)
    if time:
        return wide[0].index_select(0, like.grid.time)
    if batch:
        return wide[:, 0].index_select(0, like.grid.batch)
    return wide[:, 0]


def pack_onto(x: Pair, like: Packed | Frame) -> Packed:
    """A strided pair that broadcasts to the shape of ``like``, at its tokens; what it masks there is ``inner``."""
    values, inner = values_at_tokens(x.data, like), values_at_tokens(masks.compact(x.mask), like)
    shape = (like.stored[0], *shapes.broadcast_two(values.shape[1:], inner.shape[1:]))
    return drop_full_inner(Packed(values.expand(shape), like.grid, like.order, inner.expand(shape), x.payload))


def pack(x: Pair, order: Order | None = None, grid: Grid | None = None) -> Packed:
    """A strided pair packed: of its own valid places, or of ``grid``, which must hold them all.

    The first two dimensions are the grid unless ``order`` says otherwise.
    """
    order = orders.identity_order(x.data.dim()) if order is None else order
    data, valid, some = batch_first(x, order)
    whole = grid is None and masks.is_constant(
        valid, tuple(range(GRID, valid.dim()))
    )  # each token is valid, or is not stored
    if grid is None:
        grid = grid_of_mask(some)
    elif bool((some & ~grid.mask).any()):
        raise ValueError(
            "packed(like=other) needs an other that stores every place where the tensor is valid; pack it by itself"
        )
    stored = gather_stored(data, None if whole else valid, grid, order, x.payload)
    stored = stored if whole else drop_full_inner(stored)
    return pack_values(stored.operand(), stored)


def batch_first(x: Pair, order: Order) -> tuple[Tensor, Tensor, Tensor]:
    """Data and validity with the grid first and features in the order of memory; and which steps have any valid."""
    read = orders.read_order(order)
    back = [read.index(a) for a in range(len(read))]
    data, valid = x.data.permute(back), x.mask.permute(back)
    inside = tuple(range(GRID, data.dim()))
    return data, valid, masks.any(valid, inside) if inside else valid


def gather_stored(data: Tensor, valid: Tensor | None, grid: Grid, order: Order, payload: Payload) -> Packed:
    """The steps of ``grid``, in memory of their own; without ``valid`` all of them are valid."""
    values = gather_tokens(data.flatten(0, 1), grid)
    if grid.full:
        values = values.clone()  # take gave the very memory, into which its owner may write
    if valid is None:
        return Packed(values, grid, order)
    inner = gather_mask(masks.reshape(valid, (grid.places, *valid.shape[GRID:])), grid)
    return Packed(values, grid, order, inner, payload)


def drop_full_inner(x: Packed) -> Packed:
    """Without ``inner`` if nothing in a stored token is masked: looked at once, where looking is free."""
    if x.inner is not None and is_readable_memory(x.inner) and bool(masks.compact(x.inner).all()):
        return Packed(x.values, x.grid, x.order)
    return x
