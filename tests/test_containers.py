"""Containers of other libraries, both ways, with the real library: dtypes and nulls are exact."""

import gc
import sys
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import masked_tensor as mt
from masked_tensor import settings as numbers
from masked_tensor.api.containers import accepted_inputs, kinds, lists
from masked_tensor.api.containers.arrow import library
from masked_tensor.engine.tensor import pair_of

NAN = float("nan")
BIG = 2**53 + 1  # float64 has no such number
ARROW = {
    torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
    torch.uint8: "uint8", torch.uint16: "uint16", torch.uint32: "uint32", torch.uint64: "uint64",
    torch.float16: "float16", torch.float32: "float32", torch.float64: "float64", torch.bool: "bool_",
}  # fmt: skip


def arrow(values: list[Any], dtype: torch.dtype, library: Any) -> Any:
    return library.array(values, getattr(library, ARROW[dtype])())


@pytest.mark.parametrize("dtype", ARROW, ids=str)
def test_arrow_arrays_of_every_dtype_come_and_go(dtype: torch.dtype) -> None:
    pa = pytest.importorskip("pyarrow")
    values = [1, None, 0, 1, None, 1, 1, 0, None, 1, 1]
    if dtype is torch.bool:
        values = [None if v is None else bool(v) for v in values]
    column = arrow([np.float16(v) if dtype is torch.float16 and v is not None else v for v in values], dtype, pa)
    for part, wanted in ((column, values), (column[3:], values[3:]), (column[:0], []), (column[2:4], values[2:4])):
        x = mt.masked_tensor(part)
        assert x.dtype is dtype
        assert x.tolist() == wanted
        assert pa.array(x).equals(part)
        assert pa.array(x).type == column.type
    chunked = pa.chunked_array([column, column[3:5], column[:0]])
    assert mt.masked_tensor(chunked).tolist() == values + values[3:5]
    assert mt.masked_tensor(chunked).dtype is dtype
    empty = pa.chunked_array([], type=column.type)
    assert (mt.masked_tensor(empty).shape, mt.masked_tensor(empty).dtype) == ((0,), dtype)


def test_arrow_without_nulls_takes_one_byte_of_mask() -> None:
    pa = pytest.importorskip("pyarrow")
    assert pair_of(mt.masked_tensor(pa.array([1.0, 2.0]))).mask.untyped_storage().nbytes() == 1
    assert mt.masked_tensor(pa.array([1.0, NAN])).tolist()[1] != 0  # NaN is a value
    assert mt.masked_tensor(pa.array([1.0, NAN])).count() == 2


def test_arrow_lists_tables_and_dictionaries() -> None:
    pa = pytest.importorskip("pyarrow")
    lists = [[1, 2], None, [], [3, None, BIG]]
    padded = [[1, 2, None], [None] * 3, [None] * 3, [3, None, BIG]]
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64())):
        column = pa.array(lists, kind)
        assert mt.masked_tensor(column).tolist() == padded
        assert mt.masked_tensor(column[2:]).tolist() == padded[2:]
        assert mt.masked_tensor(pa.chunked_array([column[:2], column[2:]])).tolist() == padded
    fixed = pa.array([[1, 2], None, [None, 4]], pa.list_(pa.int16(), 2))
    assert mt.masked_tensor(fixed).tolist() == [[1, 2], [None, None], [None, 4]]
    assert mt.masked_tensor(fixed[1:]).dtype is torch.int16
    table = pa.table({"a": [1, None], "b": [None, BIG]})
    for held in (table, table.to_batches()[0], table.to_batches()[0].to_struct_array()):
        assert mt.masked_tensor(held).tolist() == [[1, None], [None, BIG]]
    assert mt.masked_tensor(table.slice(1)).tolist() == [[None, BIG]]
    assert mt.masked_tensor(table.slice(2)).shape == (0, 2)
    assert mt.masked_tensor(table["b"]).tolist() == [None, BIG]
    assert mt.masked_tensor(pa.array([7, 8, None, 7]).dictionary_encode()).tolist() == [7, 8, None, 7]
    assert mt.masked_tensor(pa.array([None, None]).dictionary_encode()).tolist() == [None, None]
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 5, None], pa.int8()), pa.array([1.5, 2.5]), safe=False)
    with pytest.raises(ValueError, match="a code names no word of its dictionary, which has 2"):
        mt.masked_tensor(wrong)
    assert mt.masked_tensor(pa.nulls(2), dtype=torch.int8).tolist() == [None, None]


