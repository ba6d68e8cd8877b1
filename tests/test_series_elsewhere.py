"""Time series by pandas, polars and bottleneck: random calls, in which every word of every choice occurs.

``MASKED_TENSOR_SERIES=20000`` draws that many calls for each library.
"""

import os
import random
from collections import Counter
from typing import Any

import pytest
import torch

import masked_tensor as mt

DRAWS = int(os.environ.get("MASKED_TENSOR_SERIES", "250"))
NAN, INF = float("nan"), float("inf")
AREAS = [None, "inside", "outside"]
DIRECTIONS = ["forward", "backward", "both"]
STATISTICS = ["sum", "mean", "min", "max", "var", "std", "median", "quantile", "count"]
Call = tuple[str, dict[str, Any]]


def series(rng: random.Random, inf: bool) -> tuple[mt.MaskedTensor, Any]:
    """A column of float64 with garbage where it is missing, and the same as an array with NaN there."""
    size = rng.choice([1, 2, 3, 7, 20, 41])
    share = rng.choice([0.0, 0.2, 0.6, 0.9, 1.0])
    data = [rng.choice([rng.gauss(0, 1), 1e6 + rng.random(), float(rng.randint(-2, 2))]) for _ in range(size)]
    if inf:
        data = [rng.choice([v, v, v, v, INF, -INF, 1e308, -1e308]) for v in data]
    valid = [rng.random() >= share for _ in range(size)]
    held = [v if seen else rng.choice([NAN, INF, 1e30]) for v, seen in zip(data, valid, strict=True)]
    x = mt.as_masked_tensor(torch.tensor(held, dtype=torch.float64), torch.tensor(valid))
    return x, x.filled(NAN).numpy()


def draw_limit(rng: random.Random, size: int) -> int | None:
    return rng.choice([None, 1, 2, size, size + 1])


def draw_rolling(rng: random.Random, size: int) -> tuple[int, dict[str, Any], str, dict[str, Any]]:
    window = rng.choice([1, 2, 3, 5, 8, size, size + 3])
    said = {
        "min_periods": rng.choice([None, 0, 1, rng.randint(0, window)]),
        "center": rng.random() < 0.4,
        "closed": rng.choice(["right", "left", "both", "neither"]),
        "step": rng.choice([1, 1, 2, 3]),
    }
    name = rng.choice(STATISTICS)
    more = {"var": {"ddof": rng.randint(0, 2)}, "std": {"ddof": rng.randint(0, 2)}, "quantile": {"q": rng.random()}}
    return window, said, name, more.get(name, {})


def draw_time(rng: random.Random, size: int) -> tuple[list[int], int, dict[str, Any], str, dict[str, Any]]:
    """Times in days, some of them the same, and windows of an even number of days, of which there is a half."""
    times = torch.tensor([rng.choice([0, 1, 1, 2, 7]) for _ in range(size)]).cumsum(0) - rng.randint(0, 9)
    _, said, name, more = draw_rolling(rng, size)
    return times.tolist(), rng.choice([2, 4, 6, 14, 1000]), said, name, more


def same(ours: Any, theirs: Any, scale: float, call: Any) -> None:
    wanted = torch.tensor(theirs, dtype=torch.float64)
    if type(ours) is mt.MaskedTensor:
        got = ours.filled(NAN)
        assert got.isnan().equal(wanted.isnan()), call
    else:  # a count, which pandas does not give where min_periods is not reached
        got = torch.where(wanted.isnan(), NAN, ours.double())
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9 * scale, equal_nan=True, msg=lambda m: f"{call}: {m}")


def scale_of(x: mt.MaskedTensor, name: str) -> float:
    """The size of what is added up: libraries that take off what they added lose its digits."""
    largest = float(x.filled(0).abs().nan_to_num(0, 0, 0).max())
    return 1.0 + (largest**2 if name == "var" else largest * 1e3 if name == "std" else largest)


