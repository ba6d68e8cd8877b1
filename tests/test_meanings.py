"""Each meaning has one home: change it there, and every layout and dtype follows.

A home is changed by giving its function the code of another, so that who has imported it follows, too.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.rules import padding
from masked_tensor.shared import order_statistics, too_few
from masked_tensor.shared.windows import Window

REAL = [
    torch.float64, torch.float32, torch.bfloat16, torch.float16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
]  # fmt: skip
LENGTHS = torch.tensor([4, 2, 5])
ROWS = torch.arange(5) < LENGTHS[:, None]
DATA = torch.tensor([[3, 1, 4, 2, 9], [8, 6, 9, 9, 9], [5, 1, 4, 2, 3]])


def ragged(dtype: torch.dtype) -> Any:
    return mt.masked_tensor(DATA.to(dtype), ROWS)


def whole(dtype: torch.dtype) -> Any:
    """Slices that are valid, or masked, as a whole."""
    return mt.masked_tensor(DATA.to(dtype), torch.tensor([[True], [False], [True]]))


def stored(layout: torch.layout) -> Callable[[torch.dtype], Any]:
    return lambda dtype: mt.as_masked_tensor((DATA * ROWS).to(dtype).to_sparse(layout=layout))


def packed(dtype: torch.dtype) -> Any:
    """A packed batch, the rows being its features."""
    wide = mt.masked_tensor(DATA.to(dtype)[:, :, None].expand(3, 5, 2), ROWS[..., None].expand(3, 5, 2))
    return wide.packed()


LAYOUTS = {
    "strided": ragged, "whole": whole, "COO": stored(torch.sparse_coo), "CSR": stored(torch.sparse_csr),
    "packed": packed,
}  # fmt: skip


def change(monkeypatch: pytest.MonkeyPatch, home: Any, code: Any) -> None:
    monkeypatch.setattr(home, "__code__", code.__code__)


def valid(x: Any) -> list[Any]:
    """The valid entries of a result, of the first column of a packed one's."""
    x = x.unpacked() if x.is_packed else x
    x = x[..., 0] if x.dim() > 1 and x.shape[-1] == 2 else x
    x = x.to_dense() if x.is_sparse else x
    return x.double().compressed().tolist()


# ------------------------------------------------------------------------------------------------------------- median


