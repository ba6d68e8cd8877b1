"""Names that pandas and numpy.ma have and this package does not: the error names a line, and the line runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse as scipy_sparse

import masked_tensor
import masked_tensor as mt
from masked_tensor.api.python import other_names


def test_the_table_names_nothing_that_exists() -> None:
    for name in other_names.LINES:
        assert name not in mt.__dir__() or name not in dir(torch.Tensor), name


@pytest.mark.parametrize("name", other_names.LINES)
def test_the_line_of_a_name_runs(name: str, tmp_path: Path) -> None:
    x = mt.masked_tensor([[1.0, None], [None, 4.0], [5.0, 6.0]])
    filename = tmp_path / "saved.safetensors"
    if "filename" in other_names.LINES[name]:
        pytest.importorskip("safetensors")
        mt.save_file({"x": x}, filename)
    polars = pytest.importorskip("polars") if "polars" in name else None
    room = {
        "masked_tensor": masked_tensor,
        "torch": torch,
        "x": x,
        "y": torch.zeros(3, 2),
        "groups": torch.tensor([0, 0, 1]),
        "data": torch.ones(2, 3),
        "mask": torch.ones(2, 3) > 0,
        "lengths": [3, 1],
        "pandas": pd,
        "polars": polars,
        "frame": pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2.0, 3.0]}),
        "array": np.ones(3),
        "matrix": scipy_sparse.eye_array(3),
        "filename": filename,
        "names": ["a", "b"],
        "function": torch.sum,
        "decay": (0.5 ** (torch.arange(3.0)[:, None] - torch.arange(3))).tril(),
    }
    eval(other_names.LINES[name].partition(", since")[0], room)


@pytest.mark.parametrize("name", other_names.LINES)
def test_an_error_names_the_line(name: str) -> None:
    x = mt.masked_tensor([1.0, None])
    told = 0
    for owner in (x, mt):
        if name in mt.__all__ if owner is mt else hasattr(torch.Tensor, name):
            continue
        assert not hasattr(owner, name)
        with pytest.raises(AttributeError) as raised:
            getattr(owner, name)
        assert str(raised.value).endswith(f"has no attribute {name!r}; write {other_names.LINES[name]}")
        told += 1
    assert told


def test_a_table_goes_back_to_pandas_with_its_columns() -> None:
    frame = pd.DataFrame({"a": [1.0, None], "b": [3.0, 4.0]})
    back = eval(other_names.LINES["to_pandas"], {"pandas": pd, "names": frame.columns, "x": mt.masked_invalid(frame)})
    pd.testing.assert_frame_equal(back, frame)


def test_another_name_has_pythons_own_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'masked_tensor' has no attribute 'zzz'$"):
        _ = mt.zzz
    with pytest.raises(AttributeError, match=r"^'MaskedTensor' object has no attribute 'zzz'$"):
        _ = mt.masked_tensor(1.0).zzz


def test_compiled_code_asks_for_a_name_that_is_not_there() -> None:
    compiled = torch.compile(lambda x: x + hasattr(x, "isna"), backend="eager")
    assert compiled(mt.masked_tensor([1.0, None])).tolist() == [1.0, None]


def test_the_line_of_groupby_is_a_statistic_of_every_group() -> None:
    """However many groups there are; the order is that of the keys."""
    data = torch.tensor([[1.0, 1e30], [3.0, 4.0], [float("nan"), 8.0], [5.0, float("inf")], [7.0, 2.0]])
    valid = torch.tensor([[True, False], [True, True], [False, True], [True, False], [True, True]])
    x = mt.as_masked_tensor(data, valid)
    for keys in ([0, 0, 0, 0, 0], [3, 0, 3, 1, 0], [4, 3, 2, 1, 0]):
        frame = pd.DataFrame(x.filled(float("nan")).numpy().astype("f8")).groupby(np.array(keys))
        for name in ("mean", "std", "count"):
            line = other_names.LINES["groupby"].removesuffix("mean") + name
            found = eval(line, {"masked_tensor": masked_tensor, "x": x, "groups": torch.tensor(keys)})
            wanted = getattr(frame, name)().to_numpy()
            np.testing.assert_allclose(mt.filled(found, float("nan")).numpy(), wanted, rtol=1e-12)


def test_the_lines_of_frames_are_what_pandas_gives() -> None:
    x = mt.masked_tensor([[3.0, None], [None, 4.0], [1.0, 6.0]])
    room = {"torch": torch, "pandas": pd, "x": x, "names": ["a", "b"], "function": torch.sum}
    frame = eval(other_names.LINES["to_pandas"], room)
    assert frame.columns.tolist() == ["a", "b"]
    assert mt.masked_invalid(frame).tolist() == x.tolist()
    assert mt.masked_invalid(frame.sort_values("a")).tolist() == eval(other_names.LINES["sort_values"], room).tolist()
    assert eval(other_names.LINES["agg"], room).tolist() == [frame.mean().tolist(), pytest.approx(frame.std().tolist())]
    assert eval(other_names.LINES["apply"], room).tolist() == frame.apply(np.sum).tolist()
