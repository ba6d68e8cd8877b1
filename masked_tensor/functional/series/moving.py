"""Statistics of windows that move along one dimension, at a few passes over the data, whatever the width.

A window of ``a + b`` entries is one of ``a`` next to one of ``b``, so that windows of 1, 2, 4, 8, ... entries are made
of each other, and any width of those.  No window sees an entry outside of it: an inf, a NaN or a huge value stays where
it is, integers are exact, and nothing is subtracted that was added before.

For two neighbours with n entries, mean m and squared distances M (Chan, Golub and LeVeque, 1979), with d = m2 - m1::

    M = M1 + M2 + d ** 2 * n1 * n2 / (n1 + n2)

All this runs piece by piece in the cache, on CPU memory that nobody records.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar, final

import torch
from torch import Tensor
from torch.nn.functional import pad

from ... import masks, settings
from ...compat import is_readable_memory, is_tracked, mode_is_active
from ...fill import fill_outside
from ...kernels.precision import rounds_noticeably
from ...pair import Pair
from ...shared.order_statistics import interpolate_rank, quantile_rank
from . import spans
from .spans import Spans

#: A piece of each tensor, such as data and validity, and the width, to the statistic of its windows, all along the last
#: dimension
Statistic = Callable[..., Tensor]
State = tuple[Tensor, ...]
T = TypeVar("T")

_DTYPES = frozenset((
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8,
))  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Windows:
    """From each entry along ``dim``, or each ``step``-th, the entries ``start`` up to ``end``, relative to it."""

    dim: int
    start: int
    end: int
    step: int = 1

    @property
    def width(self) -> int:
        """How many entries a window has."""
        return self.end - self.start


def can_move(x: Pair, windows: Windows | Spans) -> bool:
    """Whether the functions below serve: static facts, as everywhere."""
    # Of windows that are far apart, most of what they make would be dropped.
    enough = windows.step == 1 or type(windows) is Spans or windows.width >= 4 * windows.step
    memory = is_readable_memory(x.data) and is_readable_memory(x.mask) and not is_tracked(x.data)
    return enough and memory and x.data.dtype in _DTYPES and x.data.numel() > 0 and not mode_is_active()


def unfold(x: Pair, windows: Windows | Spans) -> Pair:
    """The windows along the last dimension: a view of the padded data, or a copy of those of unequal width."""
    if type(windows) is Spans:
        return spans.unfold(x, windows)
    start, end, valid = windows.start, windows.end, x.mask
    if not windows.width:  # a window without entries is one of a masked-out entry: it has no smallest either
        end, valid = end + 1, torch.zeros_like(valid)
    data, valid = (_unfold(part, windows.dim, start, end, windows.step) for part in (x.data, valid))
    return Pair(data, valid)


def _unfold(x: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    """Entries ``start`` up to ``end``, seen from each entry along ``dim``, as the last dimension; zeros outside."""
    if not x.shape[dim]:
        return x[..., None].expand(*x.shape, end - start)
    pads = [0, 0] * (x.dim() - dim - 1) + [-start, end - 1]
    return pad(x, pads).unfold(dim, end - start, step)


def count(mask: Tensor, windows: Windows | Spans) -> Tensor:
    """How many entries of each window are valid: small integers, to which nobody writes."""
    if type(windows) is Spans:
        return spans.count(mask, windows)
    number: Tensor = masks.derive(mask, windows, _count, mask, windows)
    return number


def _count(mask: Tensor, windows: Windows) -> Tensor:
    dtype = torch.uint8 if windows.width <= torch.iinfo(torch.uint8).max else torch.int32
    small = masks.compact_others(mask, windows.dim)

    def add(valid: Tensor, width: int) -> Tensor:
        return _sum(valid.to(dtype), width)

    result = by_pieces(add, (masks.to_bytes(small),), windows, dtype)
    return result.expand([n if d == windows.dim else mask.shape[d] for d, n in enumerate(result.shape)])


def total(x: Pair, windows: Windows | Spans) -> Tensor:
    """The sum of the valid entries of each window: of integers in int64, of half precision in float32."""
    data = x.data
    dtype = data.dtype if data.is_floating_point() else torch.int64
    dtype = torch.float32 if rounds_noticeably(dtype) else dtype

    def add(data: Tensor, valid: Tensor, width: Any) -> Tensor:
        return _sum(fill_outside(data, valid, 0).to(dtype), width)

    return by_pieces(add, (x.data, x.mask), windows, dtype)


def extreme(x: Pair, windows: Windows | Spans, largest: bool, identity: float) -> Tensor:
    """The largest, or smallest, valid entry of each window; NaN if one of them is."""
    choose = torch.maximum if largest else torch.minimum

    def combine(data: Tensor, valid: Tensor, width: Any) -> Tensor:
        data, covered = fill_outside(data, valid, identity), 1
        if type(width) is Spans:
            return spans.combine(lambda a, b: (choose(a[0], b[0]),), (data,), width, identity)[0]
        while covered < width:  # windows may overlap: an entry that is seen twice is the same entry
            shift = min(covered, width - covered)
            length = data.shape[-1] - shift
            data = choose(data.narrow(-1, 0, length), data.narrow(-1, shift, length))
            covered += shift
        return data

    return by_pieces(combine, (x.data, x.mask), windows, x.data.dtype)


def squares(x: Pair, windows: Windows | Spans) -> Tensor:
    """The squared distances of the valid entries of each window from their mean, added up; of half in float32."""
    narrow = torch.float64 if x.data.dtype is torch.float64 else torch.float32

    def combine(data: Tensor, valid: Tensor, width: Any) -> Tensor:
        mean = fill_outside(data, valid, 0).double()
        # Of one entry they are 0, and NaN if that is NaN or infinite.
        state: State = valid.to(narrow), mean, (mean - mean).to(narrow)
        if type(width) is Spans:
            return spans.combine(_join, state, width)[2]
        return _combine(_join, _narrow, state, mean.shape[-1], width)[2]

    return by_pieces(combine, (x.data, x.mask), windows, narrow, 2)


def quantile(x: Pair, windows: Windows, q: float) -> Tensor:
    """The ``q``-quantile of the valid entries of each window, interpolated; NaN if one of them is."""

    def choose(data: Tensor, valid: Tensor, width: int) -> Tensor:
        nan = data.isnan() & valid
        number = _sum(valid.to(torch.int32), width)
        spoiled = _sum(nan.to(torch.int32), width) > 0
        known: State = (torch.where(valid & ~nan, data, torch.inf),)
        ordered = torch.stack(_combine(_merge, _narrow, known, data.shape[-1], width))
        rank = quantile_rank(torch.tensor(q, dtype=torch.float64), number)
        found = interpolate_rank(lambda n: ordered.gather(0, n[None])[0], rank, "linear")
        return torch.where(spoiled, torch.nan, found)

    return by_pieces(choose, (x.data, x.mask), windows, x.data.dtype, windows.width // 4)


def _merge(a: State, b: State) -> State:
    """Both in one order, smallest first, if each is (Batcher's odd-even merge)."""
    if len(a) == len(b) == 1:
        return torch.minimum(a[0], b[0]), torch.maximum(a[0], b[0])
    if not a or not b:
        return a or b
    even, odd = _merge(a[::2], b[::2]), _merge(a[1::2], b[1::2])
    pairs = list(zip(odd, even[1:], strict=False))
    between = [choose(*pair) for pair in pairs for choose in (torch.minimum, torch.maximum)]
    return even[0], *between, *odd[len(pairs) :], *even[len(pairs) + 1 :]


def _join(a: State, b: State) -> State:
    """Number, mean and squares of two neighbours together; the mean of nothing is 0."""
    (n1, m1, squares1), (n2, m2, squares2) = a, b
    n = n1 + n2
    share = n.clamp_min(1)
    torch.div(n2, share, out=share)
    apart = (m2 - m1).to(n.dtype)
    return n, m1.lerp(m2, share.to(m1.dtype)), share.mul_(n1).mul_(apart).mul_(apart).add_(squares1).add_(squares2)


def _combine(combine: Callable[[T, T], T], cut: Callable[[T, int, int], T], state: T, size: int, width: int) -> T:
    """What is known of each of ``size`` entries, as that of each window of ``width`` entries that begins with it."""
    length = size - width + 1
    result, done, covered = None, 0, 1
    while True:
        if width & covered:
            part = cut(state, done, length)
            result = part if result is None else combine(result, part)
            done += covered
        if 2 * covered > width:
            assert result is not None
            return result
        size -= covered
        state = combine(cut(state, 0, size), cut(state, covered, size))
        covered *= 2


def _narrow(state: State, start: int, length: int) -> State:
    return tuple([t.narrow(-1, start, length) for t in state])


def _sum(x: Tensor, width: int | Spans) -> Tensor:
    """The sum of each window."""
    if type(width) is Spans:
        return spans.combine(lambda a, b: (a[0] + b[0],), (x,), width)[0]
    return _combine(torch.add, lambda t, start, length: t.narrow(-1, start, length), x, x.shape[-1], width)


def by_pieces(
    statistic: Statistic, given: State, windows: Windows | Spans, dtype: torch.dtype, copies: int = 1
) -> Tensor:
    """The statistic of all windows, of a few at a time; it makes so many ``copies`` of what it is given."""
    if type(windows) is Spans:
        found = statistic(*(t.movedim(windows.dim, -1) for t in given), windows.along_last())
        return found.movedim(-1, windows.dim)
    dim, shape = windows.dim, given[0].shape
    size, fit = shape[dim], max(1, settings.WINDOWS // max(copies, 1))
    start, end = max(windows.start, -size), min(windows.end, size)  # nothing is valid beyond either end
    if end <= start:
        result = torch.zeros(shape, dtype=dtype)
    elif given[0].numel() <= fit:
        given = _with_edges(tuple([t.movedim(dim, -1) for t in given]), start, size - 1 + end)
        result = statistic(*given, end - start).movedim(-1, dim)
    else:
        flat = (prod(shape[:dim]), size, prod(shape[dim + 1 :]))
        given = tuple([masks.reshape(t, flat).transpose(1, 2) for t in given])
        found = torch.empty(flat, dtype=dtype)
        for outer, along, inner in _cuts(flat, end - start, fit):
            parts = tuple([t[outer, inner] for t in given])
            parts = _with_edges(parts, along.start + start, along.stop - 1 + end)
            found[outer, along, inner] = statistic(*parts, end - start).transpose(1, 2)
        result = found.view(shape)
    return result if windows.step == 1 else result[(slice(None),) * dim + (slice(None, None, windows.step),)]


def _with_edges(given: State, first: int, last: int) -> State:
    """The entries ``first`` up to ``last`` along the last dimension; beyond either end they are 0, and not valid."""
    size = given[0].shape[-1]
    begin, end = max(first, 0), min(last, size)
    if (begin, end) != (0, size):
        given = _narrow(given, begin, end - begin)
    if (begin, end) == (first, last):
        return given
    return tuple([torch.constant_pad_nd(t, (begin - first, last - end)) for t in given])


def _cuts(shape: tuple[int, int, int], width: int, fit: int) -> Iterator[tuple[slice, slice, slice]]:
    """Pieces of ``fit`` results; along the dimension of the windows not much shorter than those."""
    outer, size, inner = shape
    stretch = min(inner, max(settings.STRETCH, fit // min(size, 4 * width)))
    length = min(size, max(4 * width, fit // stretch))
    number = max(1, fit // (length * stretch))
    for a in range(0, outer, number):
        for t in range(0, size, length):
            for b in range(0, inner, stretch):
                yield slice(a, a + number), slice(t, min(t + length, size)), slice(b, b + stretch)