def test_arrow_exports_every_shape_and_owns_what_it_hands_out() -> None:
    pa = pytest.importorskip("pyarrow")
    x = mt.masked_tensor([[[1.0, None]], [[3.0, 4.0]], [[None, None]]])
    assert pa.array(x).to_pylist() == [[[1.0, None]], [[3.0, 4.0]], [[None, None]]]
    assert mt.masked_tensor(pa.array(x)).tolist() == x.tolist()
    assert pa.array(mt.masked_tensor(torch.ones(0, 2))).to_pylist() == []
    sparse = mt.as_masked_tensor(torch.tensor([0.0, 2.0]).to_sparse())
    assert pa.array(sparse).to_pylist() == [None, 2.0]
    column = pa.array(x[:, 0, 0].requires_grad_())
    x[0] = 9.0
    del x
    assert column.to_pylist() == [1.0, 3.0, None]
    hidden = mt.as_masked_tensor(torch.tensor([1.0, NAN]), torch.tensor([True, False]))
    assert np.frombuffer(pa.array(hidden).buffers()[1], np.float32).tolist() == [1.0, 0.0]


@pytest.fixture(params=["nanoarrow", "pyarrow"])
def speaker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """pyarrow, whose columns are read and written by one library after the other."""
    found = pytest.importorskip(request.param)
    monkeypatch.setattr(library, "library", lambda: found)
    return pytest.importorskip("pyarrow")