def pandas_call(pandas: Any, rng: random.Random, size: int) -> tuple[Call, Any, Any]:
    """What is called, by us and by them."""
    name = rng.choice(["ffill", "bfill", "linear", "index", "nearest", *["rolling"] * 5, *["time"] * 3])
    if name in ("ffill", "bfill"):
        said: dict[str, Any] = {"limit": draw_limit(rng, size), "limit_area": rng.choice(AREAS)}
        return (name, said), lambda x: getattr(mt, name)(x, **said), lambda s: getattr(s, name)(**said)
    if name == "time":
        times, window, said, what, more = draw_time(rng, size)
        days = pandas.to_datetime(torch.tensor(times).numpy(), unit="D")
        others = {k: v for k, v in said.items() if k != "step"}  # which pandas does not take here
        return (
            (what, {"times": times, "window": window, **said, **more}),
            lambda x: getattr(mt.rolling(x, window, index=torch.tensor(times), **said), what)(**more),
            lambda s: getattr(s.set_axis(days).rolling(f"{window}D", **others), what)(**more)[:: said["step"]],
        )
    if name == "rolling":
        window, said, what, more = draw_rolling(rng, size)
        if said["closed"] == "neither" and window == 1:
            said["closed"] = "right"  # pandas raises
        return (
            (what, {"window": window, **said, **more}),
            lambda x: getattr(mt.rolling(x, window, **said), what)(**more),
            lambda s: getattr(s.rolling(window, **said), what)(**more),
        )
    said = {
        "limit": draw_limit(rng, size), "limit_area": rng.choice(AREAS), "limit_direction": rng.choice(DIRECTIONS)
    }  # fmt: skip
    if name == "index":
        times = torch.tensor([rng.choice([0.25, 1.0, 7.0]) for _ in range(size)]).cumsum(0).double()
        return (
            (name, said),
            lambda x: mt.interpolate(x, index=times, **said),
            lambda s: s.set_axis(times.numpy()).interpolate("index", **said),
        )
    return (
        (name, said),
        lambda x: mt.interpolate(x, method=name, **said),
        lambda s: s.interpolate(name, **said),
    )


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("scipy")
    rng, counts = random.Random(0), Counter[str]()
    while counts.total() < DRAWS:
        x, array = series(rng, inf=False)
        (name, said), ours, theirs = pandas_call(pandas, rng, len(array))
        if name == "nearest" and len(array) - x.count().item() > len(array) - 2:
            continue  # scipy needs two values
        same(ours(x), theirs(pandas.Series(array)).to_numpy(), scale_of(x, name), (name, said, array))
        counts[name] += 1
    assert set(counts) == {"ffill", "bfill", "linear", "index", "nearest", *STATISTICS}


def polars_call(polars: Any, rng: random.Random, size: int) -> tuple[Call, Any, Any]:
    name = rng.choice(["ffill", "bfill", "linear", "index", "nearest", *STATISTICS[:-1]])
    if name in ("ffill", "bfill"):
        limit = draw_limit(rng, size)
        theirs = "forward_fill" if name == "ffill" else "backward_fill"
        return (
            (name, {"limit": limit}),
            lambda x: getattr(mt, name)(x, limit=limit),
            lambda c: getattr(c, theirs)(limit),
        )
    if name == "index":
        times = torch.tensor([rng.choice([1, 2, 7]) for _ in range(size)]).cumsum(0)
        return (
            (name, {}),
            lambda x: mt.interpolate(x, index=times, limit_area="inside"),
            lambda c: c.interpolate_by(polars.Series(times.tolist())),
        )
    if name == "linear":
        return (name, {}), lambda x: mt.interpolate(x, limit_area="inside"), lambda c: c.interpolate()
    if name == "nearest":  # of two that are as near, the later
        return (
            (name, {}),
            lambda x: mt.interpolate(x.flip(0), method="nearest").flip(0),
            lambda c: c.interpolate("nearest"),
        )
    window = rng.choice([1, 2, 3, 5, 8, size, size + 3])
    least, center = rng.choice([None, 1, rng.randint(1, window)]), rng.random() < 0.4
    q, ddof = rng.random(), rng.randint(0, 1)
    more = {"var": {"ddof": ddof}, "std": {"ddof": ddof}, "quantile": {"q": q}}.get(name, {})
    others = {"quantile": {"quantile": q, "interpolation": "linear"}}.get(name, more)
    return (
        (name, {"window": window, "least": least, "center": center, **more}),
        lambda x: getattr(mt.rolling(x, window, min_periods=least, center=center), name)(**more),
        lambda c: getattr(c, "rolling_" + name)(
            **others, window_size=window, min_samples=window if least is None else least, center=center
        ),
    )  # fmt: skip


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    rng, counts = random.Random(1), Counter[str]()
    while counts.total() < DRAWS:
        x, array = series(rng, inf=False)
        (name, said), ours, theirs = polars_call(polars, rng, len(array))
        frame = polars.DataFrame({"x": array}).with_columns(polars.col("x").fill_nan(None))
        found = frame.select(theirs(polars.col("x")).cast(polars.Float64))["x"].fill_null(NAN).to_numpy()
        same(ours(x), found, scale_of(x, name), (name, said, array))
        counts[name] += 1
    assert set(counts) == {"ffill", "bfill", "linear", "index", "nearest", *STATISTICS[:-1]}


