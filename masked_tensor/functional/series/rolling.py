"""Statistics of moving windows along one dimension, under pandas' names."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, NoReturn, TypeVar, cast, get_args

import torch
from torch import Tensor

from ... import masks, settings
from ...engine.boundary.enter_leave import leave
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor
from ...kernels.identity import identity
from ...kernels.precision import rounds_noticeably
from ...pair import Pair
from ...rules import quantile as rules
from ...shared import strict_counts
from ...shared.too_few import is_enough, needed_for
from ..entrance import Input, Number, as_pair, enter_input
from ..reductions import moment, order, sums
from ..registry import as_torch
from . import moving, spans
from .filling import Lengths, Side, Times
from .steps import Series, enter_series, expect_lengths
from .tokens import Tape, lay_out, spans_of_tokens

Closed = Literal["right", "left", "both", "neither"]
T = TypeVar("T", Tensor, MaskedTensor)


@dataclass(frozen=True, eq=False, repr=False)
class Rolling(Generic[T]):
    """The windows of :func:`masked_tensor.rolling`, whose methods are their statistics.

    Where a window has fewer than ``min_periods`` valid entries, the result of a MaskedTensor is masked, and a plain one
    is ``fill_value``, else NaN.

    Example:
        >>> mt.rolling(mt.masked_tensor([1.0, 2.0, 3.0]), 2).max()
        masked_tensor([--, 2.0000, 3.0000], valid=2/3)
    """

    _entries: Pair
    _reach: moving.Windows | spans.Spans
    _series: Series
    min_periods: int
    fill_value: Number | None = None
    _dtype: torch.dtype | None = None  #: that of the results, where the entries were converted
    _tape: Tape | None = None  #: of what is stored packed, how the entries lie
    _said: tuple[float, int | None, torch.Size] | None = None  #: the window, the dimension and the shape of the call

    def __repr__(self) -> str:
        """What was asked for; the windows themselves are :attr:`windows`."""
        window, dim, shape = self._said or ("?", None, torch.Size())
        return f"Rolling(window={window}, dim={dim or 0}) of shape {tuple(shape)}: call {_STATISTICS}"

    @cached_property
    def windows(self) -> Any:
        """The windows along the last dimension, a view of the padded input.

        Returns:
            MaskedTensor: ``(..., T, ..., width)``, in the dtype of ``input``.

        Example:
            >>> mt.rolling(mt.masked_tensor([1, 2]), 2).windows
            masked_tensor([[--,  1],
                           [ 1,  2]], valid=3/4)
        """
        seen = moving.unfold(self._entries, self._reach)
        if self._series.stored is None:
            return leave(seen)
        return self._series.leave("rolling", self._tokens(seen), None, self._step)

    @cached_property
    def _seen(self) -> Any:
        """The windows of the entries as they lie here."""
        return leave(moving.unfold(self._entries, self._reach))

    def sum(self) -> T:
        """The sum of the valid entries of each window.

        Returns:
            Tensor: ``input``'s shape, its time divided by ``step``, in its dtype; int64 for integers and bools.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, None, 3.0]), 2, min_periods=1).sum()
            masked_tensor([1.0000, 1.0000, 3.0000], valid=3/3)
        """
        if not self._moves() or strict_counts.KNOWN:
            return self._enough(sums.sum(self._seen, -1, min_count=self.min_periods))
        return self._result(moving.total(self._entries, self._reach))

    def mean(self) -> T:
        """The mean of the valid entries of each window.

        Returns:
            Tensor: ``input``'s shape, its time divided by ``step``, in its dtype; the default dtype for integers
            and bools.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, None, 3.0]), 2, min_periods=1).mean()
            masked_tensor([1.0000, 1.0000, 3.0000], valid=3/3)
        """
        x = self._as_float()
        if not x._moves():
            return x._enough(sums.mean(x._seen, -1))
        return x._result(moving.total(x._entries, x._reach).div_(x._number), 1)

    def min(self) -> T:
        """The smallest valid entry of each window.

        Returns:
            Tensor: ``input``'s shape and dtype, its time divided by ``step``.

        Raises:
            RuntimeError: The input is complex, and complex numbers have no order.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, 4.0, 3.0]), 2).min()
            masked_tensor([--, 1.0000, 3.0000], valid=2/3)
        """
        return self._extreme("amin")

    def max(self) -> T:
        """The largest valid entry of each window.

        Returns:
            Tensor: ``input``'s shape and dtype, its time divided by ``step``.

        Raises:
            RuntimeError: The input is complex, and complex numbers have no order.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, 4.0, 3.0]), 2).max()
            masked_tensor([--, 4.0000, 4.0000], valid=2/3)
        """
        return self._extreme("amax")

    def var(self, ddof: int = 1) -> T:
        """The variance of the valid entries of each window, masked where there are at most ``ddof``.

        Args:
            ddof (int, optional): Subtracted from the number of valid entries in the divisor. Default: 1.

        Returns:
            Tensor: ``input``'s shape, its time divided by ``step``, in its dtype; the default dtype for integers
            and bools.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, 4.0, 6.0]), 2).var()
            masked_tensor([--, 4.5000, 2.0000], valid=2/3)
        """
        return self._moment(moment.var, ddof)

    def std(self, ddof: int = 1) -> T:
        """The standard deviation of the valid entries of each window, masked where there are at most ``ddof``.

        Args:
            ddof (int, optional): Subtracted from the number of valid entries in the divisor. Default: 1.

        Returns:
            Tensor: ``input``'s shape, its time divided by ``step``, in its dtype; the default dtype for integers
            and bools.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, 4.0, 6.0]), 2).std()
            masked_tensor([--, 2.1213, 1.4142], valid=2/3)
        """
        return self._moment(moment.std, ddof)

    def median(self) -> T:
        """The median of the valid entries of each window; for an even number, the mean of the middle two.

        Returns:
            Tensor: ``input``'s shape, its time divided by ``step``, in its dtype; the default dtype for integers
            and bools.

        Raises:
            RuntimeError: The input is complex, and complex numbers have no order.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, 4.0, 6.0]), 2).median()
            masked_tensor([--, 2.5000, 5.0000], valid=2/3)
        """
        return self.quantile(0.5)

    def quantile(self, q: float) -> T:
        """The ``q``-quantile of the valid entries of each window, interpolated linearly.

        Args:
            q (float): A number from 0 to 1.

        Returns:
            Tensor: ``input``'s shape, its time divided by ``step``, in its dtype; the default dtype for integers
            and bools.

        Raises:
            RuntimeError: ``q`` is out of range.
            RuntimeError: The input is complex, and complex numbers have no order.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, 4.0, 6.0]), 2).quantile(0.75)
            masked_tensor([--, 3.2500, 5.5000], valid=2/3)
        """
        x = self._as_float(halves=True)
        entries, reach = x._entries, x._reach
        known = type(q) is float and 0 <= q <= 1 and entries.data.dtype in (torch.float32, torch.float64)
        if known and not entries.data.numel():
            return x.max()  # torch's quantile raises for no windows at all
        if not known or not x._moves():
            return x._enough(order.quantile(x._seen, q, -1))
        if type(reach) is spans.Spans:
            size = entries.data.shape[reach.dim]
            fit = settings.WINDOWS * size // max(entries.data.numel() * reach.longest(size), 1)
            seen = [rules.quantile(moving.unfold(entries, part), q, -1).data for part in reach.cut(fit)]
            return x._result(torch.cat(seen, reach.dim), 1)
        if reach.width <= settings.MERGED:
            return x._result(moving.quantile(entries, reach, q), 1)

        def sort(data: Tensor, valid: Tensor, width: int) -> Tensor:
            seen = Pair(data.unfold(-1, width, 1), valid.unfold(-1, width, 1))
            return rules.quantile(seen, q, -1).data

        return x._result(
            moving.by_pieces(sort, (entries.data, entries.mask), reach, entries.data.dtype, reach.width), 1
        )

    def count(self) -> Tensor:
        """The number of valid entries of each window, whatever ``min_periods`` is.

        Windows with fewer than ``min_periods`` entries have a count as well, where pandas returns NaN.

        Returns:
            Tensor: A plain int64 tensor of ``input``'s shape, its time divided by ``step``; 0 past an end.

        Raises:
            ValueError: The input may be padded, and ``lengths`` are not given.

        Example:
            >>> mt.rolling(mt.masked_tensor([1.0, None, 3.0]), 2).count()
            tensor([1, 1, 1])
        """
        expect_lengths("rolling().count()", self._series)
        there = Pair(number := self._count(), masks.full(number.shape, number.device))
        return self._series.leave_plain(self._tokens(there), self._step)

    def _count(self) -> Tensor:
        if self._moves():
            return self._number.long()
        return masks.count(as_pair(enter_input(self._seen)).mask, -1)

    def _as_float(self, halves: bool = False) -> "Rolling[T]":
        """The windows of integers in float64, which holds them, and those of ``halves`` in float32; others as they are.

        The result is rounded once, to the dtype of the input, or to the default one.
        """
        x, kept = self._entries, self._entries.data.dtype
        if kept.is_complex or (kept.is_floating_point and not (halves and rounds_noticeably(kept))):
            return self
        wide, dtype = (torch.float32, kept) if kept.is_floating_point else (torch.float64, torch.get_default_dtype())
        return replace(self, _entries=Pair(x.data.to(wide), x.mask), _dtype=dtype)

    def _moves(self) -> bool:
        """Whether the statistics are made of those of narrower windows."""
        return moving.can_move(self._entries, self._reach)

    @cached_property
    def _number(self) -> Tensor:
        return moving.count(self._entries.mask, self._reach)

    def _extreme(self, name: str) -> T:
        x = self._entries
        if not self._moves():
            return self._enough(getattr(sums, name)(self._seen, -1))
        return self._result(moving.extreme(x, self._reach, name == "amax", identity(name, x.data.dtype)), 1)

    def _moment(self, form: Any, ddof: int) -> T:
        x = self._as_float()
        if not x._moves() or ddof != int(ddof):
            return x._enough(form(x._seen, -1, correction=ddof))
        squares = moving.squares(x._entries, x._reach)
        squares.div_((x._number.to(squares.dtype) - ddof).clamp_min_(1))
        return x._result(squares.sqrt_() if form is moment.std else squares, needed_for(ddof))

    def _result(self, data: Tensor, least: int = 0) -> T:
        """A statistic as a masked tensor: valid where ``min_periods`` entries, and ``least``, are."""
        enough = is_enough(masks.compact(self._number), max(self.min_periods, least))
        kept = self._dtype or self._entries.data.dtype
        return self._leave(Pair(data.to(kept) if kept.is_floating_point else data, masks.expand_to(enough, data.shape)))

    def _enough(self, result: Any) -> T:
        """``result`` where at least ``min_periods`` entries are valid."""
        x = as_pair(enter_input(result))
        data = x.data if self._dtype is None else x.data.to(self._dtype)
        return self._leave(Pair(data, masks.logical_and(x.mask, is_enough(self._count(), self.min_periods))))

    def _leave(self, result: Pair) -> T:
        """What the caller gets."""
        return cast("T", self._series.leave("rolling", self._tokens(result), self.fill_value, self._step))

    @property
    def _step(self) -> int:
        """How many entries along time lie between those that results have: on a tape there is one for each."""
        return self._reach.step if self._tape is None else self._tape.step

    def _tokens(self, result: Pair) -> Pair:
        """``result`` where the entries are, without what lies between them on a tape."""
        return result if self._tape is None else self._tape.tokens(result)


_STATISTICS = ".mean(), .sum(), .min(), .max(), .var(), .std(), .median(), .quantile(q) or .count()"


def _refuse_operator(windows: Rolling[Any], *others: object) -> NoReturn:
    raise TypeError(f"the windows of rolling() are not a tensor: call {_STATISTICS}")


def _refuse_name(windows: Rolling[Any], name: str) -> NoReturn:
    raise AttributeError(
        f"the windows of rolling() have no attribute {name!r}: call {_STATISTICS}; for another function take the "
        "entries of each window, which lie along the last dimension of .windows, as .windows.prod(-1)"
    )


_OPERATORS = "add", "sub", "mul", "truediv", "pow"
for _name in (*_OPERATORS, *(f"r{name}" for name in _OPERATORS), "neg", "abs", "lt", "le", "gt", "ge"):
    setattr(Rolling, f"__{_name}__", _refuse_operator)
setattr(Rolling, "__getattr__", _refuse_name)  # noqa: B010  # in the class, type checkers would allow any name


def _entries_needed(window: Any, min_periods: int | None, closed: str, step: int, index: Tensor | None) -> int:
    """How many valid entries a window needs; raises for what is no window."""
    if isinstance(window, str):
        raise TypeError(
            f"rolling(x, {window!r}): a window counts entries; for windows of time give index=, the time of each "
            "entry, and the window in its unit"
        )
    if closed not in get_args(Closed):
        raise ValueError(f"rolling: closed must be one of {get_args(Closed)}, got {closed!r}")
    needed = min_periods if min_periods is not None else 1 if index is not None else int(window)
    given = f"window={window}" + ("" if step == 1 else f", step={step}")
    given += "" if min_periods is None else f", min_periods={min_periods}"
    if index is not None and not (0 < window < math.inf and step >= 1 and needed >= 0):
        raise ValueError(
            "rolling: with index, window is a length of time above 0, step at least 1, and min_periods at least 0; got "
            + given
        )
    if index is None and (window < 1 or window != int(window) or step < 1 or not 0 <= needed <= window):
        raise ValueError(
            "rolling needs a window of at least 1, a step of at least 1, and min_periods from 0 to the window; got "
            + given
        )
    return needed


@as_torch
def rolling(
    input: T,
    window: float,
    dim: int | None = None,
    *,
    min_periods: int | None = None,
    center: bool = False,
    closed: Closed = "right",
    step: int = 1,
    index: Times | None = None,
    lengths: Lengths = None,
    padding_side: Side = "right",
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Rolling[T]:
    """Moving windows over a time series, with methods such as ``mean`` and ``sum``.

    A window ends at its entry, or is centered on it. Everything before the first entry and after the last counts as
    masked. All statistics are differentiable, and are computed from the values that ``input`` has when they are called.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; plain or a MaskedTensor.
        window (int or float): The number of entries of a window; with ``index``, its length in the unit of ``index``.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        min_periods (int, optional): The number of valid entries that a result requires; by default ``window``, or 1
            with ``index``.
        center (bool, optional): Center each window on its entry. Default: False.
        closed (str, optional): Which ends belong to the window: ``"right"``, ``"left"``, ``"both"`` or ``"neither"``.
            Default: ``"right"``.
        step (int, optional): The number of entries from one window to the next. Default: 1.
        index (Tensor, optional): The time of each entry, in ascending order: ``(T,)``, or ``(B, T)`` for each sequence
            (``(T, B)`` if ``dim`` is 0), any real dtype. The window of time ``t`` is ``(t - window, t]``, or
            ``(t - window / 2, t + window / 2]`` if centered; times past the end of a sequence are ignored and may be
            masked.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required as for :func:`ffill` if a masked entry may have a valid result
            (``min_periods``), and for ``count()``.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        fill_value (number, optional): The value of results with too few valid entries. By default they are masked for a
            MaskedTensor and NaN for a plain ``input``.

    Returns:
        Rolling: The windows, with the methods ``sum``, ``mean``, ``min``, ``max``, ``var``, ``std``, ``median``,
        ``quantile`` and ``count``.

    Raises:
        TypeError: ``lengths`` are not integers, ``window`` is a string, or ``index`` is not real.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``window`` or ``step`` is below 1, or ``min_periods`` is not between 0 and ``window``.
        ValueError: ``closed`` or ``padding_side`` is not one of the values above.
        ValueError: ``index`` has another shape, falls, is not finite, or is masked within a sequence.
        ValueError: ``step`` is above 1 and the padding is on the left.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 3.0, 4.0])
        >>> mt.rolling(x, 2).mean()
        masked_tensor([--, --, --, 3.5000], valid=1/4)
        >>> mt.rolling(x, 2, min_periods=1).mean()
        masked_tensor([1.0000, 1.0000, 3.0000, 3.5000], valid=4/4)
        >>> days = torch.tensor([0, 1, 5, 6])
        >>> mt.rolling(x, 3, index=days).sum()  # of the last three days
        masked_tensor([1.0000, 1.0000, 3.0000, 7.0000], valid=4/4)

    See also:
        :func:`shift`.

    References:
        ``pandas.DataFrame.rolling``.
    """
    if torch.compiler.is_dynamo_compiling():
        how = (window, dim, min_periods, center, closed, step, index, lengths, padding_side, mask, fill_value)
        return cast("Rolling[T]", _InGraph(input, how))
    needed = _entries_needed(window, min_periods, closed, step, index)
    series = enter_series("rolling", input, dim, mask, lengths, padding_side)
    windows = moving.Windows(series.dim, *_offsets(int(window), center, closed), step)
    # Else no window is valid whose own entry is not.
    if index is not None or needed < windows.width or not windows.start <= 0 < windows.end:
        expect_lengths("rolling", series)
    if step > 1 and padding_side == "left" and series.exists is not None:
        raise ValueError("rolling: step counts from the begin of a sequence: give a batch that is padded on the right")
    series = replace(series, given=Input(series.x, series.given.masked))  # what has too few entries is a gap
    reach: moving.Windows | spans.Spans = windows
    if index is not None:
        reach = _spans(series, index, window, center, closed, step, padding_side)
    elif series.within is not None:
        assert series.stored is not None
        tape = lay_out(series.stored, windows)
        return Rolling(tape.entries, tape.windows, series, needed, fill_value, None, tape, (window, dim, input.shape))
    entries = Pair(series.x.data, series.x.mask)
    return Rolling(entries, reach, series, needed, fill_value, None, None, (window, dim, input.shape))


def _offsets(window: int, center: bool, closed: str) -> tuple[int, int]:
    """The first entry of a window, and the one behind it, relative to its own."""
    end = 1 + (window - 1) // 2 * center
    return end - window - (closed in ("left", "both")), end - (closed in ("left", "neither"))


def _spans(
    series: Series, index: Tensor, window: float, center: bool, closed: str, step: int, side: str
) -> spans.Spans:  # fmt: skip
    """The windows of a length of time."""
    if series.within is not None:
        return _spans_of_tokens(series, index, window, center, closed, step)
    times, dims = series.places("rolling", index, ties=True), series.x.data.dim()
    exists = series.exists if times.dim() > 1 else None
    if times.dim() == 1:
        times = times.view([-1 if d == series.dim else 1 for d in range(dims)])
    return spans.around(times, series.dim, window, closed, center, step, exists, side)


def _spans_of_tokens(series: Series, index: Tensor, window: float, center: bool, closed: str, step: int) -> spans.Spans:
    """Those of a packed batch, found over its grid, which has no features; of each token, also for a ``step``."""
    assert series.stored is not None
    times, _ = series.over_grid("rolling", index, ties=True)
    grid = series.stored.grid
    shared, side = times.dim() == 1, "left" if grid.left else "right"
    over = spans.around(
        times.view(-1, grid.shape[1]), 1, window, closed, center, 1, None if shared else grid.mask, side
    )
    return spans_of_tokens(over, series.stored, step)


class _InGraph:
    """The windows inside of a graph, in which each statistic is one call, of all that ``rolling`` was given."""

    def __init__(self, input: Tensor, how: tuple[Any, ...]) -> None:
        self.input, self.how = input, how

    def __getattr__(self, name: str) -> Any:
        if name == "windows":
            return _statistic(name, self.input, self.how)
        return lambda *args, **kwargs: _statistic(name, self.input, self.how, *args, **kwargs)


def _statistic(name: str, input: Tensor, how: tuple[Any, ...], *args: Any, **kwargs: Any) -> Any:
    window, dim, *rest = how
    found = getattr(rolling(input, window, dim, **dict(zip(_HOW, rest, strict=True))), name)
    return found if name == "windows" else found(*args, **kwargs)


_HOW = "min_periods", "center", "closed", "step", "index", "lengths", "padding_side", "mask", "fill_value"
mark_opaque(_statistic)