def test_memory_lives_as_long_as_a_column_of_it(speaker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    handed, memory = list[Any](), library._memory

    def note(x: torch.Tensor) -> Any:
        found = memory(x)
        handed.append(ref(found))
        return found

    monkeypatch.setattr(library, "_memory", note)
    table = mt.to_arrow(torch.ones(2))
    for take in ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_c_schema__"):
        getattr(table, take)()  # nobody takes what is inside
    gc.collect()
    assert [made() for made in handed] == [None, None]
    column = speaker.table(table)["0"]
    del table
    gc.collect()
    assert column.to_pylist() == [1.0, 1.0]
    del column
    gc.collect()
    assert [made() for made in handed] == [None, None, None]


@pytest.mark.parametrize("kind", ["array", "stream"])
def test_an_arrow_capsule_is_read_once(kind: str, speaker: Any) -> None:
    class Again:
        """Hands out the same capsules, however often it is asked."""

    held = speaker.array([1, None]) if kind == "array" else speaker.chunked_array([[1, None]])
    capsules = getattr(held, f"__arrow_c_{kind}__")()
    setattr(Again, f"__arrow_c_{kind}__", lambda self, requested_schema=None: capsules)
    assert mt.masked_tensor(Again()).tolist() == [1, None]
    if library.library().__name__ == "nanoarrow" and kind == "array":  # which looks at it, and leaves it there
        assert mt.masked_tensor(Again()).tolist() == [1, None]
    else:
        with pytest.raises(RuntimeError, match="the arrow column cannot be read: "):
            mt.masked_tensor(Again())


def test_each_arrow_library_reads_and_writes_the_same(speaker: Any) -> None:
    """Slices, pieces, nothing at all, records, lists of lists, words, texts beside numbers, and back."""
    numbers = speaker.array([1.5, None, 3.0, -1.0])
    records = speaker.array([{"a": 1, "b": 2.5}, None, {"a": None, "b": 1.0}])
    lists = speaker.array([[[1], [2, None]], None, [[3]]])
    cases = [
        (numbers, [1.5, None, 3.0, -1.0]),
        (numbers.slice(1, 2), [None, 3.0]),
        (speaker.chunked_array([numbers[:1], numbers[2:]]), [1.5, 3.0, -1.0]),
        (speaker.chunked_array([], speaker.float32()), []),
        (speaker.array([None, None]), [None, None]),
        (speaker.array([True, None, False] * 9).slice(7, 3), [None, False, True]),
        (records, [[1.0, 2.5], [None, None], [None, 1.0]]),
        (records.slice(1), [[None, None], [None, 1.0]]),
        (lists.slice(1), [[[None]], [[3]]]),
        (
            speaker.array([[1, 2], None, [3, None]], speaker.list_(speaker.int8(), 2)).slice(1),
            [[None, None], [3, None]],
        ),
        (speaker.array([7, None, 5, 7]).dictionary_encode().slice(1), [None, 5, 7]),
        (speaker.table({"a": [1, None], "b": [True, False]}).slice(1), [[None, 0]]),
    ]
    for column, expected in cases:
        assert mt.masked_tensor(column).tolist() == expected
    table = speaker.table({"name": ["x", "a text that is long"], "n": [1, None], "l": [[1.0], None]})
    rows = mt.extend.data.read_rows(table)
    assert [row["name"] for row in rows] == ["x", "a text that is long"]
    assert [row["n"] for row in rows] == [1, None]
    assert rows[0]["l"].tolist() == [1.0]
    for x in (mt.masked_tensor([[1.0, None], [3.0, 4.0]]), mt.masked_tensor([[True, None]] * 9)):
        assert mt.masked_tensor(speaker.table(mt.to_arrow(x))).tolist() == x.tolist()
        assert speaker.array(x).to_pylist() == x.tolist()


def test_polars_without_an_arrow_library(monkeypatch: pytest.MonkeyPatch) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, None, 3], "b": [0.5, 1.5, None], "c": [True, None, False]})
    nested = pl.Series([[1.0, None], [2.0]])
    expected = mt.masked_tensor(frame).tolist(), mt.masked_tensor(nested).tolist(), mt.masked_tensor(frame["a"])
    for module in (accepted_inputs, library):
        monkeypatch.setattr(module, "library", lambda: None)
    assert (mt.masked_tensor(frame).tolist(), mt.masked_tensor(nested).tolist()) == expected[:2]
    assert mt.masked_tensor(frame["a"]).tolist() == [1, None, 3]
    assert mt.masked_tensor(frame["a"]).dtype is expected[2].dtype
    with pytest.raises(ImportError, match="pip install nanoarrow"):
        mt.to_arrow(torch.ones(2)).__arrow_c_stream__()


@pytest.mark.parametrize("dtype", ARROW, ids=str)
def test_arrow_lists_and_words_of_every_dtype(dtype: torch.dtype) -> None:
    pa = pytest.importorskip("pyarrow")
    values = [np.float16(1) if dtype is torch.float16 else True if dtype is torch.bool else 1, None]
    column = pa.array([values, [], values[:1]], pa.list_(getattr(pa, ARROW[dtype])()))
    expected = [[1, None], [None, None], [1, None]]
    assert mt.masked_tensor(column).tolist() == expected
    assert mt.masked_tensor(pa.chunked_array([column[:1], column[1:], column[2:]])).tolist() == [*expected, [1, None]]
    if dtype is not torch.float16:  # pyarrow does not encode it
        words = column.values.dictionary_encode()
        assert mt.masked_tensor(words).tolist() == [1, None, 1]
        assert mt.masked_tensor(words).dtype is dtype