def test_bottleneck() -> None:
    bottleneck = pytest.importorskip("bottleneck")
    rng, counts = random.Random(2), Counter[str]()
    while counts.total() < DRAWS:
        x, array = series(rng, inf=False)
        size, name = len(array), rng.choice(["push", *STATISTICS[:-2]])
        if name == "push":
            limit = draw_limit(rng, size)
            ours, theirs, said = mt.ffill(x, limit=limit), bottleneck.push(array, limit), {"limit": limit}
        else:
            window = rng.randint(1, size)
            said = {"window": window, "min_count": rng.choice([None, 1, rng.randint(1, window)])}
            ddof = rng.randint(0, 1) if (said["min_count"] or window) > 1 else 0  # it divides by 0
            more = {"ddof": ddof} if name in ("var", "std") else {}
            ours = getattr(mt.rolling(x, window, min_periods=said["min_count"]), name)(**more)
            theirs = getattr(bottleneck, "move_" + name)(array, **said, **more)
        same(ours, theirs, scale_of(x, name), (name, said, array))
        counts[name] += 1
    assert set(counts) == {"push", *STATISTICS[:-2]}


def test_interpolation_at_the_edges_of_numbers() -> None:
    """numpy's line is pandas': a gap that ends at infinity is infinite; no difference of its ends overflows here."""
    numpy = pytest.importorskip("numpy")
    rng = random.Random(3)
    for _ in range(DRAWS):
        x, array = series(rng, inf=True)
        valid = x.mask.numpy()
        if not valid.any():
            continue
        ours = mt.interpolate(x, limit_direction="both").filled(NAN)
        place = numpy.arange(len(array))
        with numpy.errstate(all="ignore"):  # pandas takes this too, and overflows: half of the values has room
            halved = numpy.interp(place, place[valid], array[valid] / 2)
        wanted = torch.as_tensor(halved) * 2
        torch.testing.assert_close(ours, wanted, rtol=1e-12, atol=0.0, equal_nan=True)


def test_line() -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        top = torch.finfo(dtype).max
        below = torch.nextafter(torch.tensor(top, dtype=dtype), torch.zeros((), dtype=dtype)).item()
        for low, high in (
            (top, -top),
            (top, below),
            (-top, -below),
            (top, top),
            (INF, INF),
            (0.1, 0.1),
            (INF, 1),
            (1, -INF),
        ):
            x = mt.masked_tensor([low, *[None] * 9, high], dtype=dtype)
            ours = mt.interpolate(x).filled()
            a, b = x[[0, -1]].filled().double().tolist()
            if a == b or INF in (abs(a), abs(b)):
                assert ours[1:-1].eq(a if abs(a) == INF or a == b else b).all()
                continue
            wanted = torch.tensor([a * ((10 - k) / 10) + b * (k / 10) for k in range(11)], dtype=torch.float64)
            assert ours.isfinite().all()
            torch.testing.assert_close(
                ours.double(), wanted, rtol=torch.finfo(dtype).eps, atol=top * torch.finfo(dtype).eps
            )


