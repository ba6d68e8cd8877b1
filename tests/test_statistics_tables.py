"""Statistics of tables: columns by name, states as rows of Arrow, quantiles without edges, moments by group."""

import copy
import io
import itertools
import pickle
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

import masked_tensor as mt
from masked_tensor.stats import travel

from .helpers.ranks import gathered

GARBAGE = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30], dtype=torch.float64)
QUANTILES = (0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.999, 1.0)


def columns(seed: int, rows: int, features: int = 3) -> tuple[Tensor, Tensor]:
    """Columns of different kinds, with garbage under the mask; nobody has the last."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, features, generator=generator, dtype=torch.float64)
    x[:, 0] = x[:, 0].sort().values * 1e6
    x[:, 1] = (x[:, 1] * 2).round()
    valid = torch.rand(rows, features, generator=generator) < 0.7
    valid[:, -1] = False
    hidden = GARBAGE[torch.randint(0, 4, x.shape, generator=generator)]
    return torch.where(valid, x, hidden), valid


# -------------------------------------------------------------------------------------------------------------- names


def named() -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.table({"s": ["x", "y", "z"], "b": [1, None, 3], "a": [1.5, 2.5, None], "k": [3, 1, 3]})


def test_columns_are_picked_by_name_from_any_table() -> None:
    table = named()
    frames = [table, table.to_batches()[0], table.select(["k", "a", "b"])]
    pd = pytest.importorskip("pandas")
    frames.append(table.to_pandas(types_mapper=pd.ArrowDtype))
    frames.append(table.to_pandas().convert_dtypes())
    frames.append(pytest.importorskip("polars").from_arrow(table))
    for frame in frames:
        stats = mt.RunningStatistics(columns=["a", "b"]).update(frame)
        assert (stats.names, stats.mean.tolist()) == (["a", "b"], [2.0, 2.0])
        assert (stats.count.tolist(), stats.missing.tolist()) == ([2.0, 2.0], [1.0, 1.0])
        assert stats(frame).tolist() == [[-1.0, -1.0], [1.0, None], [None, 1.0]]
    for frame in (table.select(["a", "s"]), table.select(["a", "s"]).to_pandas()):
        with pytest.raises(ValueError, match=r"the table lacks columns \['b'\]; it has \['a', 's'\]"):
            stats.update(frame)
    with pytest.warns(UserWarning, match=r"taken as \['a', 'b'\] by their position") as said:
        assert stats.update(torch.ones(1, 2)).count.tolist() == [3.0, 3.0]
    assert [warning.filename for warning in said] == [__file__]
    assert stats.reset().names == ["a", "b"]
    twice = table.select(["a", "b"]).append_column("a", table["a"])
    with pytest.raises(ValueError, match="more than once"):
        stats.update(twice)


def test_columns_are_picked_from_a_pandas_table_of_one_dtype() -> None:
    pd = pytest.importorskip("pandas")
    plain = pd.DataFrame({"a": [1.0, 2.0], "b": [10.0, 20.0], "c": [0.0, 0.0]})
    for frame in (plain, plain.astype("Float32"), plain.astype("int64")):
        stats = mt.RunningStatistics(columns=["b", "a"]).update(frame)
        assert stats.mean.tolist() == [15.0, 1.5]
        assert stats(frame).tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    gap = plain.astype("Float32")
    gap.loc[0, "b"] = None
    assert mt.RunningStatistics(columns=["b"]).update(gap).count.tolist() == [1.0]


def test_the_nan_of_a_pandas_table_is_said_by_statistics_too() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, torch.nan, 3.0], "b": [torch.nan, 5.0, 6.0]})
    stats = mt.RunningStatistics(2)
    with pytest.warns(UserWarning, match=r"valid value; frame.convert_dtypes\(\) masks it and keeps the names") as said:
        stats.update(frame)
    assert [warning.filename for warning in said] == [__file__]
    assert "nan" in str(stats)
    for way in (frame.convert_dtypes(), mt.to_arrow(mt.masked_invalid(frame), list(frame.columns))):
        stats = mt.RunningStatistics(2).update(way)
        assert (stats.count.tolist(), stats.mean.tolist(), stats.names) == ([2.0, 2.0], [2.0, 5.5], ["a", "b"])
    with pytest.warns(UserWarning, match="valid value"):
        assert stats(frame).mask.all()
    for made in (lambda: mt.masked_equal(frame, 6), lambda: mt.masked_where([[True], [False], [False]], frame)):
        with pytest.warns(UserWarning, match="masked_invalid") as said:
            assert made().isnan().any()
        assert [warning.filename for warning in said] == [__file__]


def test_a_valid_nan_is_printed_and_no_null() -> None:
    pa = pytest.importorskip("pyarrow")
    stats = mt.RunningStatistics(columns=["none", "nan", "inf"])
    stats.update(mt.to_arrow(mt.masked_tensor([[None, torch.nan, 1e5], [None, 1.0, torch.inf]]), stats.names))
    assert [line.split()[3:] for line in str(stats).splitlines()[2:]] == [
        ["--", "--", "--", "--"],
        ["nan", "nan", "nan", "nan"],
        ["inf", "nan", "100000", "inf"],
    ]
    assert pa.table(stats.summary())["mean"].null_count == 1


@pytest.mark.parametrize("options", [{}, {"features": 2, "columns": ["a"]}, {"columns": "ab"}, {"columns": ["a", "a"]}])
def test_what_columns_there_are_must_be_said(options: Any) -> None:
    with pytest.raises(ValueError, match="column"):
        mt.RunningStatistics(**options)


def test_results_have_names() -> None:
    stats = mt.RunningStatistics(columns=["a", "b"], sketch=True)
    assert repr(stats) == "RunningStatistics(2, sketch=True)"
    stats.update(mt.to_arrow(mt.masked_tensor([[1.0, None], [3.0, None]]), ["a", "b"]))
    assert repr(stats).splitlines()[1:] == [
        "   count  missing  mean    std  min  max  25%  50%  75%",
        "a      2        0     2  1.414    1    3  1.5    2  2.5",
        "b      0        2    --     --   --   --   --   --   --",
    ]
    assert stats._repr_html_().count("<tr>") == 3
    frame = stats.to_pandas() if pytest.importorskip("pandas") else None
    assert frame.loc["a", "75%"] == 2.5
    assert np.isnan(frame.loc["b", "mean"])
    table = pytest.importorskip("pyarrow").table(stats.summary())
    assert table.to_pylist()[1]["mean"] is None
    assert table.column_names == ["column", *frame.columns]
    wide = mt.RunningStatistics(100).update(torch.ones(2, 100))
    assert len(repr(wide).splitlines()) < 20


# -------------------------------------------------------------------------------------------------- tensors as tables


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int8, torch.uint16, torch.bool])
def test_a_masked_tensor_is_a_table_and_comes_back(dtype: torch.dtype) -> None:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    x = mt.masked_tensor([[1, 0, 3], [None, 1, None]], dtype=dtype)
    for way in (x, x.mT.contiguous().mT, x[:1], x[:0], x[:, 1:]):
        table = pa.table(mt.to_arrow(way))
        assert table.to_pylist() == pa.record_batch(mt.to_arrow(way)).to_pylist()
        assert [list(row.values()) for row in table.to_pylist()] == way.tolist()
        assert pl.DataFrame(mt.to_arrow(way)).shape == way.shape
        back = mt.masked_tensor(table)
        assert (back.dtype, back.tolist()) == (dtype, way.tolist())
    assert pa.table(mt.to_arrow(x[:, 0], "one")).to_pydict() == {"one": x[:, 0].tolist()}
    assert pa.table(mt.to_arrow(torch.ones(2, 1).to(dtype))).column(0).null_count == 0
    pd = pytest.importorskip("pandas")
    assert list(pd.DataFrame.from_arrow(mt.to_arrow(x, list("abc"))).columns) == ["a", "b", "c"]


def test_columns_stay_where_they_are() -> None:
    pa = pytest.importorskip("pyarrow")
    x = mt.masked_tensor(pa.table({"a": [1.0, None], "b": [3.0, 4.0]}))
    table = pa.table(mt.to_arrow(x, ["a", "b"]))
    places = [column.chunk(0).buffers()[1].address for column in table.columns]
    assert places == [column.data_ptr() for column in mt.get_data(x).mT]
    kept = table["b"]
    del x, table
    assert kept.to_pylist() == [3.0, 4.0]  # the memory lives as long as a column of it


def test_what_makes_no_columns_is_refused() -> None:
    for wrong, names in ((torch.ones(2, 2, 2), None), (torch.ones(2, 2), ["a"]), (torch.ones(2, 2), ["a", "a"])):
        with pytest.raises(ValueError, match=r"to_arrow\(\)"):
            mt.to_arrow(wrong, names)
    with pytest.raises(TypeError, match=r"use x.float\(\)"):
        mt.to_arrow(torch.ones(2, dtype=torch.bfloat16))
    assert len(mt.to_arrow(torch.ones(3, 1).to_sparse())) == 3


# ------------------------------------------------------------------------------------------------------------- states


def every_kind(seed: int = 0, rows: int = 60) -> dict[str, mt.RunningStatistics]:
    x, valid = columns(seed, rows)
    batch = mt.as_masked_tensor(x, valid)
    return {
        "plain": mt.RunningStatistics(3, dim=1, correction=0).update(batch),
        "named": mt.RunningStatistics(columns=["a", "é", "'"]).update(mt.to_arrow(batch, ["a", "é", "'"])),
        "pairs": mt.RunningStatistics(3, cov=True, edges=torch.linspace(-1, 1, 5)).update(batch),
        "sketch": mt.RunningStatistics(3, sketch=4).update(batch),
        "groups": mt.RunningStatistics(3).update(batch, group=torch.arange(rows) % 7),
        "empty": mt.RunningStatistics(3, sketch=True),
    }


def same(a: mt.RunningStatistics, b: mt.RunningStatistics) -> bool:
    one, other = travel.to_row(a._state), travel.to_row(b._state)
    return all(
        torch.equal(value.nan_to_num(5e7), other[name].nan_to_num(5e7))
        if isinstance(value, Tensor)
        else value == other[name]
        for name, value in one.items()
    )


@pytest.mark.parametrize("kind", every_kind())
def test_a_state_travels_as_a_row(kind: str) -> None:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    stats = every_kind()[kind]
    row = pa.table(stats.to_arrow())
    assert row.schema == pa.table(mt.RunningStatistics(1).to_arrow()).schema  # of any options
    assert [f"{name} {kind}" for name, kind in travel._TYPES.items()] == mt.RunningStatistics.SCHEMA.split(", ")
    carriers = [row, row.to_batches()[0], pl.from_arrow(row), stats.to_arrow()]
    if pytest.importorskip("pandas"):
        carriers.append(row.to_pandas())
    for carrier in carriers:
        assert same(mt.RunningStatistics.from_arrow(carrier), stats), type(carrier)
    other = every_kind(1)[kind]
    both = pa.concat_tables([row, pa.table(other.to_arrow())])
    for carrier in (both, pl.from_arrow(both), both.combine_chunks().slice(0, 2)):
        assert same(mt.RunningStatistics.from_arrow(carrier), mt.RunningStatistics.merge_all([stats, other]))
    file = io.BytesIO()
    torch.save(stats.state_dict(), file)
    file.seek(0)
    loaded = stats._alike(stats.edges)
    loaded.load_state_dict(torch.load(file))
    for copied in (loaded, copy.deepcopy(stats), pickle.loads(pickle.dumps(stats))):
        assert same(copied, stats) or stats.names is not None
        assert torch.equal(copied.count, stats.count)


def test_a_row_that_is_not_whole_is_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    for kind, stats in every_kind().items():
        row = pa.table(stats.to_arrow()).to_pylist()[0]
        schema = pa.table(stats.to_arrow()).schema
        lists = [name for name, value in row.items() if isinstance(value, list) and value and name != "names"]
        for change in [
            {"version": 2},
            {"features": 4},
            {"features": -1},
            {"correction": -1.0},
            {"names": ["x", "y", "z"]},
        ] + [{name: row[name][:-1]} for name in lists]:
            table = pa.Table.from_pylist([{**row, **change}], schema)
            with pytest.raises(ValueError, match=r"row|version|correction|column"):
                mt.RunningStatistics.from_arrow(table)
        with pytest.raises(ValueError, match="without moments"):
            mt.RunningStatistics.from_arrow(pa.table(stats.to_arrow()).drop(["moments"]))
        with pytest.raises(ValueError, match="at least one state"):
            mt.RunningStatistics.from_arrow(pa.table(stats.to_arrow())[:0])
        assert kind
    with pytest.raises(TypeError, match="expects an Arrow table"):
        mt.RunningStatistics.from_arrow([{}])


def test_batches_of_a_worker_become_one_row() -> None:
    pa, table = pytest.importorskip("pyarrow"), named()
    stats = mt.RunningStatistics(columns=["a", "b"])
    (row,) = stats.map_batches(iter(table.to_batches(max_chunksize=1)))
    assert isinstance(row, pa.RecordBatch)
    assert same(mt.RunningStatistics.from_arrow(row), mt.RunningStatistics(columns=["a", "b"]).update(table))
    assert stats.count.tolist() == [0.0, 0.0]


class Frame:
    """A container of another library that has columns, whose reader gives numbers without names."""

    columns = "a", "b"


def test_a_container_that_is_read_whole_has_its_columns() -> None:
    mt.extend.register_container(Frame)(lambda frame: ([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]]))
    assert mt.RunningStatistics(2).update(Frame()).count.tolist() == [2, 1]
    assert mt.RunningStatistics(columns=["b", "a"]).update(Frame()).count.tolist() == [1, 2]


# ----------------------------------------------------------------------------------------------------------- sketches


cuts = st.lists(st.integers(0, 400), max_size=6).map(lambda at: [0, *sorted(at), 400])


@hypothesis.settings(deadline=None, max_examples=8)
@hypothesis.given(cuts, st.integers(0, 2**31), st.sampled_from([2, 3, 16, 64, 512]), st.booleans())
def test_quantiles_lie_within_what_is_promised(at: list[int], seed: int, size: int, merged: bool) -> None:
    """In value and in rank, for any split, whether batches are added one after the other or states are merged."""
    x, valid = columns(seed, 400)
    whole = mt.RunningStatistics(3, sketch=size)
    for start, stop in itertools.pairwise(at):
        part = whole._alike(None) if merged else whole
        part.update(mt.as_masked_tensor(x[start:stop], valid[start:stop]))
        if merged:
            kept = travel.to_row(part._state)
            whole.merge(part)
            assert all(
                torch.equal(v, kept[n]) for n, v in travel.to_row(part._state).items() if n in ("waiting", "items")
            )
    assert whole.count.tolist() == valid.sum(0).tolist()
    check_quantiles(whole, x, valid)
    if size == 512:
        assert whole.rank_error().filled(0).tolist() == [0.0] * 3


def check_quantiles(stats: mt.RunningStatistics, x: Tensor, valid: Tensor) -> None:
    entries = [np.sort(column[there].numpy()) for column, there in zip(x.double().T, valid.T, strict=True)]
    for q in QUANTILES:
        found, error = stats.quantile(q), stats.quantile_error(q)
        for i, known in enumerate(entries):
            if not len(known):
                assert found[i].tolist() is error[i].tolist() is stats.rank_error()[i].tolist() is None
                continue
            value, promised = found[i].item(), stats.rank_error()[i].item()
            assert abs(value - np.quantile(known, q)) <= error[i].item() * (1 + 1e-12) + 1e-9
            low, high = (np.quantile(known, min(max(p, 0), 1)) for p in (q - promised, q + promised))
            step = 1 / len(known)  # between two ranks
            low, high = (np.quantile(known, min(max(p, 0), 1), method=m) for p, m in (
                (q - promised - step, "lower"), (q + promised + step, "higher")
            ))  # fmt: skip
            assert low <= value <= high


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64])
def test_sketches_of_any_dtype_are_exact_while_nothing_is_left_out(dtype: torch.dtype) -> None:
    x, valid = columns(3, 3000)
    x = torch.where(valid, x, 0)  # a float64 keeps its digits
    x = (x if dtype.is_floating_point else x.round()).to(dtype)
    stats = mt.RunningStatistics(3, sketch=True)
    for part, there in zip(x.split(700), valid.split(700), strict=True):
        stats.update(mt.as_masked_tensor(part, there))
    for q in QUANTILES:
        exact = mt.nanquantile(mt.as_masked_tensor(x.double(), valid), q, 0)
        torch.testing.assert_close(stats.quantile(q), exact, rtol=1e-12, atol=0)


def test_long_batches_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, valid = columns(4, 5000)
    monkeypatch.setattr("masked_tensor.stats.settings.SORTED", 3000)
    for size in (16, 100):
        stats = mt.RunningStatistics(3, sketch=size).update(mt.as_masked_tensor(x, valid))
        check_quantiles(stats, x, valid)
        assert 0 < stats.rank_error().amax() < 0.35
    monkeypatch.setattr(Tensor, "numpy", lambda x: (_ for _ in ()).throw(RuntimeError("Numpy is not available")))
    alike = mt.RunningStatistics(3, sketch=100).update(mt.as_masked_tensor(x, valid))
    assert same(alike, stats)


@pytest.mark.parametrize("options", [{"sketch": 16}, {"edges": torch.linspace(-3, 3, 40)}], ids=["sketch", "edges"])
def test_several_quantiles_are_those_of_each_alone(options: dict[str, Any]) -> None:
    x, valid = columns(5, 300)
    stats = mt.RunningStatistics(3, **options).update(mt.as_masked_tensor(x, valid))
    wanted = [0.25, 0.0, 1.0, 0.25]
    for several in (wanted, tuple(wanted), torch.tensor(wanted), np.array(wanted)):
        for ask in (stats.quantile, stats.quantile_error):
            found = ask(several)
            assert found.shape == (4, 3)
            assert found.tolist() == [ask(q).tolist() for q in wanted]
    assert stats.quantile([]).shape == (0, 3)
    for q in (np.float32(0.25), torch.tensor(0.25)):
        assert stats.quantile(q).tolist() == stats.quantile(0.25).tolist()
    with pytest.raises(ValueError, match="q must be from 0 to 1, got 2"):
        stats.quantile([0.5, 2.0])


def test_what_is_no_number_has_no_quantile() -> None:
    x = torch.tensor([[1.0, 1.0, torch.inf], [torch.nan, 2.0, 3.0], [3.0, -torch.inf, torch.inf]])
    stats = mt.RunningStatistics(3, sketch=True).update(x)
    assert str(stats.quantile(0.5).tolist()) == "[nan, 1.0, inf]"
    assert stats.quantile(0.0).tolist()[1:] == [-torch.inf, 3.0]
    with pytest.raises(TypeError, match="does not support weights"):
        stats.update(x, torch.ones(3, 1))
    with pytest.raises(ValueError, match="q must be from 0 to 1"):
        stats.quantile(1.5)
    with pytest.raises(RuntimeError, match="sketch=True"):
        mt.RunningStatistics(1).rank_error()
    for size in (1, -2):
        with pytest.raises(ValueError, match="sketch must be"):
            mt.RunningStatistics(1, sketch=size)


# ------------------------------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize("chunk", [1 << 18, 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_those_of_pandas(chunk: int, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr("masked_tensor.stats.settings.CHUNK", chunk)
    x, valid = columns(5, 500)
    x[:, 1] += 1e6
    keys = torch.randint(0, 40, (500,)) * 10**14
    times = torch.randint(0, 3, (500, 1)) if weighted else torch.ones(500, 1).long()
    stats = mt.RunningStatistics(3)
    parts = [mt.RunningStatistics(3) for _ in range(3)]
    for i, (a, b, k, w) in enumerate(zip(x.split(70), valid.split(70), keys.split(70), times.split(70), strict=True)):
        for each in (stats, parts[i % 3]):
            each.update(mt.as_masked_tensor(a, b), w if weighted else None, group=k)
    often = times[:, 0]
    frame = pd.DataFrame(np.where(valid, x, np.nan)).loc[np.repeat(np.arange(500), often)]
    by = frame.groupby(keys.repeat_interleave(often).numpy())
    for whole in (stats, mt.RunningStatistics.merge_all([mt.RunningStatistics(3), *parts])):
        known = torch.isin(
            whole.groups, keys.repeat_interleave(often)
        )  # a row of weight 0 makes a group without entries
        assert whole.groups.tolist() == keys.unique().tolist()
        for name, wanted in {"mean": by.mean(), "std": by.std(), "amin": by.min(), "amax": by.max()}.items():
            found = getattr(whole, name).filled(torch.nan)[known].numpy()
            np.testing.assert_allclose(found, wanted.to_numpy(), rtol=1e-7 if name == "std" else 1e-12, err_msg=name)
        assert whole.count[known].tolist() == by.count().to_numpy().tolist()
        assert whole.missing.sum() == (~valid).sum()
    batch = mt.as_masked_tensor(x, valid)
    wanted = (frame - by.transform("mean")) / by.transform("std", ddof=0).replace(0, 1)
    if not weighted:
        np.testing.assert_allclose(stats(batch, group=keys).filled(torch.nan).numpy(), wanted.to_numpy(), atol=1e-6)


def test_groups_of_tables_and_what_is_no_key() -> None:
    table = named()
    stats = mt.RunningStatistics(columns=["a", "b"]).update(table, group="k")
    assert (stats.groups.tolist(), stats.mean.tolist()) == ([1, 3], [[2.5, None], [1.5, 2.0]])
    assert stats(table, group="k").tolist() == [[0.0, -1.0], [0.0, None], [None, 1.0]]
    assert stats.to_pandas().loc[(3, "b"), "mean"] == 2.0
    x, kept = mt.to_arrow(torch.ones(2, 2), ["a", "b"]), travel.to_row(stats._state)
    for group in ([1, -1], mt.masked_tensor([1, None]), [1], [1.0, 2.0], torch.ones(2, 1).long()):
        with pytest.raises(ValueError, match=r"keys|one integer"):
            stats.update(x, group=group)
    with pytest.raises(ValueError, match="other batches have groups"):
        stats.update(x)
    with pytest.raises(ValueError, match="takes group=keys"):
        stats(x)
    with pytest.raises(ValueError, match=r"group holds keys that .* \[9\]"):
        stats(x, group=[1, 9])
    plain = mt.RunningStatistics(2).update(x)
    with pytest.raises(ValueError, match="other batches have no groups"):
        plain.update(x, group=[1, 2])
    for a, b in (
        (stats, mt.RunningStatistics(columns=["a", "b"]).update(x)),
        (plain, mt.RunningStatistics(2).update(x, group=[1, 2])),
    ):
        with pytest.raises(ValueError, match="groups in both or in neither"):
            a.merge(b)
    for options in ({"cov": True}, {"sketch": True}, {"edges": torch.ones(1)}):
        with pytest.raises(TypeError, match="groups have moments alone"):
            mt.RunningStatistics(2, **options).update(x, group=[1, 2])
    assert all(torch.equal(v, travel.to_row(stats._state)[n]) for n, v in kept.items() if isinstance(v, Tensor))
    assert mt.RunningStatistics(2).update(torch.ones(0, 2), group=torch.ones(0).long()).groups.tolist() == []


# -------------------------------------------------------------------------------------------------------------- ranks


def kinds_of_rank(rank: int, ranks: int) -> dict[str, Any]:
    """What all ranks have, of states of different size; and what they are told where one has no groups."""
    found: dict[str, Any] = {}
    for name in every_kind():
        stats = (
            every_kind(rank, 60 * rank)[name]
            if rank
            else every_kind()["empty" if name == "sketch" else name]._alike(None)
        )
        if name in ("pairs", "sketch", "empty") and not rank:
            stats = every_kind(1)[name]._alike(every_kind(1)[name].edges)
        if name == "plain" and not rank:
            stats = mt.RunningStatistics(3, dim=1, correction=0)
        found[name] = travel.to_row(stats.all_reduce()._state)
    mixed = mt.RunningStatistics(1).update(torch.ones(1, 1), group=None if rank == ranks - 1 else [1])
    with pytest.raises(ValueError, match="groups on all ranks or on none"):
        mixed.all_reduce()
    return found


def test_ranks_add_up_states_of_any_size() -> None:
    found = gathered(3, kinds_of_rank)
    for name in every_kind():
        parts = [every_kind(rank, 60 * rank)[name] for rank in range(1, 3)]
        whole = mt.RunningStatistics.merge_all(parts)
        for rows in found:
            back = travel.from_row(rows[name], mt.RunningStatistics)
            torch.testing.assert_close(back.mean, whole.mean)
            torch.testing.assert_close(back.missing, whole.missing)
            assert back.names == whole.names
            assert torch.equal(rows[name]["moments"].nan_to_num(0), found[0][name]["moments"].nan_to_num(0))
        if name == "sketch":
            tables = [columns(rank, 60 * rank) for rank in range(1, 3)]
            check_quantiles(back, *(torch.cat(part) for part in zip(*tables, strict=True)))
