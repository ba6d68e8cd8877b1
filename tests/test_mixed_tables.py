"""Tables whose columns have several dtypes: one tensor of numpy's common dtype, or an error that names the column."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import masked_tensor as mt
from masked_tensor.api.containers import tables

NAN = float("nan")
NAMES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip
BIG = 2**53 + 1  # float64 has no such number


@pytest.mark.parametrize("first", NAMES)
def test_the_common_dtype_is_that_of_numpy(first: str) -> None:
    for others in itertools.product(NAMES, NAMES):
        names = (first, *others)
        found = tables.common_dtype([getattr(torch, name) for name in names])
        assert found is getattr(torch, str(np.result_type(*names))), names


def of_pandas(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


def of_nullable(columns: dict[str, list[Any]], **how: Any) -> Any:
    """Floats stay numpy's, where NaN is a value."""
    frame = of_pandas(columns)
    for name in frame:
        if frame[name].dtype.kind != "f":
            frame[name] = frame[name].convert_dtypes(**how)
    return frame


def of_pandas_arrow(columns: dict[str, list[Any]]) -> Any:
    pytest.importorskip("pyarrow")
    return of_nullable(columns, dtype_backend="pyarrow")


def of_polars(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def of_arrow(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


def of_records(columns: dict[str, list[Any]]) -> Any:
    return of_arrow(columns).combine_chunks().to_struct_array()


def of_arrays(columns: dict[str, list[Any]]) -> Any:
    return {name: np.array(column) for name, column in columns.items()}


MAKERS: list[Callable[[dict[str, list[Any]]], Any]] = [
    of_pandas, of_nullable, of_pandas_arrow, of_polars, of_arrow, of_records, of_arrays,
]  # fmt: skip
made_by = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


@made_by
def test_an_ordinary_table_is_taken_by_every_door(make: Callable[..., Any]) -> None:
    frame = make({"age": [41.0, NAN, -999.0], "bought": [1, 0, 7], "member": [True, False, True]})
    rows = [[41.0, 1.0, 1.0], [None, 0.0, 0.0], [-999.0, 7.0, 1.0]]
    without = [*rows[:2], [None, 7.0, 1.0]]
    for dtype, wanted in ((None, torch.float64), (torch.float32, torch.float32), (torch.float64, torch.float64)):
        x = mt.masked_invalid(frame, dtype=dtype)
        assert (x.tolist(), x.dtype) == (rows, wanted)
        y = mt.masked_equal(x, -999, dtype=dtype)
        assert (y.tolist(), y.dtype) == (without, wanted)
        z = mt.masked_tensor(frame, x.mask, dtype=dtype)
        assert (z.tolist(), z.dtype) == (rows, wanted)
        w = mt.masked_where(~x.mask, frame, dtype=dtype)
        assert (w.tolist(), w.dtype) == (rows, wanted)
    integers = mt.masked_invalid(frame, dtype=torch.int16)
    assert (integers.tolist(), integers.dtype) == (rows, torch.int16)
    small = make({"a": [1, -999], "b": [True, False]})
    assert mt.masked_equal(small, -999, dtype=torch.uint8).tolist() == [[1, 1], [None, 0]]  # -999 is no byte
    assert mt.masked_tensor(small).dtype is torch.int64


@made_by
def test_a_value_that_the_dtype_does_not_hold_is_infinite_in_it(make: Callable[..., Any]) -> None:
    assert mt.masked_invalid(make({"a": [1e300, 2.0], "b": [1, 2]}), dtype=torch.float32).tolist() == [
        [None, 1.0], [2.0, 2.0],
    ]  # fmt: skip


@made_by
def test_an_integer_that_is_not_exact_is_named_with_its_column(make: Callable[..., Any]) -> None:
    for wrong in (BIG, -BIG, 2**63 - 1, -(2**63) + 1):
        table = make({"x": [0.5, NAN], "id": [2**53, wrong]})
        for door in (mt.masked_tensor, mt.masked_invalid, lambda t: mt.masked_equal(t, 0)):
            with pytest.raises(
                ValueError, match=f"column 'id' of the table holds {wrong}, which is not a number of float"
            ):
                door(table)
        assert mt.masked_invalid(table, dtype=torch.float64).tolist() == [[0.5, 2.0**53], [None, float(wrong)]]
    exact = make({"x": [0.5, 1.5, 2.5, 3.5], "id": [2**62, -(2**63), 2**53, -(2**54)]})
    assert mt.masked_tensor(exact)[:, 1].tolist() == [2.0**62, -(2.0**63), 2.0**53, -(2.0**54)]


def test_unsigned_integers_and_what_lies_under_a_mask() -> None:
    for number, exact in ((2**64 - 1, False), (2**64 - 2048, True), (2**63, True), (2**63 + 1, False)):
        table = {"n": np.array([number], "u8"), "i": np.array([-1])}
        if exact:
            assert mt.masked_tensor(table).tolist() == [[float(number), -1.0]]
        else:
            with pytest.raises(ValueError, match=f"column 'n' of the table holds {number}"):
                mt.masked_tensor(table)
    hidden = {"n": np.ma.array([BIG, 4], mask=[True, False]), "x": [0.5, 1.5]}
    assert mt.masked_tensor(hidden).tolist() == [[None, 0.5], [4.0, 1.5]]


@made_by
def test_columns_without_numbers_are_all_named(make: Callable[..., Any]) -> None:
    table = make({"name": ["Ann", "Bo"], "age": [41.0, 2.0], "town": ["Ulm", "Kiel"]})
    for door in (mt.masked_tensor, mt.masked_invalid, lambda t: mt.masked_equal(t, 0, dtype=torch.float32)):
        with pytest.raises(
            TypeError, match=r"2 columns of the table hold no numbers: \['name', 'town'\]; column 'name'"
        ):
            door(table)
    dates = make({"age": [41.0, 2.0], "born": np.array(["2026-01-01", "2026-01-02"], "datetime64[us]").tolist()})
    with pytest.raises(TypeError, match="column 'born' of the table"):
        mt.masked_invalid(dates)


def test_a_dict_of_columns() -> None:
    nested = {"a": [1, None], "b": torch.tensor([0.5, 1.5]), "c": mt.masked_tensor([None, 2.0])}
    assert mt.masked_tensor(nested).tolist() == [[1, 0.5, None], [None, 1.5, 2.0]]
    with pytest.raises(TypeError, match="a dict must hold columns of one length, but 'a' holds float"):
        mt.masked_tensor({"a": 1.0})
    with pytest.raises(TypeError, match="'a' holds str"):
        mt.masked_tensor({"a": "text"})
    with pytest.raises(ValueError, match=r"columns of a table must have the same length, got \{'a': 1, 'b': 2\}"):
        mt.masked_tensor({"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match="without columns"):
        mt.masked_tensor({})
    seen = mt.RunningStatistics(columns=["b", "a"]).update({"a": [1.0, None], "s": ["x", "y"], "b": [3, 4]})
    assert seen.mean.tolist() == [3.5, 1.0]


def test_nullable_columns_of_several_dtypes() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({
        "i": pd.array([1, None], "Int32"), "f": pd.array([None, 2.5], "Float32"),
        "b": pd.array([True, None], "boolean"),
        "u": np.array([3, 4], "u1"), "o": pd.Series([None, 5], dtype=object), "c": pd.Series([7, 7], dtype="category"),
    })  # fmt: skip
    x = mt.masked_tensor(frame)
    assert x.dtype is torch.float64
    assert x.tolist() == [[1, None, 1, 3, None, 7], [None, 2.5, None, 4, 5, 7]]


def test_a_tensor_keeps_its_graph_and_packing_under_another_dtype() -> None:
    x = torch.tensor([1.0, NAN, -999.0], dtype=torch.float64, requires_grad=True)
    y = mt.masked_equal(mt.masked_invalid(x, dtype=torch.float32), -999, dtype=torch.float64)
    assert (y.tolist(), y.dtype) == ([1.0, None, None], torch.float64)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 0.0, 0.0]
    packed = mt.from_sequences([torch.ones(2), torch.zeros(3)], packed=True)
    assert mt.masked_equal(packed, 0, dtype=torch.float64).is_packed