def test_the_line_of_complex_numbers_is_that_of_their_parts() -> None:
    z = mt.masked_tensor([complex(1, INF), 0, complex(3e38, 2), 0, complex(-3e38, 4)], [True, False, True, False, True])
    assert mt.interpolate(z).tolist()[1] == complex(torch.tensor(3e38).item() / 2, INF)
    assert mt.interpolate(z).tolist()[3] == 3j


@pytest.mark.parametrize("ends", [(1.0, 3.0), (2.0, 2.0), (0.0, 0.0), (-1.0, 5.0), (4.0, 0.0)])
def test_the_gradient_goes_to_both_ends(ends: tuple[float, float]) -> None:
    """Also where they are equal, or one is 0: which way the line is computed does not show."""
    data = torch.tensor([ends[0], NAN, NAN, NAN, ends[1]], dtype=torch.float64, requires_grad=True)
    valid = torch.tensor([True, False, False, False, True])
    mt.interpolate(mt.as_masked_tensor(data, valid))[1].filled().backward()
    assert data.grad is not None
    assert data.grad.tolist() == [0.75, 0, 0, 0, 0.25]


WRONG: list[list[Any]] = [[0, 2, 1], [0, 1, 1], [0.0, NAN, 2.0], [NAN, 1.0, 2.0], [0.0, 1.0, INF], [-INF, 0.0, 1.0]]


@pytest.mark.parametrize("index", WRONG)
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_an_index_that_does_not_rise_is_refused(index: Any, method: Any) -> None:
    x = mt.masked_tensor([1.0, None, 3.0])
    with pytest.raises(ValueError, match=r"index must be finite and rise .*argsort"):
        mt.interpolate(x, index=torch.tensor(index), method=method)


def test_the_index_is_not_read_in_compiled_code() -> None:
    compiled = torch.compile(lambda x, m, i: mt.interpolate(x, index=i, mask=m), backend="aot_eager", fullgraph=True)
    x, valid = torch.tensor([1.0, NAN, 3.0]), torch.tensor([True, False, True])
    assert compiled(x, valid, torch.tensor([0.0, 1.0, 4.0])).tolist() == [1.0, 1.5, 3.0]
    assert compiled(x, valid, torch.tensor([0.0, 0.0, 0.0])).tolist() == [1.0, 1.0, 3.0]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["mean", "var", "std", "median", "quantile"])
def test_rolling_of_integers_and_halves(name: str, dtype: torch.dtype) -> None:
    """As of the same numbers in float64, rounded once: integers to the default dtype, as mt.var does."""
    g = torch.Generator().manual_seed(0)
    whole = torch.randint(0, 2 if dtype is torch.bool else 90, (200,), generator=g).to(dtype)
    if dtype is torch.int64:
        whole += 2**40  # float32 has no digits of it
    valid = torch.rand(200, generator=g) < 0.7
    more = {"q": 0.3} if name == "quantile" else {}
    for window in (1, 2, 9, 40):
        ours = getattr(mt.rolling(mt.masked_tensor(whole, valid), window, min_periods=2 if window > 1 else 1), name)(
            **more
        )
        wide = getattr(mt.rolling(mt.masked_tensor(whole.double(), valid), window, min_periods=min(window, 2)), name)
        wanted = wide(**more)
        kept = dtype if dtype.is_floating_point else torch.get_default_dtype()
        assert ours.dtype is kept
        assert ours.get_mask().equal(wanted.get_mask())
        torch.testing.assert_close(ours.filled(0), wanted.filled(0).to(kept), rtol=torch.finfo(kept).eps, atol=1e-6)


def test_count_takes_no_notice_of_min_periods() -> None:
    x = mt.masked_tensor([1.0, None, 3.0])
    for least in (None, 0, 1, 2):
        assert mt.rolling(x, 2, min_periods=least).count().tolist() == [1, 1, 1]


def test_rolling_of_a_plain_tensor_of_integers() -> None:
    assert mt.rolling(torch.tensor([1, 2, 4]), 2, fill_value=-1).mean().tolist() == [-1, 1.5, 3]