KINDS = ("int8", "uint16", "int32", "int64", "float32", "float64", "bool_")


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("chunk", [16, 1 << 18])
def test_arrow_tables_of_any_pieces_and_slices(seed: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``to_pylist`` has them, with NaN and ones where the nulls are: pieces, offsets, records that are null."""
    pa, rng = pytest.importorskip("pyarrow"), np.random.default_rng(seed)
    monkeypatch.setattr("masked_tensor.settings.CHUNK", chunk)
    kinds = [str(rng.choice(KINDS))] * 3 if rng.random() < 0.5 else ["float32", "float64", "float32"]
    pieces = []
    for length in rng.choice([0, 1, 8, 23, 64, 100], rng.integers(1, 4)):
        start, stop = sorted(rng.integers(0, length + 1, 2))
        columns = []
        for kind in kinds:
            some = rng.random(length) < rng.choice([0, 0.3, 1])
            values = np.where(some & kind.startswith("float"), np.nan, rng.integers(0, 2, length)).astype(kind)
            columns.append(pa.array(values, mask=some if some.any() else None))
        absent = pa.array(rng.random(length) < 0.3)
        record = pa.StructArray.from_arrays(columns, list("abc"), mask=absent if rng.random() < 0.5 else None)
        pieces.append(record.slice(start, stop - start))
    whole = pa.chunked_array(pieces)
    wanted = [list(row.values()) if row else [None] * 3 for row in whole.to_pylist()]
    for held, rows in ((whole, wanted), (pieces[0], wanted[: len(pieces[0])])):
        x = mt.masked_tensor(held)
        assert x.tolist() == rows
        assert x.filled(0).isfinite().all()
        assert not x.get_data().double().masked_select(~x.get_mask()).any()  # what the nulls held is gone
    for i, name in enumerate("abc"):
        column = pa.chunked_array([piece.field(name) for piece in pieces])
        assert mt.masked_tensor(column).tolist() == column.to_pylist()
        assert mt.masked_tensor(column, dtype=torch.float64).tolist() == column.to_pylist(), i
    assert x.dtype is getattr(torch, "float64" if len(set(kinds)) > 1 else kinds[0].rstrip("_"))


def test_an_arrow_table_lies_as_it_did_and_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    monkeypatch.delattr("masked_tensor.api.make.create._zeroed_copy")
    table = pa.table({name: pa.array(np.arange(1000.0), mask=np.arange(1000) % 3 == 0) for name in "abcd"})
    x = mt.masked_tensor(table)
    assert x.get_data().stride() == pair_of(x).mask.stride() == (1, 1000)
    assert mt.masked_tensor(table["a"].combine_chunks()).count() == 666


CELLS: dict[str, Any] = {
    "int64": st.none() | st.integers(-(2**63), 2**63 - 1),
    "uint8": st.none() | st.integers(0, 255),
    "float32": st.none() | st.floats(width=32, allow_nan=False),
    "float64": st.none() | st.floats(allow_nan=False),
    "bool": st.none() | st.booleans(),
}


@given(st.sampled_from(sorted(CELLS)).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(
    st.tuples(CELLS[kind], CELLS[kind]), max_size=20))))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_tables_round_trip(table: tuple[str, list[tuple[Any, Any]]]) -> None:
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    kind, rows = table
    wanted = [list(row) for row in rows]
    columns = {name: [row[i] for row in rows] for i, name in enumerate("ab")}
    arrow_type = pa.bool_() if kind == "bool" else getattr(pa, kind)()
    arrow_table = pa.table({name: pa.array(values, arrow_type) for name, values in columns.items()})
    nullable = {"int64": "Int64", "uint8": "UInt8", "float32": "Float32", "float64": "Float64", "bool": "boolean"}[kind]
    frames = [
        arrow_table,
        pl.from_arrow(arrow_table),
        pd.DataFrame({name: pd.array(values, dtype=nullable) for name, values in columns.items()}),
        pd.DataFrame({name: pd.Series(values, dtype=pd.ArrowDtype(arrow_type)) for name, values in columns.items()}),
    ]
    for frame in frames:
        x = mt.masked_tensor(frame)
        assert x.tolist() == wanted
        assert x.dtype is getattr(torch, kind)
        assert [row if row is not None else [None, None] for row in pa.array(x).to_pylist()] == wanted
    first = mt.masked_tensor(frames[0])[:, 0]
    assert pl.from_arrow(pa.array(first)).to_list() == columns["a"]
    assert (
        mt.masked_tensor(pl.Series(columns["a"], dtype=pl.from_arrow(arrow_table)["a"].dtype)).tolist() == columns["a"]
    )
    series = pd.Series(pa.array(first), dtype=pd.ArrowDtype(arrow_type))
    assert mt.masked_tensor(series).tolist() == columns["a"]


def test_a_mask_of_what_is_missing_is_refused() -> None:
    """``isna()`` marks what is missing; as a mask it would hide all the rest."""
    pd = pytest.importorskip("pandas")
    for data in (
        pd.Series([1.0, NAN, 3.0]),
        pd.Series([1.0, None, 3.0], dtype="Float64"),
        pd.DataFrame({"a": [1.0, NAN]}),
    ):
        with pytest.raises(ValueError, match=r"use data\.notna\(\)"):
            mt.masked_tensor(data, data.isna())
        assert mt.masked_tensor(data, data.notna()).count() == len(data.dropna())
    array = np.array([1.0, NAN])
    for values, mask in ((array, np.isnan(array)), ([1, None], [False, True])):
        with pytest.raises(ValueError, match=r"use ~mask"):
            mt.masked_tensor(values, mask)
    assert mt.masked_tensor(np.array([1.0, NAN]), np.array([True, True])).count() == 2  # NaN is a value
    assert mt.masked_tensor(np.array([NAN, NAN]), np.array([True, True])).count() == 2
    assert mt.masked_tensor(np.array([2.0, NAN, NAN]), np.array([False, True, False])).count() == 1
    with pytest.warns(UserWarning, match="use ~mask"):
        assert mt.masked_tensor(torch.tensor([1.0, NAN]), torch.tensor([False, True])).count() == 1


def test_pandas_nan_is_a_value_unless_the_dtype_is_nullable() -> None:
    pd = pytest.importorskip("pandas")
    missing = pd.Series([1.0, NAN])
    with pytest.warns(UserWarning, match="NaN in a Series of floats is a valid value; masked_invalid"):
        assert mt.masked_tensor(missing).count() == 2
    with pytest.warns(UserWarning, match="NaN in a DataFrame of floats"):
        assert mt.masked_tensor(pd.DataFrame({"a": missing, "b": 1.0})).count() == 4
    assert mt.masked_tensor(missing, ~missing.isna()).count() == 1  # what says itself what is valid is not warned of
    assert mt.masked_invalid(pd.DataFrame({"a": [1.0, NAN]})).tolist() == [[1.0], [None]]
    assert mt.masked_tensor(pd.Series([1.0, None], dtype="Float64")).tolist() == [1.0, None]
    assert mt.masked_tensor(pd.Series([True, None], dtype="boolean")).tolist() == [True, None]
    assert mt.masked_tensor(pd.array([BIG, None])).tolist() == [BIG, None]
    assert mt.masked_tensor(pd.Index([3, 4])).tolist() == [3, 4]
    assert mt.masked_tensor(pd.Series([1, None, pd.NA], dtype=object)).tolist() == [1, None, None]
    assert mt.masked_tensor(pd.Series([2, 1, 2], dtype="category")).tolist() == [2, 1, 2]
    assert mt.masked_tensor(pd.DataFrame({"a": pd.array([1, None]), "b": np.array([3, 4], "i2")})).dtype is torch.int64
    mixed = pd.DataFrame({"a": pd.array([1, None]), "b": [0.5, 1.5]})
    assert mt.masked_tensor(mixed, dtype=torch.float64).tolist() == [[1.0, 0.5], [None, 1.5]]
    assert mt.masked_tensor(torch.ones(2), pd.Series([True, None], dtype="boolean")).tolist() == [1.0, None]


def test_a_polars_frame_goes_in_and_a_column_comes_out() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, None, 3], "b": [None, BIG, 6]})
    x = mt.masked_tensor(frame)
    assert x.tolist() == [[1, None], [None, BIG], [3, 6]]
    assert mt.masked_tensor(pl.Series([[1, 2], None, [3]])).tolist() == [[1, 2], [None, None], [3, None]]
    assert mt.masked_tensor(pl.Series([[1, 2], [3, None]], dtype=pl.Array(pl.Int8, 2))).tolist() == [[1, 2], [3, None]]
    with pytest.raises(mt.MaskedValueError, match="pyarrow"):
        pl.Series(x[:, 0])


def test_xarray() -> None:
    xr, pd = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    assert mt.masked_invalid(xr.DataArray([[1.0, NAN]])).tolist() == [[1.0, None]]
    assert mt.masked_tensor(xr.DataArray([[BIG]])).tolist() == [[BIG]]
    nullable = xr.DataArray(pd.array([BIG, None], dtype="Int64"), dims="t")
    assert mt.masked_tensor(nullable).tolist() == [BIG, None]


def test_astropy() -> None:
    masked = pytest.importorskip("astropy.utils.masked").Masked
    units = pytest.importorskip("astropy.units")
    x = mt.masked_tensor(masked(np.array([1.0, 2.0], "f4"), mask=[True, False]))
    assert (x.tolist(), x.dtype) == ([None, 2.0], torch.float32)
    length = masked(np.array([1.0, 2.0]), mask=[True, False]) * units.m
    assert mt.masked_tensor(length.to_value("km")).tolist() == [None, 0.002]
    table = pytest.importorskip("astropy.table")
    assert mt.masked_tensor(table.MaskedColumn([1, 2], mask=[True, False])).tolist() == [None, 2]


def test_numpy_of_files_and_numpy_ma_in_lists() -> None:
    assert mt.masked_tensor(np.arange(3, dtype=">f8")[::-1]).tolist() == [2.0, 1.0, 0.0]
    assert mt.masked_tensor(np.array([1, None, 3], dtype=object)).tolist() == [1, None, 3]
    assert mt.masked_tensor([1.0, np.ma.masked]).tolist() == [1.0, None]
    pieces = [np.ma.masked_equal([1, 2], 1), np.ma.masked_equal([1, 2, 3], 3)]
    assert mt.masked_tensor(pieces).tolist() == [[None, 2, None], [1, 2, None]]


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors:UserWarning")
def test_torch_masked_and_lists_that_differ_in_length() -> None:
    coo = torch.tensor([[0.0, 2.0]]).to_sparse().coalesce()
    theirs = torch.masked.masked_tensor(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
    sparse = torch.masked.masked_tensor(coo, coo.bool())
    assert mt.masked_tensor(theirs).tolist() == [1.0, None]
    assert mt.as_masked_tensor(theirs).tolist() == [1.0, None]
    assert mt.masked_tensor(sparse).tolist() == [[None, 2.0]]
    assert mt.masked_tensor([[1, 2], [3]]).tolist() == [[1, 2], [3, None]]
    assert mt.masked_tensor([[[1], [2, 3]], None, []]).tolist() == [
        [[1, None], [2, 3]],
        [[None] * 2] * 2,
        [[None] * 2] * 2,
    ]
    assert mt.masked_tensor([torch.ones(2), torch.ones(1)]).tolist() == [[1.0, 1.0], [1.0, None]]
    assert mt.masked_tensor([torch.ones(1, 2), np.zeros((2, 1))]).shape == (2, 2, 2)
    assert mt.masked_tensor([[torch.ones(1)], [torch.ones(2), torch.ones(1)]]).shape == (2, 2, 2)


@pytest.mark.parametrize("make", [
    lambda pa, pd, pl, n: pa.table({"a": n, "b": n}),
    lambda pa, pd, pl, n: pl.DataFrame({"a": n, "b": n}),
    lambda pa, pd, pl, n: pd.DataFrame({"a": n, "b": n}).convert_dtypes(),
], ids=["pyarrow", "polars", "pandas"])  # fmt: skip
def test_ten_thousand_rows_take_no_loop_over_them(make: Callable[..., Any]) -> None:
    libraries = [pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars")]
    few, many = (calls_of(mt.masked_tensor, make(*libraries, np.arange(rows))) for rows in (10, 10_000))
    assert many < few + 100


def calls_of(function: Callable[[Any], Any], argument: Any) -> int:
    """How many calls of functions, Python's and C's, it takes."""
    calls = 0

    def count(frame: Any, event: str, value: Any) -> None:
        nonlocal calls
        calls += 1

    function(argument)
    sys.setprofile(count)
    try:
        function(argument)
    finally:
        sys.setprofile(None)
    return calls


def test_matplotlib_draws_gaps() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    x = mt.masked_tensor([1.0, None, 3.0])
    (line,) = plt.plot(x)
    assert np.ma.getmaskarray(line.get_ydata(orig=True)).tolist() == [False, True, False]
    assert np.isnan(line.get_xydata()[1, 1])
    for array in (x[None].to_numpy_ma(), x[None].filled(NAN).numpy()):
        assert plt.imshow(array).get_array().mask.tolist() == [[False, True, False]]
    with pytest.raises(mt.MaskedValueError, match=r"x\.filled\(value\), such as float\('nan'\)"):
        plt.imshow(x[None])
    plt.close("all")


def test_numpy_functions_and_arrays_beside_masked_tensors() -> None:
    x = mt.masked_tensor([1.0, None, 3.0])
    other = np.array([1.0, 2.0, 3.0])
    for result, wanted in (
        (x + other, [2.0, None, 6.0]), (other - x, [0.0, None, 0.0]), (np.multiply(other, x), [1.0, None, 9.0]),
        (x**other, [1.0, None, 27.0]), (np.negative(x), [-1.0, None, -3.0]), (x == other, [True, None, True]),
        (other > x, [False, None, False]), (np.float64(2) * x, [2.0, None, 6.0]),
    ):  # fmt: skip
        assert type(result) is mt.MaskedTensor
        assert result.tolist() == wanted
    assert (x + other).dtype is torch.float64
    assert (np.float64(2) * x).dtype is torch.float32
    with pytest.raises(TypeError):
        np.add.reduce(x)
    with pytest.raises(TypeError):
        np.spacing(x)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "int64", "bool", "complex64", "Float32", "Int64", "boolean", "UInt8"]
)
def test_a_frame_of_one_dtype_is_what_its_columns_are(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read at once; values that float64 lacks are kept."""
    pandas = pytest.importorskip("pandas")
    columns = {"a": [0, 1, 1], "b": [1, 0, 1]}
    if dtype[0] in "FIbU" and dtype != "bool":
        columns["a"][1] = None
    if dtype == "Int64":
        columns["b"][0] = 2**62 + 1
    frame = pandas.DataFrame({name: pandas.array(values, dtype=dtype) for name, values in columns.items()})
    found = mt.masked_tensor(frame)
    monkeypatch.setattr(kinds, "_NUMBERS", ())
    wanted = mt.masked_tensor(frame)
    assert found.dtype == wanted.dtype
    assert found.tolist() == wanted.tolist() == [list(row) for row in zip(*columns.values(), strict=True)]
    assert found.stride() == wanted.stride() == (2, 1)
    frame.iloc[0, 0] = frame.iloc[0, 1]  # the memory is the tensor's own
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "data",
    [
        [1, None], [[1, None], [2.5, 3]], [(True, None)], [None, None], [[[1], [None]], [[2], [3]]], [1j, None],
        [2**40, None], [1.5, None, True], [[1, None], [3]], [[None], 1], [None], [[], [None]], [1, [None]],
    ],
)  # fmt: skip
def test_numbers_and_none_are_read_as_other_lists_are(data: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome() -> Any:
        try:
            x = mt.masked_tensor(data)
        except (TypeError, ValueError) as error:
            return str(error)
        return x.tolist(), x.dtype, x.shape, mt.masked_tensor(data, dtype=torch.complex128).tolist()

    found = outcome()
    monkeypatch.setattr(lists, "_flat_numbers", lambda data: None)
    assert found == outcome()


@pytest.mark.parametrize(
    "make",
    [
        lambda part: mt.from_sequences([part, part]),
        lambda part: mt.from_sequences([torch.ones(3, 1), part], packed=True),
        lambda part: mt.pad_sequence([part]),
        lambda part: mt.from_lengths(part, [1, 1]),
        lambda part: mt.collate([{"x": part}]),
        lambda part: mt.cat([part, part]),
    ],
)
def test_nan_of_a_frame_is_told_wherever_frames_are_sequences(make: Callable[[Any], mt.MaskedTensor]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, np.nan]})
    with pytest.warns(UserWarning, match="NaN in a DataFrame of floats is a valid value; masked_invalid"):
        make(frame)
    for silent in (frame.fillna(0), frame.convert_dtypes(), mt.masked_invalid(frame), torch.tensor([[1.0], [np.nan]])):
        make(silent)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8"])