def upper_rank(numbers: Any, nans: Any = None) -> Any:
    return (numbers // 2).minimum((numbers - 1).clamp_min(0))


def select_upper(data: Any, dim: Any, keepdim: bool, skip_nan: bool) -> Any:
    numbers = (data == data).sum(dim, keepdim=True)
    values, at = data.sort(dim)
    place = median_rank(numbers)  # type: ignore[name-defined]  # noqa: F821 (of the home)
    found = values.gather(dim, place), at.gather(dim, place)
    return found if keepdim else tuple(f.squeeze(dim) for f in found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_an_even_count_it_is_the_lower_one(layout: str) -> None:
    for dtype in REAL:
        with pytest.MonkeyPatch.context() as monkeypatch:
            medians_follow(layout, dtype, monkeypatch)


def medians_follow(layout: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    x = LAYOUTS[layout](dtype)
    x = x[:, :4] if layout == "whole" else x
    lower, upper = {"whole": ([2, 2], [3, 4])}.get(layout, ([2, 6, 3], [3, 8, 3]))
    calls = [lambda: torch.median(x, 1).values, lambda: torch.nanmedian(x, 1).values, lambda: mt.median(x, 1).values]
    for call in calls:
        assert valid(call()) == lower
    change(monkeypatch, order_statistics.median_rank, upper_rank)
    change(monkeypatch, order_statistics.select_median, select_upper)
    for call in calls:
        assert valid(call()) == upper


def test_torchs_own_selection_takes_the_entry_that_is_asked_for() -> None:
    for n in range(1, 9):
        data = torch.randperm(n).double()
        rank = order_statistics.median_rank(torch.tensor(n))
        for skip_nan in (False, True):
            assert order_statistics.select_median(data, 0, False, skip_nan)[0] == data.sort().values[rank]


# ----------------------------------------------------------------------------------------------------------- quantile

INDEX = torch.arange(6)
SERIES = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])


def quantiles(dtype: torch.dtype) -> dict[str, Callable[[], Any]]:
    """The same quantile of ``[1, 2, 4, 8]`` by every mechanism."""
    known, mask = SERIES[:4].to(dtype), torch.arange(6) < 4
    x = mt.masked_tensor(SERIES.to(dtype), mask)
    row = mt.as_masked_tensor((SERIES.to(dtype) * mask)[None].to_sparse())
    batch = mt.masked_tensor(SERIES.to(dtype)[None, :, None].expand(2, 6, 2), mask[:, None].expand(2, 6, 2)).packed()
    long = mt.masked_tensor(known, torch.ones(4, dtype=torch.bool))
    some = {"min_periods": 1, "lengths": "full"}
    return {
        "strided": lambda: torch.quantile(x, 0.5, 0), "plain": lambda: mt.quantile(SERIES.to(dtype), 0.5, mask=mask),
        "NaN": lambda: torch.nanquantile(x, 0.5, 0), "COO": lambda: torch.quantile(row, 0.5, 1),
        "CSR": lambda: torch.quantile(mt.as_masked_tensor(row.get_data().to_sparse_csr()), 0.5, 1),
        "packed": lambda: torch.quantile(batch, 0.5, 1)[0, 0],
        "merged": lambda: mt.rolling(long, 4).quantile(0.5)[-1],
        "sorted": lambda: mt.rolling(x, 90, **some).quantile(0.5)[3],
        "of a time": lambda: mt.rolling(x, 6, index=INDEX, **some).quantile(0.5)[3],
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_quantile_is_interpolated(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    def above(at: Any, rank: Any, method: str) -> Any:
        return at(rank.ceil().long())

    def least(share: Any, numbers: Any, nans: Any = None, alphap: float = 1.0, betap: float = 1.0) -> Any:
        return share * 0 * numbers

    calls = quantiles(dtype)
    results = [(3.0, None, None), (4.0, order_statistics.interpolate_rank, above)]
    results += [(1.0, order_statistics.quantile_rank, least)]
    for expected, home, code in results:
        if home is not None:
            change(monkeypatch, home, code)
        for name, call in calls.items():
            found = call()
            found = found.to_dense() if found.is_sparse else found
            assert float(found.reshape(())) == expected, name


def test_a_quantile_of_a_histogram_is_that_of_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    def greatest(share: Any, numbers: Any, nans: Any = None, alphap: float = 1.0, betap: float = 1.0) -> Any:
        return numbers - 1.0

    stats = mt.RunningStatistics(1, edges=torch.arange(0.0, 40.0)).update(SERIES[:, None])
    assert 4 <= float(stats.quantile(0.5)) <= 9
    change(monkeypatch, order_statistics.quantile_rank, greatest)
    assert float(stats.quantile(0.5)) > 31


# ------------------------------------------------------------------------------------------------------------ nothing

FORMS = (
    "sum",
    "prod",
    "mean",
    "amax",
    "amin",
    "var",
    "std",
    "logsumexp",
    "norm",
    "nansum",
    "nanmean",
    "median",
    "mode",
)
FORMS += ("nanmedian", "argmax", "argmin", "max", "min", "count_nonzero", "any", "all")
ORDINARY = (torch.strided, torch.sparse_coo, torch.sparse_csr)
INTEGERS = {"sum", "prod", "amax", "amin", "nansum", "median", "nanmedian", "mode", "max", "min"}


@pytest.mark.parametrize("name", FORMS)
def test_a_reduction_of_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    masks = torch.zeros(3, 5, dtype=torch.bool), torch.tensor([[True], [True], [False]]).expand(3, 5)
    form = getattr(mt, name)

    def run(data: Tensor, mask: Tensor, **options: Any) -> Any:
        result = form(data, mask=mask, **options)
        result = result[0] if isinstance(result, tuple) else result
        return result.to_dense().reshape(-1) if result.layout is not torch.strided else result.reshape(-1)

    for layout, dtype, value in product(ORDINARY, REAL if name in INTEGERS else REAL[:4], (0, 1)):
        monkeypatch.setitem(too_few._OF_NOTHING, name, value)
        data = (DATA * ROWS).to(dtype)
        data = data if layout is torch.strided else data.to_sparse(layout=layout)
        if name not in ("var", "std"):  # these need two entries, whatever min_count is
            assert run(data, masks[1], dim=1, keepdim=True, min_count=0)[2] == value, (layout, dtype)
        if name != "mode":
            assert run(data, masks[0]) == value, (layout, dtype)


@pytest.mark.parametrize("form", [mt.mse_loss, mt.l1_loss, mt.cross_entropy, mt.nll_loss], ids=lambda f: f.__name__)
def test_a_loss_of_nothing(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    target = torch.zeros(2, dtype=torch.int64) if form in (mt.cross_entropy, mt.nll_loss) else torch.zeros(2, 3)
    for reduction in ("mean", "sum"):
        monkeypatch.setitem(too_few._OF_NOTHING, reduction, 5)
        assert form(torch.ones(2, 3), target, mask=torch.zeros(2, 3, dtype=torch.bool), reduction=reduction) == 5


# ---------------------------------------------------------------------------------------------------------- min_count


def more(number: Any, needed: Any = None) -> Any:
    return number > (1 if needed is None else needed)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_min_count(layout: str) -> None:
    for dtype in REAL:
        with pytest.MonkeyPatch.context() as monkeypatch:
            min_counts_follow(layout, dtype, monkeypatch)


def min_counts_follow(layout: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    x = LAYOUTS[layout](dtype)
    needed, before, after = {"whole": (5, 2, 0)}.get(layout, (4, 2, 1))
    names = ("sum", "amax", "argmax", "median", "max", "mode", "any", "count_nonzero")
    names += ("mean", "var", "logsumexp") if dtype.is_floating_point else ()

    def count() -> dict[str, int]:
        found = {name: getattr(mt, name)(x, 1, min_count=needed) for name in names}
        return {name: len(valid(r[0] if isinstance(r, tuple) else r)) for name, r in found.items()}

    assert count() == dict.fromkeys(names, before)
    change(monkeypatch, too_few.is_enough, more)
    assert count() == dict.fromkeys(names, after)


@pytest.mark.parametrize("layout", ["strided", "COO", "CSR"])
def test_who_needs_several_asks_there(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, long = LAYOUTS[layout](torch.float32), mt.masked_tensor([1.0, 2.0, 3.0])
    assert len(valid(torch.kthvalue(x, 4, 1).values)) == 2
    assert len(valid(mt.rolling(long, 2).sum())) == len(valid(mt.rolling(long, 2).median())) == 2
    assert bool(mt.cov(long[None], min_count=3).get_mask().all())
    change(monkeypatch, too_few.is_enough, more)
    assert len(valid(torch.kthvalue(x, 4, 1).values)) == 1
    assert valid(mt.rolling(long, 2).sum()) == valid(mt.rolling(long, 2).median()) == []
    assert not bool(mt.cov(long[None], min_count=3).get_mask().any())


# ------------------------------------------------------------------------------------------------- windows and padding


def windows(dtype: torch.dtype) -> dict[str, Callable[[], Any]]:
    torch.manual_seed(0)
    x = mt.masked_tensor(torch.randn(3, 2, 6, dtype=dtype), (torch.arange(6) < LENGTHS[:, None])[:, None])
    conv, same = nn.Conv1d(2, 2, 3, dtype=dtype), nn.Conv1d(2, 2, 3, padding=1, dtype=dtype)
    image = x[:, None].expand(3, 2, 2, 6).contiguous()
    batch = x.transpose(1, 2).contiguous().packed().transpose(1, 2)
    return {
        "conv": lambda: conv(x), "padded": lambda: same(x), "packed": lambda: same(batch),
        "conv2d": lambda: F.conv2d(image, torch.ones(2, 2, 1, 3, dtype=dtype)), "max": lambda: F.max_pool1d(x, 3, 1),
        "mean": lambda: F.avg_pool1d(x, 3, 1), "norm": lambda: F.lp_pool1d(x, 2.0, 3, 1),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_window_is_valid_where_its_core_is(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = windows(dtype)

    def lengths() -> dict[str, list[int]]:
        found = {name: call() for name, call in calls.items()}
        return {name: mt.get_mask(r).reshape(3, -1, r.shape[-1])[:, 0].sum(-1).tolist() for name, r in found.items()}

    kept = ("padded", "packed")
    assert lengths() == {name: [4, 2, 5] if name in kept else [2, 0, 3] for name in calls}
    change(monkeypatch, Window.span.fget, lambda self: self.dilation * (self.kernel - 1) - self.left - self.right + 1)
    assert lengths() == {name: [3, 1, 4] if name in kept else [1, 0, 2] for name in calls}


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_is_at_the_end_of_each_row(mode: str) -> None:
    has_kernel = REAL[:3] if mode in ("reflect", "replicate") else [*REAL, torch.bool]
    for dtype in has_kernel:
        with pytest.MonkeyPatch.context() as monkeypatch:
            padding_follows(mode, dtype, monkeypatch)


def padding_follows(mode: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    x = mt.masked_tensor(torch.ones(3, 2, 5, dtype=dtype), ROWS[:, None])
    batch = x.transpose(1, 2).contiguous().packed().transpose(1, 2)

    def lengths() -> list[list[int]]:
        return [mt.get_mask(F.pad(t, (0, 1), mode)).sum(-1)[:, 0].tolist() for t in (x, batch)]

    def early(mask: Any, dim: int) -> Any:
        first, last = ends.first_and_last(mask, dim)  # type: ignore[name-defined]  # noqa: F821 (of the home)
        return first, last - 1

    assert lengths() == [[5, 3, 6]] * 2
    change(monkeypatch, padding._ends, early)
    strided, tokens = lengths()
    assert strided == tokens != [5, 3, 6]
