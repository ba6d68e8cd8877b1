"""Statistics of a window that moves along one dimension, under pandas' names."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from .. import masks, shapes
from ..engine.boundary.enter_leave import leave
from ..pair import Pair
from . import moment, order, reduction
from .entrance import as_pair, enter_input, refuse_sparse

Closed = Literal["right", "left", "both", "neither"]


@dataclass(frozen=True, eq=False)
class Rolling:
    """The windows of :func:`rolling`: a masked tensor with one dimension more, the last.

    >>> mt.rolling(mt.masked_tensor([1.0, 2.0, 3.0]), 2).max()
    masked_tensor([--, 2.0000, 3.0000], valid=2/3)
    """

    windows: Any  #: a masked tensor ``(..., entries, ..., width)``, a view of the padded input
    min_periods: int

    def sum(self) -> Any:
        """The sum of the valid entries of each window."""
        return self._enough(reduction.sum(self.windows, -1, min_count=self.min_periods))

    def mean(self) -> Any:
        """Their mean."""
        return self._enough(reduction.mean(self.windows, -1, min_count=self.min_periods))

    def min(self) -> Any:
        """The smallest."""
        return self._enough(reduction.amin(self.windows, -1))

    def max(self) -> Any:
        """The largest."""
        return self._enough(reduction.amax(self.windows, -1))

    def var(self, ddof: int = 1) -> Any:
        """Their variance; masked for ``ddof`` entries or fewer."""
        return self._enough(moment.var(self.windows, -1, correction=ddof))

    def std(self, ddof: int = 1) -> Any:
        """Their standard deviation; masked for ``ddof`` entries or fewer."""
        return self._enough(moment.std(self.windows, -1, correction=ddof))

    def median(self) -> Any:
        """Their median: of an even number, the mean of the middle two."""
        return self.quantile(0.5)

    def quantile(self, q: float) -> Any:
        """Their ``q``-quantile, interpolated."""
        return self._enough(order.quantile(self.windows, q, -1))

    def count(self) -> Tensor:
        """How many entries of each window are valid: a plain int64 tensor."""
        return masks.count(as_pair(enter_input(self.windows)).mask, -1)

    def _enough(self, result: Any) -> Any:
        """Holes where fewer than ``min_periods`` entries are valid."""
        x = as_pair(enter_input(result))
        return leave(Pair(x.data, masks.logical_and(x.mask, self.count() >= self.min_periods)))


def rolling(
    input: Tensor,
    window: int,
    min_periods: int | None = None,
    center: bool = False,
    *,
    closed: Closed = "right",
    step: int = 1,
    dim: int = 0,
    mask: Tensor | None = None,
) -> Rolling:
    """The windows of ``window`` entries that end at each entry along ``dim``, as in ``pandas.DataFrame.rolling``.

    ``min_periods`` is the number of valid entries that a result needs, all of the window by default; ``center`` puts
    the entry into the middle; ``closed`` says which ends belong to the window, ``step`` how many entries it moves on.
    What lies before the first entry and after the last is a hole.  The statistics are methods of the result, all
    differentiable; each reads ``window`` times the input.

    >>> x = mt.masked_tensor([1.0, None, 3.0, 4.0])
    >>> mt.rolling(x, 2).mean()
    masked_tensor([--, --, --, 3.5000], valid=1/4)
    >>> mt.rolling(x, 2, min_periods=1).mean()
    masked_tensor([1.0000, 1.0000, 3.0000, 3.5000], valid=4/4)
    """
    given = enter_input(input, mask)
    refuse_sparse("rolling", given)
    if closed not in get_args(Closed):
        raise ValueError(f"rolling: closed must be one of {get_args(Closed)}, got {closed!r}")
    needed = window if min_periods is None else min_periods
    if window < 1 or step < 1 or not 0 <= needed <= window or given.data.dim() == 0:
        raise ValueError(
            "rolling needs a window of at least 1 along a dimension, a step of at least 1, and min_periods from 0 to "
            f"the window; got window={window}, step={step}, min_periods={needed}, shape {tuple(given.data.shape)}"
        )
    (dim,) = shapes.canonical_dims(dim, given.data.dim())
    end = 1 + (window - 1) // 2 * center - (closed in ("left", "neither"))
    start = 1 + (window - 1) // 2 * center - window - (closed in ("left", "both"))
    x = as_pair(given)
    valid = masks.expand_to(x.mask, x.data.shape)
    if end == start:  # a window without entries is one of a masked-out entry: it has no smallest either
        end, valid = end + 1, torch.zeros_like(valid)
    data, valid = (_windows(part, dim, start, end, step) for part in (x.data, valid))
    return Rolling(leave(Pair(data, valid)), needed)


def _windows(x: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    """Entries ``start`` up to ``end``, seen from each entry along ``dim``, as the last dimension; zeros outside."""
    if not x.shape[dim]:
        return x[..., None].expand(*x.shape, end - start)
    pads = [0, 0] * (x.dim() - dim - 1) + [-start, end - 1]
    return torch.nn.functional.pad(x, pads).unfold(dim, end - start, step)