@pytest.mark.parametrize("rows", [0, 1, 5, 100_000])
def test_frames_of_floats_are_masked_where_they_are_not_finite(dtype: str, rows: int) -> None:
    pandas = pytest.importorskip("pandas")
    values = np.random.default_rng(0).normal(size=(rows, 3)).astype(dtype)
    values[::2, 1] = np.nan
    values[:1, 0], values[-1:, 2] = np.inf, -np.inf
    frame = pandas.DataFrame(values.copy())
    x = mt.masked_invalid(frame)
    wanted = torch.from_numpy(values.astype(dtype.lstrip(">")))
    assert x.is_contiguous()
    assert x.dtype is wanted.dtype
    assert torch.equal(x.get_mask(), wanted.isfinite())
    assert torch.equal(x.filled(0), wanted.nan_to_num(0, 0, 0))
    x[:] = 7.0  # memory of its own
    assert np.array_equal(frame.to_numpy(), values, equal_nan=True)


@pytest.mark.parametrize("most", [numbers.FRAME, 0])
def test_a_small_frame_is_read_as_one_array_where_it_is_one(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put together of several dtypes, or holds no floats, is read column by column, as a large one is."""
    pandas, np = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    monkeypatch.setattr(numbers, "FRAME", most)
    values = np.array([[1.0, np.nan, 3.0], [np.inf, 5.0, -0.0]])
    whole = pandas.DataFrame(values.copy())
    apart = pandas.DataFrame(values[:, :1].copy())
    apart[1], apart[2] = values[:, 1].copy(), values[:, 2].copy()
    mixed = whole.assign(n=[2**53 + 1, 0])
    expected = torch.tensor(values)
    for frame in (
        whole,
        apart,
        whole.astype("float32"),
        whole.astype("float16"),
        whole.T.copy().T,
        whole.astype(">f8"),
    ):
        found = mt.masked_invalid(frame)
        torch.testing.assert_close(found.get_mask(), expected.isfinite())
        torch.testing.assert_close(found.get_data().double(), expected.nan_to_num(0.0, 0.0, 0.0))
        assert found.is_contiguous()
    found.fill_(7.0)
    assert np.array_equal(frame.to_numpy(), values, equal_nan=True)  # nothing is shared with the frame
    for error in (mixed, mixed.astype({"n": "Int64"})):
        with pytest.raises(ValueError, match="is not a number of float64"):
            mt.masked_invalid(error)
    assert mt.masked_invalid(whole.astype("Float64")).tolist() == [[1, None, 3], [None, 5, 0]]
    assert mt.masked_invalid(whole.iloc[:0]).shape == (0, 3)
    assert mt.masked_invalid(pandas.DataFrame({"a": [1, 2]})).dtype is torch.int64
