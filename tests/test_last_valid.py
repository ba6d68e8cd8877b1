"""The last valid values: a forward fill of parts is that of all rows at once, as pandas has it."""

import itertools
import random
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt

pandas = pytest.importorskip("pandas")
GARBAGE = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30], dtype=torch.float64)


def drawn(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows with garbage under the mask, one column that nobody has, and a key for each row."""
    generator = torch.Generator().manual_seed(seed)
    size = lambda n: int(torch.randint(n, (), generator=generator))  # noqa: E731 (a short name for three calls)
    rows, features = size(40), 1 + size(3)
    x = torch.randn(rows, features, generator=generator, dtype=torch.float64)
    valid = torch.rand(rows, features, generator=generator) < 0.4
    valid[:, -1] &= seed % 3 > 0
    hidden = GARBAGE[torch.randint(0, 4, x.shape, generator=generator)]
    keys = 10**12 + torch.randint(1 + size(6), (rows,), generator=generator)
    return torch.where(valid, x, hidden), valid, keys


def by_pandas(x: Tensor, valid: Tensor, keys: Tensor, limit: int | None) -> tuple[Tensor, Tensor]:
    frame = pandas.DataFrame(torch.where(valid, x, torch.nan).numpy())
    filled = torch.tensor(frame.groupby(keys.numpy()).ffill(limit=limit).to_numpy(), dtype=x.dtype).view(x.shape)
    return filled.nan_to_num(0), ~filled.isnan()


def cuts(seed: int, rows: int) -> list[slice]:
    """Parts, some of them empty."""
    draw = random.Random(seed)
    at = [0, *sorted(draw.randint(0, rows) for _ in range(draw.randint(0, 5))), rows]
    return [slice(a, b) for a, b in itertools.pairwise(at)]


@pytest.mark.parametrize("seed", range(60))
def test_parts_are_filled_as_all_rows_at_once(seed: int) -> None:
    x, valid, keys = drawn(seed)
    limit = [None, 1, 2, 5][seed % 4]
    data, mask = by_pandas(x, valid, keys, limit)
    whole, parts = mt.as_masked_tensor(x, valid), cuts(seed, len(x))
    last, rows, found = mt.LastValid(x.shape[1], limit=limit), [], []
    for i, part in enumerate(parts):
        found.append(last(whole[part], group=keys[part]))
        last.update(whole[part], group=keys[part])
        rows.append(mt.LastValid(x.shape[1], limit=limit).update(whole[part], group=keys[part]).to_arrow(part=i))
    pa = pytest.importorskip("pyarrow")
    random.Random(seed).shuffle(rows)  # workers end in any order
    before = mt.LastValid.before(pa.concat_tables(map(pa.table, rows)))
    apart = [before[i](whole[part], group=keys[part]) for i, part in enumerate(parts)]
    for several in (found, apart):
        y = torch.cat(several)
        assert torch.equal(y.get_mask(), mask)
        assert torch.equal(y.filled(0), data)
    assert repr(mt.LastValid.from_arrow(pa.concat_tables(map(pa.table, rows)))) == repr(last)


def test_tables_go_by_name_and_keys_by_column() -> None:
    frames = [
        pandas.DataFrame({"who": [1, 2], "text": ["a", "b"], "pulse": [60.0, None], "heat": [37.0, None]}),
        pandas.DataFrame({"heat": [None, None], "pulse": [None, 70.0], "who": [2, 1]}),
    ]
    last = mt.LastValid(["pulse", "heat"])
    read = [frame.convert_dtypes() for frame in frames]
    found = []
    for frame in read:
        found.append(last(frame, group="who").tolist())
        last.update(frame, group="who")
    assert found == [[[60.0, 37.0], [None, None]], [[None, None], [70.0, 37.0]]]
    with pytest.raises(ValueError, match=r"the table lacks columns \['heat'\]"):
        last.update(read[0][["who", "pulse"]], group="who")
    assert repr(last) == "LastValid(['pulse', 'heat']): 2 keys, 4 rows"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_dtypes_stay(dtype: torch.dtype) -> None:
    x = mt.as_masked_tensor(torch.tensor([[1], [0]]).to(dtype), torch.tensor([[True], [False]]))
    last = mt.LastValid(1).update(x)
    y = last(mt.as_masked_tensor(torch.zeros(2, 1).to(dtype), torch.zeros(2, 1, dtype=torch.bool)))
    assert y.dtype is dtype
    assert y.tolist() == [[1], [1]]


def test_the_batch_stays_what_it_is_and_calls_add_nothing() -> None:
    x = mt.masked_tensor([[1.0, None], [None, 2.0]])
    last = mt.LastValid(2)
    assert last(x).tolist() == [[1.0, None], [1.0, 2.0]]
    assert last(mt.masked_tensor([[None, None]])).tolist() == [[None, None]]
    assert x.tolist() == [[1.0, None], [None, 2.0]]
    plain = last.update(x)(torch.tensor([[3.0, torch.nan]]))  # a valid NaN stays
    assert plain.get_mask().all()
    assert plain.get_data()[0, 1].isnan()


def test_packed_and_sparse_rows() -> None:
    x = mt.from_sequences([torch.ones(2), torch.ones(1)], packed=True)
    assert mt.LastValid(2)(x).tolist() == [*x.unpacked().tolist()[:1], [1.0, 1.0]]
    with pytest.raises(TypeError, match="to_dense"):
        mt.LastValid(2)(mt.as_masked_tensor(torch.eye(2).to_sparse(), torch.eye(2, dtype=torch.bool).to_sparse()))


def row(**changes: Any) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.table(mt.LastValid(["a"]).update(torch.ones(2, 1), group=[1, 2]).to_arrow()).to_pylist()[0] | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 7}, "version 7"),
        ({"keys": [2, 1]}, "its keys do not rise"),
        ({"values": [1.0]}, "the row is not whole"),
        ({"since": None}, "the row is not whole"),
        ({"rows": [1]}, "its keys do not rise"),
        ({"since": [-5, 0]}, "its keys do not rise"),
        ({"names": ["a", "a"], "features": 2}, "different names"),
    ],
)
def test_a_row_that_was_changed_is_refused(changes: Any, message: str) -> None:
    pa = pytest.importorskip("pyarrow")
    schema = pa.table(mt.LastValid(["a"]).to_arrow()).schema
    assert mt.LastValid.from_arrow(pa.Table.from_pylist([row()], schema=schema)) is not None
    with pytest.raises(ValueError, match=message):
        mt.LastValid.from_arrow(pa.Table.from_pylist([row(**changes)], schema=schema))


def test_mistakes_are_named_and_change_nothing() -> None:
    last = mt.LastValid(["a", "b"]).update(torch.ones(1, 2))
    for call, message in (
        (lambda: mt.LastValid("ab"), "list of different names"),
        (lambda: mt.LastValid(["a", "a"]), "list of different names"),
        (lambda: mt.LastValid(0), "or their number"),
        (lambda: mt.LastValid(1, limit=0), "limit must be 1 or more"),
        (lambda: last.update(torch.ones(2)), r"rows of 2 columns, got \(2,\)"),
        (lambda: last(torch.ones(2, 3)), r"rows of 2 columns, got \(2, 3\)"),
        (lambda: last.update(torch.ones(2, 2), group=[1]), "one integer for each row"),
        (lambda: last.update(torch.ones(2, 2), group=[1, -1]), "valid and not negative"),
        (lambda: last.update(torch.ones(2, 2), group=mt.masked_tensor([1, None])), "valid and not negative"),
        (lambda: last.merge(mt.LastValid(["b", "a"])), "the same columns and limit"),
        (lambda: last.merge(mt.LastValid(["a", "b"], limit=3)), "the same columns and limit"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="view_as_real"):
        last.update(torch.ones(1, 2, dtype=torch.complex64))
    assert repr(last) == "LastValid(['a', 'b']): 1 keys, 1 rows"
    pa = pytest.importorskip("pyarrow")
    rows = pa.table(last.to_arrow())
    for wrong, message in ((pa.concat_tables([rows, rows]), "two parts have the number"), (rows[:0], "at least")):
        with pytest.raises(ValueError, match=message):
            mt.LastValid.before(wrong)
