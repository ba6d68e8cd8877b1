"""The transformer of scikit-learn: against its own scaler on whole data, in a pipeline, cloned, pickled, by names."""

import pickle

import numpy as np
import pytest
import torch

import masked_tensor as mt

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402  # after it is known to be there
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.metrics import mean_squared_error  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from masked_tensor.sklearn import MaskedStandardScaler  # noqa: E402

from .helpers.hostile import HOSTILE, fault  # noqa: E402

RNG = np.random.default_rng(0)
WHOLE = RNG.normal(3, 2, (50, 4))
MISSING = np.where(RNG.random((50, 4)) < 0.3, np.nan, WHOLE)


def test_whole_data_is_scaled_as_by_scikit_learn() -> None:
    ours, theirs = MaskedStandardScaler(dtype=torch.float64).fit(WHOLE), StandardScaler().fit(WHOLE)
    np.testing.assert_allclose(ours.transform(WHOLE).numpy(), theirs.transform(WHOLE), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.mean_, theirs.mean_)
    np.testing.assert_allclose(ours.scale_, theirs.scale_)


def test_statistics_are_those_of_numpy_over_what_is_there() -> None:
    scaler = MaskedStandardScaler(dtype=torch.float64).fit(MISSING)
    np.testing.assert_allclose(scaler.mean_, np.nanmean(MISSING, 0))
    np.testing.assert_allclose(scaler.scale_, np.nanstd(MISSING, 0))
    z = scaler.transform(MISSING)
    assert np.array_equal(z.mask.numpy(), ~np.isnan(MISSING))
    assert z.isfinite().filled(True).all()
    back = scaler.inverse_transform(z).filled(float("nan")).numpy()
    np.testing.assert_allclose(back, MISSING)


@pytest.mark.parametrize("kind", ["array", "tensor", "masked"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_was_scaled_comes_back_as_what_it_is(kind: str, dtype: str) -> None:
    scaler = MaskedStandardScaler(fill=0.0 if kind == "array" else None, dtype=getattr(torch, dtype)).fit(WHOLE)
    z = scaler.transform(WHOLE)
    z = z.filled() if kind == "tensor" else z
    back = scaler.inverse_transform(z)
    assert type(back) is type(z)
    assert str(back.dtype).endswith(dtype)
    np.testing.assert_allclose(back if kind == "array" else mt.filled(back, 0).numpy(), WHOLE, rtol=1e-5)


def test_batches_give_what_all_rows_give() -> None:
    parts = MaskedStandardScaler()
    for rows in np.array_split(MISSING, 7):
        parts.partial_fit(rows)
    np.testing.assert_allclose(parts.mean_, MaskedStandardScaler().fit(MISSING).mean_)
    np.testing.assert_allclose(parts.fit(WHOLE).mean_, WHOLE.mean(0))  # fit begins anew


def test_columns_that_are_constant_or_empty_stay_finite() -> None:
    scaler = MaskedStandardScaler(fill=0.0).fit([[5.0, None], [5.0, None]])
    assert scaler.transform([[7.0, 2.0]]).tolist() == [[2.0, 2.0]]
    assert scaler.scale_.tolist() == [1.0, 1.0]


def test_in_a_pipeline_with_an_estimator() -> None:
    target = WHOLE @ [1.0, -2.0, 0.5, 0.0]
    model = make_pipeline(MaskedStandardScaler(fill=0.0, indicator=True), LinearRegression())
    assert cross_val_score(model, MISSING, target).mean() > 0.3
    assert model.fit(MISSING, target).predict(MISSING).shape == (50,)
    assert clone(model).get_params()["maskedstandardscaler__indicator"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(MISSING), model.predict(MISSING))


def test_a_frame_goes_by_names() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(MISSING, columns=list("abcd"))
    scaler = MaskedStandardScaler(indicator=True).fit(frame)
    z = scaler.transform(frame[["d", "b", "a", "c"]])
    assert mt.is_masked_tensor(z)
    assert z.tolist() == scaler.transform(frame).tolist()
    assert scaler.get_feature_names_out().tolist() == [*"abcd", *(f"missing_{n}" for n in "abcd")]
    with pytest.raises(ValueError, match="the columns are"):
        scaler.transform(frame.rename(columns={"a": "z"}))


def test_mistakes() -> None:
    with pytest.raises(NotFittedError):
        MaskedStandardScaler().transform(WHOLE)
    with pytest.raises(ValueError, match="rows and columns"):
        MaskedStandardScaler().fit([1.0, 2.0])
    with pytest.raises(ValueError, match="3 columns, and had 4"):
        MaskedStandardScaler().fit(WHOLE).transform(WHOLE[:, :3])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["fit", "transform", "inverse_transform"])
def test_a_table_that_is_none(name: str) -> None:
    """What no table can be is refused by a sentence, and the scaler stays as it was."""
    found = []
    for what, make in HOSTILE.items():
        scaler = MaskedStandardScaler().fit(MISSING)
        table = {"X": make()}
        reason = fault(lambda s=scaler, t=table: getattr(s, name)(**t), table, lambda _: False)
        if reason is not None:
            found.append(f"{what}: {reason}")
    assert not found


def test_functions_of_scikit_learn_never_count_what_lies_under_the_mask() -> None:
    """It ignores the mask of numpy.ma: no message that its users meet offers that, and what they make of it is NaN."""
    for under in (0.0, 7.0, 1e30, float("nan")):
        x = mt.as_masked_tensor(torch.tensor([1.0, under, 3.0]), torch.tensor([True, False, True]))
        y = torch.tensor([1.0, 2.0, 5.0])
        for call in (lambda: mean_squared_error(x, y), lambda: StandardScaler().fit(x[:, None])):  # noqa: B023  # at once
            with pytest.raises(mt.MaskedValueError, match=r"select_valid.*masked_tensor\.sklearn") as raised:
                call()
            assert "numpy_ma" not in str(raised.value)
        assert mean_squared_error(*mt.select_valid(x, y)) == 2
        with pytest.raises(ValueError, match="NaN"):
            mean_squared_error(x.to_numpy_ma(), y)
        assert StandardScaler().fit(x[:, None].filled(float("nan")).numpy()).mean_ == 2
        assert StandardScaler().fit(x[:, None].to_numpy_ma()).mean_ == 2
