"""Tables and series, reductions and norms of ``everyday.py``: 30 % of each is missing, at random."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt

from .everyday_case import FINITE, Case, random_mask
from .timing import Candidates

WINDOW = 20
NAN = float("nan")


def standardise(size: int, dtype: torch.dtype) -> Candidates:
    """A table of 20 or 50 columns, each standardised."""
    columns = 20 if size < 100_000 else 50
    data, seen = torch.randn(size // columns, columns, dtype=dtype), random_mask(size // columns, columns)
    x = mt.masked_tensor(data, seen)

    def by_hand() -> Tensor:
        number = seen.sum(0)
        apart = torch.where(seen, data - torch.where(seen, data, 0).sum(0) / number, 0)
        return apart / (apart.square().sum(0) / (number - 1)).sqrt()

    def on_finite_data() -> Tensor:
        number = seen.sum(0)
        apart = (data - (data * seen).sum(0) / number) * seen
        return apart / (apart.square().sum(0) / (number - 1)).sqrt()

    return {
        "plain": lambda: (data - data.mean(0)) / data.std(0),
        "by hand": by_hand,
        FINITE: on_finite_data,
        "masked": lambda: (x - x.mean(0)) / x.std(0),
    }


def median(size: int, dtype: torch.dtype) -> Candidates:
    columns = 20 if size < 100_000 else 50
    data, seen = torch.randn(size // columns, columns, dtype=dtype), random_mask(size // columns, columns)
    x = mt.masked_tensor(data, seen)
    return {
        "plain": lambda: data.median(0).values,
        "by hand": lambda: torch.where(seen, data, NAN).nanmedian(0).values,
        "masked": lambda: x.median(0).values,
    }


def quantile(size: int, dtype: torch.dtype) -> Candidates:
    columns = 20 if size < 100_000 else 50
    data, seen = torch.randn(size // columns, columns), random_mask(size // columns, columns)
    x = mt.masked_tensor(data, seen)
    return {
        "plain": lambda: data.quantile(0.3, 0),
        "by hand": lambda: torch.where(seen, data, NAN).nanquantile(0.3, 0),
        "masked": lambda: x.quantile(0.3, 0),
    }


def covariance(size: int, dtype: torch.dtype, correlation: bool = False) -> Candidates:
    columns = 20
    data, seen = torch.randn(columns, size // columns, dtype=dtype), random_mask(columns, size // columns)
    x = mt.masked_tensor(data, seen)

    def by_hand() -> Tensor:
        """Over the rows in which both of two variables are present."""
        present = seen.to(dtype)
        centred = torch.where(seen, data - torch.where(seen, data, 0).sum(1, True) / present.sum(1, True), 0)
        number, sums = present @ present.T, centred @ present.T
        products = centred @ centred.T - sums * sums.T / number
        if not correlation:
            return products / (number - 1)
        squares = centred.square() @ present.T - sums * sums / number
        return products / (squares * squares.T).sqrt()

    call: Callable[[Any], Any] = torch.corrcoef if correlation else torch.cov
    return {"plain": lambda: call(data), "by hand": by_hand, "masked": lambda: call(x)}


def series(size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Any]:
    data, seen = torch.randn(size, dtype=dtype), random_mask(size)
    return data, seen, mt.masked_tensor(data, seen)


def pandas_series(data: Tensor, seen: Tensor) -> Any:
    if data.dtype is not torch.float32 or not data.is_cpu or not find_spec("pandas"):
        return None
    import pandas

    return pandas.Series(torch.where(seen, data, NAN).numpy())


def with_pandas(calls: Candidates, frame: Any, call: Callable[[Any], object]) -> Candidates:
    return calls if frame is None else calls | {"pandas": lambda: call(frame)}


def rolling_max(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = series(size, dtype)
    least = torch.finfo(dtype).min

    def pool(values: Tensor) -> Tensor:
        padded = F.pad(values, (WINDOW - 1, 0), value=least)
        return F.max_pool1d(padded[None], WINDOW, 1)[0]

    def by_hand() -> Tensor:
        result = pool(torch.where(seen, data, least))
        return torch.where(result == least, NAN, result)

    calls = {
        "plain": lambda: pool(data), "by hand": by_hand, "masked": lambda: mt.rolling(x, WINDOW, min_periods=1).max()
    }  # fmt: skip
    return with_pandas(calls, pandas_series(data, seen), lambda s: s.rolling(WINDOW, 1).max())


def rolling_sum(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = series(size, dtype)

    def by_hand() -> Tensor:
        total = F.pad(torch.where(seen, data, 0), (WINDOW, 0)).cumsum(0, dtype=torch.float64)
        return (total[WINDOW:] - total[:-WINDOW]).to(dtype)

    calls = {
        "plain": lambda: F.pad(data, (WINDOW - 1, 0)).unfold(0, WINDOW, 1).sum(-1),
        "by hand": by_hand,
        "masked": lambda: mt.rolling(x, WINDOW, min_periods=1).sum(),
    }
    return with_pandas(calls, pandas_series(data, seen), lambda s: s.rolling(WINDOW, 1).sum())


def rolling_mean(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = series(size, dtype)

    def windows(values: Tensor) -> Tensor:
        """The sum over each window, by running sums."""
        total = F.pad(values, (WINDOW, 0)).cumsum(0, dtype=torch.float64)
        return total[WINDOW:] - total[:-WINDOW]

    def by_hand() -> Tensor:
        return (windows(torch.where(seen, data, 0)) / windows(seen)).to(dtype)

    calls = {
        "plain": lambda: F.pad(data, (WINDOW - 1, 0)).unfold(0, WINDOW, 1).mean(-1),
        "by hand": by_hand,
        "masked": lambda: mt.rolling(x, WINDOW, min_periods=1).mean(),
    }
    return with_pandas(calls, pandas_series(data, seen), lambda s: s.rolling(WINDOW, 1).mean())


def rolling_std(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = series(size, dtype)

    def windows(values: Tensor) -> Tensor:
        total = F.pad(values, (WINDOW, 0)).cumsum(0, dtype=torch.float64)
        return total[WINDOW:] - total[:-WINDOW]

    def by_hand() -> Tensor:
        known = torch.where(seen, data, 0).double()
        number, total = windows(seen), windows(known)
        result = ((windows(known * known) - total * total / number) / (number - 1)).sqrt()
        return torch.where(number > 1, result, NAN).to(dtype)

    calls = {
        "plain": lambda: F.pad(data, (WINDOW - 1, 0)).unfold(0, WINDOW, 1).std(-1),
        "by hand": by_hand,
        "masked": lambda: mt.rolling(x, WINDOW, min_periods=1).std(),
    }
    return with_pandas(calls, pandas_series(data, seen), lambda s: s.rolling(WINDOW, 1).std())


def rolling_median(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = series(size, torch.float32)

    def unfolded(values: Tensor) -> Tensor:
        return F.pad(values, (WINDOW - 1, 0), value=NAN).unfold(0, WINDOW, 1)

    calls = {
        "plain": lambda: unfolded(data).sort(-1).values[:, WINDOW // 2],
        "by hand": lambda: unfolded(torch.where(seen, data, NAN)).nanquantile(0.5, -1),
        "masked": lambda: mt.rolling(x, WINDOW, min_periods=1).median(),
    }
    return with_pandas(calls, pandas_series(data, seen), lambda s: s.rolling(WINDOW, 1).median())


def ffill(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = series(size, dtype)

    def by_hand() -> Tensor:
        last = torch.where(seen, torch.arange(size), -1).cummax(0).values
        return torch.where(last < 0, NAN, data[last.clamp_min(0)])

    calls = {"plain": lambda: data[torch.arange(size)], "by hand": by_hand, "masked": lambda: mt.ffill(x)}
    return with_pandas(calls, pandas_series(data, seen), lambda s: s.ffill())


def bfill(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = series(size, dtype)

    def by_hand() -> Tensor:
        following = torch.where(seen, torch.arange(size), size).flip(0).cummin(0).values.flip(0)
        return torch.where(following == size, NAN, data[following.clamp_max(size - 1)])

    calls = {"plain": lambda: data[torch.arange(size)], "by hand": by_hand, "masked": lambda: mt.bfill(x)}
    return with_pandas(calls, pandas_series(data, seen), lambda s: s.bfill())


def interpolate(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = series(size, torch.float32)

    def by_hand() -> Tensor:
        at = torch.arange(size)
        first = torch.where(seen, at, -1).cummax(0).values
        second = torch.where(seen, at, size).flip(0).cummin(0).values.flip(0)
        low, high = data[first.clamp_min(0)], data[second.clamp_max(size - 1)]
        share = (at - first) / (second - first).clamp_min(1)
        result = torch.where(second < size, low + share * (high - low), low)
        return torch.where(first < 0, NAN, result)

    calls = {
        "plain": lambda: torch.lerp(data, data, 0.5), "by hand": by_hand, "masked": lambda: mt.interpolate(x)
    }  # fmt: skip
    return with_pandas(calls, pandas_series(data, seen), lambda s: s.interpolate())


def segments(size: int, dtype: torch.dtype, columns: int = 0) -> Candidates:
    """The mean of 100 or 1000 segments."""
    number = 100 if size < 100_000 else 1000
    rows = size // max(columns, 1)
    shape = (rows, columns) if columns else (rows,)
    data, seen = torch.randn(shape, dtype=dtype), random_mask(*shape)
    x, lengths = mt.masked_tensor(data, seen), torch.full((number,), rows // number)

    def by_hand() -> Tensor:
        total = torch.segment_reduce(torch.where(seen, data, 0), "sum", lengths=lengths)
        return total / torch.segment_reduce(seen.float(), "sum", lengths=lengths).to(dtype)

    return {
        "plain": lambda: torch.segment_reduce(data, "mean", lengths=lengths),
        "by hand": by_hand,
        "masked": lambda: torch.segment_reduce(x, "mean", lengths=lengths),
    }


def rows(size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Any]:
    """Hidden states: rows of 64, or of 512 where there are many."""
    width = 64 if size < 1_000_000 else 512
    data, seen = torch.randn(size // width, width, dtype=dtype), random_mask(size // width, width)
    return data, seen, mt.masked_tensor(data, seen)


def row_sum(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = rows(size, dtype)
    return {
        "plain": lambda: data.sum(-1),
        "by hand": lambda: torch.where(seen, data, 0).sum(-1),
        FINITE: lambda: (data * seen).sum(-1),
        "masked": lambda: x.sum(-1),
    }


def softmax(size: int, dtype: torch.dtype) -> Candidates:
    data, seen, x = rows(size, dtype)
    weight = seen.to(dtype)
    return {
        "plain": lambda: data.softmax(-1),
        "by hand": lambda: torch.where(seen, data, -torch.inf).softmax(-1).nan_to_num(0),
        FINITE: lambda: (data + (1 - weight) * -1e9).softmax(-1) * weight,
        "masked": lambda: x.softmax(-1),
    }


def layer_norm(size: int, dtype: torch.dtype) -> Candidates:
    """Both ways."""
    data, seen, _ = rows(size, dtype)
    leaf = data.clone().requires_grad_()
    weight = torch.ones(data.shape[-1], dtype=dtype, requires_grad=True)
    mine = mt.masked_tensor(data, seen, requires_grad=True)

    def step(leaf: Any, norm: Callable[[Any], Any]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            result = norm(leaf)
            result.sum().backward()
            leaf.grad = weight.grad = None
            return result.detach()  # type: ignore[no-any-return]

        return run

    def by_hand(x: Tensor) -> Tensor:
        number = seen.sum(-1, True).clamp_min(1)
        centred = torch.where(seen, x - torch.where(seen, x, 0).sum(-1, True) / number, 0)
        return centred * (centred.square().sum(-1, True) / number + 1e-5).rsqrt() * weight

    def norm(x: Any) -> Any:
        return F.layer_norm(x, data.shape[-1:], weight)

    return {"plain": step(leaf, norm), "by hand": step(leaf, by_hand), "masked": step(mine, norm)}


BAND = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CASES = [
    Case("standardise a table of 1000 x 20", "1.5", lambda _, dtype: standardise(20_000, dtype)),
    Case(
        "standardise a table of 100,000 x 50",
        "1.2",
        lambda _, dtype: standardise(5_000_000, dtype),
        tolerance=0.1,
        heavy=True,
    ),
    Case("median per column, 1000 x 20", "1.2", lambda _, dtype: median(20_000, dtype)),
    Case("median per column, 100,000 x 50", "1.2", lambda _, dtype: median(5_000_000, dtype), heavy=True),
    Case("quantile per column, 1000 x 20", "1.2", lambda _, dtype: quantile(20_000, dtype), half=False),
    Case(
        "quantile per column, 100,000 x 50", "1.2", lambda _, dtype: quantile(5_000_000, dtype), half=False, heavy=True
    ),
    Case("covariance of 20 columns", "1.2", covariance, (20_000, 1_000_000), tolerance=0.1),
    Case("correlation of 20 columns", "1.2", partial(covariance, correlation=True), (20_000, 1_000_000), tolerance=0.1),
    Case("rolling sum, window 20", "1.5", rolling_sum, (1_000, 10_000, 1_000_000)),
    Case("rolling max, window 20", "1.5", rolling_max, (1_000, 10_000, 1_000_000)),
    Case("rolling mean, window 20", "1.5", rolling_mean, BAND),
    Case("rolling std, window 20", "1.5", rolling_std, (1_000, 10_000, 1_000_000)),
    Case("rolling median, window 20", "1.2", rolling_median, (10_000, 1_000_000), half=False),
    Case("ffill", "1.2", ffill, BAND),
    Case("bfill", "1.2", bfill, (10_000, 1_000_000)),
    Case("interpolate", "1.2", interpolate, (10_000, 1_000_000), half=False),
    Case("segment mean", "1.5", segments, (10_000, 1_000_000), tolerance=0.1),
    Case(
        "segment mean, 100,000 x 16", "1.2", lambda _, dtype: segments(1_600_000, dtype, 16), tolerance=0.1, heavy=True
    ),
    Case("sum(-1)", "1.2", row_sum, BAND),
    Case("softmax", "1.2", softmax, BAND),
    Case("layer_norm, random mask, both ways", "1.2", layer_norm, BAND, tolerance=0.1),
    Case("layer_norm of 512 x 64, random mask, both ways", "1.5", lambda _, d: layer_norm(32_768, d), tolerance=0.1),
]
