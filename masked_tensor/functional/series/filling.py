"""Gaps in time series, under pandas' names: filling forward and backward, interpolating, shifting.

The input is a masked tensor, or a plain one with ``mask=``.  What remains masked is NaN in a plain result.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from ... import errors, masks, packing
from ...engine.boundary.enter_leave import leave
from ...engine.boundary.packed import enter_packed
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor
from ...packing.dim_order import is_feature
from ...pair import Pair
from ...shapes import expect_int
from ...shared.rows import gaps
from ..entrance import Input, Number
from ..registry import as_torch, row
from .steps import Series, enter_series, expect_lengths

Area = Literal["inside", "outside"]
Direction = Literal["forward", "backward", "both"]
Method = Literal["linear", "nearest"]
Side = Literal["right", "left"]
Times = Any  #: a tensor, an array, a column or a list of numbers
Lengths = Tensor | Sequence[int] | Literal["full"] | None


def _carry(name: str, forward: bool) -> Callable[..., Tensor]:
    def carry(
        input: Tensor,
        dim: int | None = None,
        *,
        lengths: Lengths = None,
        padding_side: Side = "right",
        limit: int | None = None,
        limit_area: Area | None = None,
        mask: Tensor | None = None,
        fill_value: Number | None = None,
    ) -> Tensor:
        # A valid entry is the last up to itself: taking those is all there is to do, and its gradient is that.
        series = _enter_filling(name, input, dim, lengths, padding_side, limit, limit_area, mask)
        x, dim = series.x, series.dim
        mask, length = masks.compact_others(x.mask, dim), gaps.stretch_length(x, dim)
        free = limit is None and limit_area is None
        if free and length is None:
            valid, place = gaps.carry_valid(mask, dim, forward)
            if series.within is not None:
                begin, end = series.within
                valid = valid & (place >= begin if forward else place < end)
            data = x.data.gather(dim, place if place.shape == x.data.shape else place.expand(x.data.shape))
            return cast("Tensor", series.leave(name, Pair(data, masks.expand_to(valid, x.data.shape)), fill_value))
        parts: Iterator[tuple[Tensor, Tensor]]
        if free:
            found = (gaps.before if forward else gaps.after)(mask, dim, length, series.within)
            parts = ((place, place >= 0 if forward else place < x.data.shape[dim]) for place in found)
        else:
            direction = "forward" if forward else "backward"
            around = gaps.stretches(mask, dim, length, series.within)
            parts = (
                (s.last if forward else s.following, gaps.fillable(s, limit, limit_area, direction)) for s in around
            )
        parts = ((gaps.gather_clamped(x, dim, place), valid) for place, valid in parts)
        return cast("Tensor", series.leave(name, _join(parts, x, dim, length), fill_value))

    return carry


@row(_carry, forward=True)
def ffill() -> Tensor:
    """A time series in which each masked entry has the value of the last valid entry before it.

    Entries before the first valid one stay masked, and so does padding; :class:`LastValid` fills across batches.
    Gradients flow to the entry whose value was used.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``. Without a mask
            nothing is filled and a UserWarning is issued: NaN is a valid value.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required for masked input unless ``dim`` is 0 and there are at most two
            dimensions; the batch dimension is 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        limit (int, optional): The largest number of steps that a value is carried. Default: no limit.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only after the last.
            Default: both.
        fill_value (number, optional): The value of the entries that stay masked. Default: NaN in a plain result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``lengths`` are not integers.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``limit`` is below 1, or ``padding_side`` or ``limit_area`` is not one of the values above.
        ValueError: A plain result of integers needs ``fill_value``.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> mt.ffill(mt.masked_tensor([None, 1.0, None, None, 5.0]), limit=1)
        masked_tensor([--, 1.0000, 1.0000, --, 5.0000], valid=3/5)

    See also:
        :func:`bfill`, :func:`interpolate`, :func:`shift`.

    References:
        ``pandas.DataFrame.ffill``.
    """


@row(_carry, forward=False)
def bfill() -> Tensor:
    """A time series in which each masked entry has the value of the next valid entry after it.

    Entries after the last valid one stay masked, and so does padding. Gradients flow to the entry whose value was used.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``. Without a mask
            nothing is filled and a UserWarning is issued: NaN is a valid value.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required for masked input unless ``dim`` is 0 and there are at most two
            dimensions; the batch dimension is 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        limit (int, optional): The largest number of steps that a value is carried. Default: no limit.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only before the first.
            Default: both.
        fill_value (number, optional): The value of the entries that stay masked. Default: NaN in a plain result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``lengths`` are not integers.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``limit`` is below 1, or ``padding_side`` or ``limit_area`` is not one of the values above.
        ValueError: A plain result of integers needs ``fill_value``.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> mt.bfill(mt.masked_tensor([None, 1.0, None, None, 5.0]))
        masked_tensor([1.0000, 1.0000, 5.0000, 5.0000, 5.0000], valid=5/5)

    See also:
        :func:`ffill`, :func:`interpolate`.

    References:
        ``pandas.DataFrame.bfill``.
    """


@as_torch
def interpolate(
    input: Tensor,
    dim: int | None = None,
    *,
    lengths: Lengths = None,
    padding_side: Side = "right",
    method: Method = "linear",
    index: Times | None = None,
    limit: int | None = None,
    limit_direction: Direction = "forward",
    limit_area: Area | None = None,
    max_gap: int | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """A time series whose gaps are filled by interpolating between valid entries, as in pandas.

    Padding stays masked. Gradients flow to both entries around a gap. To resize images, use
    ``torch.nn.functional.interpolate``, which accepts masked tensors as well.

    Args:
        input (Tensor): Floating point or complex, any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``.
            Without a mask nothing is filled and a UserWarning is issued: NaN is a valid value.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required for masked input unless ``dim`` is 0 and there are at most two
            dimensions; the batch dimension is 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        method (str, optional): ``"linear"`` weighs both neighbours by distance, and repeats the last valid entry beyond
            it. ``"nearest"`` takes the nearer neighbour, or the earlier of two, and fills only between valid entries.
            Default: ``"linear"``.
        index (Tensor, optional): The time of each entry, strictly rising: ``(T,)``, or ``(B, T)`` for each sequence
            (``(T, B)`` if ``dim`` is 0), any real dtype; by default entries are one step apart. Times past the end of a
            sequence are ignored and may be masked.
        limit (int, optional): The largest number of consecutive entries to fill. Default: no limit.
        limit_direction (str, optional): The direction in which ``limit`` counts and in which the edges are filled:
            ``"forward"``, ``"backward"`` or ``"both"``. Default: ``"forward"``.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only beyond them.
            Default: both.
        max_gap (int, optional): Leave gaps, including those at the edges, of more than this many masked entries
            unfilled. Entries are counted, whatever ``index`` is.
        fill_value (number, optional): The value of the entries that stay masked. Default: NaN in a plain result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``lengths`` or ``max_gap`` are not integers, or ``index`` is not real.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``index`` has another shape, does not rise strictly, is not finite, or is masked within a sequence
            (not checked in compiled code and under ``vmap``).
        ValueError: ``limit`` or ``max_gap`` is below 1, or ``method`` or another choice is not one of the values above.
        RuntimeError: ``input`` is neither floating point nor complex.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> mt.interpolate(mt.masked_tensor([None, 1.0, None, None, 4.0, None]))
        masked_tensor([--, 1.0000, 2.0000, 3.0000, 4.0000, 4.0000], valid=5/6)

    See also:
        :func:`ffill`, :func:`bfill`, :func:`shift`.

    References:
        ``pandas.DataFrame.interpolate``.
    """
    _check_choice("method", method, Method)
    _check_choice("limit_direction", limit_direction, Direction)
    longest = None if max_gap is None else expect_int("interpolate: max_gap", max_gap, 1)
    series = _enter_filling("interpolate", input, dim, lengths, padding_side, limit, limit_area, mask)
    x, dim = series.x, series.dim
    if not (x.data.is_floating_point() or x.data.is_complex()):
        raise errors.not_inexact("interpolate", x.data.dtype)
    places = None if index is None else series.places("interpolate", index)

    edges = None if longest is None else series.edges()

    def fill(s: gaps.Stretch) -> tuple[Tensor, Tensor]:
        data, filled = draw(s)
        return data, filled if edges is None or longest is None else filled & (gaps.gap_size(s, *edges) <= longest)

    def draw(s: gaps.Stretch) -> tuple[Tensor, Tensor]:
        if method == "linear":
            return gaps.interpolate_line(x, s, places), gaps.fillable(s, limit, limit_area, limit_direction)
        inside = s.mask if limit_area == "outside" else gaps.fillable(s, limit, "inside", limit_direction)
        return gaps.gather_clamped(x, dim, gaps.nearest(s, places)), inside

    length = gaps.stretch_length(x, dim, 4)
    parts = map(fill, gaps.stretches(masks.compact_others(x.mask, dim), dim, length, series.within))
    return cast("Tensor", series.leave("interpolate", _join(parts, x, dim, length), fill_value))


@as_torch
def shift(
    input: Tensor,
    periods: int = 1,
    dim: int | None = None,
    *,
    lengths: Lengths = None,
    padding_side: Side = "right",
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """A time series moved by ``periods`` steps, masked at the edge: ``y[t] = x[t - periods]``.

    Missing steps move with the others; nothing moves into padding. ``x.diff()`` is the change from one step to the
    next. Gradients flow to the entry that was moved.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; plain or a MaskedTensor.
        periods (int, optional): The number of steps to move by; negative moves towards the start. Default: 1.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required for masked input unless ``dim`` is 0 and there are at most two
            dimensions; the batch dimension is 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        fill_value (number, optional): The value of masked entries. Default: NaN in a plain result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``periods`` is not an int, or ``lengths`` are not integers.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: A plain result of integers needs ``fill_value``.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 4.0])
        >>> mt.shift(x)
        masked_tensor([--, 1.0000, --], valid=1/3)
        >>> x - mt.shift(x, 2)
        masked_tensor([--, --, 3.0000], valid=1/3)

    See also:
        :func:`ffill`, :func:`rolling`, :func:`interpolate`.

    References:
        ``pandas.DataFrame.shift``.
    """
    if isinstance(periods, bool) or not hasattr(periods, "__index__"):
        raise TypeError(f"shift: periods must be an int, got {type(periods).__name__}")
    if type(input) is MaskedTensor and input._packed is not None:  # the result is padded
        stored = enter_packed(input)
        if lengths is None and stored.grid.complete and dim is not None and -input.dim() <= dim < input.dim():
            batch_first = (0,) in stored.order[: 1 if dim % input.dim() else 2]
            if stored.order[dim] == (1,) and batch_first:
                lengths, padding_side = stored.grid.lengths, "right" if stored.grid.prefix else "left"
            elif is_feature(stored.order[dim], stored.first):
                lengths = "full"  # a step that does not exist is masked, whatever feature it is looked at
        input = leave(packing.unpack(stored))
    series = enter_series("shift", input, dim, mask, lengths, padding_side)
    expect_lengths("shift", series)
    x, dim = series.x, series.dim
    size = x.data.shape[dim]
    kept = max(size - abs(int(periods)), 0)
    first, edge = (0, size - kept) if periods >= 0 else (size - kept, 0)
    around = [0, 0] * (x.data.dim() - 1 - dim) + [edge, size - kept - edge]
    moved = (
        torch.nn.functional.pad(t.narrow(dim, first, kept), around) for t in (x.data, masks.compact_others(x.mask, dim))
    )
    data, valid = moved
    result = Pair(data, masks.expand_to(valid, data.shape), x.payload)
    if kept != size:  # a plain input has an edge now
        series = replace(series, given=Input(result, series.given.masked))
    return cast("Tensor", series.leave("shift", result, fill_value))


def _join(parts: Iterator[tuple[Tensor, Tensor]], x: Pair, dim: int, length: int | None) -> Pair:
    """Data and validity of the stretches along ``dim`` as those of all."""
    if length is None:
        ((data, valid),) = parts
        return Pair(data, masks.expand_to(valid, x.data.shape))
    data, known = torch.empty_like(x.data), []
    for (_, target), (part, valid) in zip(gaps.cut(data, dim, length), parts, strict=True):
        target.copy_(part)
        known.append(valid)
    return Pair(data, masks.expand_to(torch.cat(known, dim), x.data.shape))


def _enter_filling(
    name: str, input: Tensor, dim: Any, lengths: Any, side: str, limit: Any, area: Any, mask: Any
) -> Series:
    limit = None if limit is None else expect_int(f"{name}: limit", limit, 1)
    if area is not None:
        _check_choice("limit_area", area, Area)
    series = enter_series(name, input, dim, mask, lengths, side)
    expect_lengths(name, series)
    if type(series.given.x) is not Pair and lengths is None:
        warnings.warn(
            f"{name}() of a plain tensor without mask= fills nothing, since NaN counts as valid; use "
            f"masked_tensor.{name}(masked_tensor.masked_invalid(x), ...), or pass mask=",
            stacklevel=4,
        )
    return series


def _check_choice(name: str, value: str, choices: Any) -> None:
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {get_args(choices)}, got {value!r}")


mark_opaque(ffill, bfill, interpolate)
