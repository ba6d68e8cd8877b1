"""``RunningStatistics``: any split of the data gives what all of it gives; garbage under the mask takes no part."""

import copy
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.distributed import checkpoint
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import masked_tensor as mt
from masked_tensor.stats.moments.columns import moments_of

from .helpers.ranks import alone, gathered

ROWS, COLUMNS = 40, 4
EDGES = torch.linspace(-3, 3, 7)


def table(
    seed: int, scale: float = 1.0, shift: float = 0.0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Values with what no statistic survives under the mask; nobody has the last column."""
    generator = torch.Generator().manual_seed(seed)
    x = (torch.randn(ROWS, COLUMNS, generator=generator, dtype=torch.float64) * scale + shift).to(dtype)
    valid = torch.rand(ROWS, COLUMNS, generator=generator) < 0.7
    valid[:, -1] = False
    garbage = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30], dtype=torch.float64)
    pick = torch.randint(0, 4, (ROWS, COLUMNS), generator=generator)
    return torch.where(valid, x, garbage[pick].to(dtype)), valid


def made(cov: bool = True, **options: Any) -> mt.RunningStatistics:
    return mt.RunningStatistics(COLUMNS, cov=cov, edges=EDGES, **options)


def read(stats: mt.RunningStatistics) -> dict[str, Any]:
    names = ("count", "mean", "var", "std", "amin", "amax", "histogram")
    found = {name: getattr(stats, name) for name in names} | {"quantile": stats.quantile(0.3)}
    return found if stats.pairs is None else found | {"cov": stats.cov(), "corr": stats.corr()}


def check(stats: mt.RunningStatistics, x: Tensor, valid: Tensor, rtol: float = 1e-12) -> None:
    """Against numpy's nan-functions and pandas' pairwise ones of all rows at once, in float64."""
    whole = np.where(valid.numpy(), x.double().numpy(), np.nan)[:, :-1]
    for name, value in {
        "mean": np.nanmean(whole, 0), "var": np.nanvar(whole, 0, ddof=1), "std": np.nanstd(whole, 0, ddof=1),
        "amin": np.nanmin(whole, 0), "amax": np.nanmax(whole, 0),
    }.items():  # fmt: skip
        found = read(stats)[name]
        assert not found.get_mask()[-1], name  # nobody has that column
        np.testing.assert_allclose(found.filled(0)[:-1].numpy(), value, rtol=rtol, err_msg=name)


cuts = st.lists(st.integers(0, ROWS), max_size=5).map(lambda at: [0, *sorted(at), ROWS])


@hypothesis.settings(deadline=None, max_examples=25)
@hypothesis.given(cuts, cuts, st.integers(0, 2**31), st.sampled_from([1e-6, 1.0, 1e6]), st.sampled_from([0.0, 1e6]))
def test_any_split_gives_the_whole(first: list[int], second: list[int], seed: int, scale: float, shift: float) -> None:
    x, valid = table(seed, scale, shift * scale)
    parts = [made() for _ in range(2)]
    for stats, at in zip(parts, (first, second), strict=True):
        for start, stop in itertools.pairwise(at):
            stats.update(mt.as_masked_tensor(x[start:stop], valid[start:stop]))
        check(stats, x, valid)
    twice = torch.cat([x, x]), torch.cat([valid, valid])
    check(parts[0].merge(parts[1]), *twice)
    check(made().merge(parts[0]).merge(made()), *twice)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64])
@pytest.mark.parametrize("chunk", [1 << 18, 12])
def test_far_from_zero(dtype: torch.dtype, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("masked_tensor.stats.settings.CHUNK", chunk)
    x, valid = table(1, 1.0, 1e4, torch.float32)
    x = torch.where(valid, x, 0).to(dtype) if dtype is torch.int64 else x.to(dtype)
    stats = made()
    for part, mask in zip(x.split(7), valid.split(7), strict=True):
        stats.update(mt.as_masked_tensor(part, mask))
    check(stats, x, valid, 1e-6)


def test_cov_and_corr_are_pandas_own() -> None:
    pandas = pytest.importorskip("pandas")
    x, valid = table(2, 1.0, 1e5)
    frame = pandas.DataFrame(np.where(valid.numpy(), x.numpy(), np.nan)[:, :-1])
    stats = made().update(mt.as_masked_tensor(x[:11], valid[:11]))
    stats.merge(made().update(mt.as_masked_tensor(x[11:], valid[11:])))
    np.testing.assert_allclose(stats.cov().filled(0)[:-1, :-1].numpy(), frame.cov().to_numpy(), rtol=1e-10)
    np.testing.assert_allclose(stats.corr().filled(0)[:-1, :-1].numpy(), frame.corr().to_numpy(), rtol=1e-10)
    assert not stats.cov().get_mask()[-1].any()


def test_any_shape_layout_and_mask() -> None:
    x = torch.randn(3, 5, COLUMNS, dtype=torch.float64)
    lengths = mt.from_lengths(x, [5, 0, 3])
    want = read(made().update(torch.cat([x[0], x[2, :3]])))
    ways = {
        "padded": made().update(lengths),
        "packed": made().update(lengths.packed()),
        "columns first": made(dim=0).update(lengths.movedim(-1, 0)),
        "column major": made().update(lengths.transpose(0, 2).contiguous().transpose(0, 2)),
        "one row": made().update(x[0, 0]).merge(made().update(torch.cat([x[0, 1:], x[2, :3]]))),
    }
    for name, stats in ways.items():
        for key, value in read(stats).items():
            torch.testing.assert_close(value, want[key], rtol=1e-12, atol=1e-12, msg=f"{name}: {key}")


def test_sparse_matrices() -> None:
    x = torch.tensor([[1.0, 0, 3, 0], [0, 0, -2, 0], [4, 0, 0, 0]])
    dense = read(mt.RunningStatistics(4, cov=True, edges=EDGES).update(x))
    masked = torch.where(x != 0, x, torch.nan)
    shown = x != 0
    shown[0, 0] = False
    for layout in (torch.sparse_coo, torch.sparse_csr):
        plain = mt.RunningStatistics(4).update(x.to_sparse(layout=layout))
        mask = torch.where(x != 0, shown, False)
        pattern = x.to_sparse(layout=layout)
        given = mt.as_masked_tensor(pattern, _same_pattern(pattern, mask))
        found = mt.RunningStatistics(4).update(given)
        want = mt.RunningStatistics(4).update(mt.as_masked_tensor(masked, shown))
        for name in ("count", "mean", "amin", "amax"):
            torch.testing.assert_close(getattr(plain, name), dense[name])
            torch.testing.assert_close(getattr(found, name), getattr(want, name))
        torch.testing.assert_close(plain.var, dense["var"])
        torch.testing.assert_close(found.var, want.var)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
@pytest.mark.parametrize("far", [1.0, -3e7, 1e12])
def test_sparse_columns_that_are_far_from_zero(layout: torch.layout, far: float) -> None:
    """One is stored as a whole, in one a single entry: no zero counts in the first, and no digit is lost."""
    x = far + torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    stored = torch.rand(40, 3, generator=torch.Generator().manual_seed(1)) < 0.5
    stored[:, 0], stored[:, 2] = True, torch.arange(40) == 7
    pattern = torch.where(stored, x, 0).to_sparse(layout=layout)
    plain = mt.RunningStatistics(3).update(pattern)
    want = mt.RunningStatistics(3).update(torch.where(stored, x, 0))
    of_stored = mt.RunningStatistics(3).update(mt.as_masked_tensor(pattern, _same_pattern(pattern, stored)))
    alone = mt.RunningStatistics(3).update(mt.as_masked_tensor(x, stored))
    for found, wanted in ((plain, want), (of_stored, alone)):
        for name in ("count", "mean", "amin", "amax", "var"):
            torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-11, atol=0, msg=name)
    exact = x[:, 0].sub(far).var().item()
    assert abs(of_stored.var[0].item() - exact) <= 1e-3 * exact


def _same_pattern(x: Tensor, mask: Tensor) -> Tensor:
    if x.layout is torch.sparse_csr:
        rows = torch.arange(x.shape[0]).repeat_interleave(x.crow_indices().diff())
        return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), mask[rows, x.col_indices()], x.shape)
    x = x.coalesce()
    return torch.sparse_coo_tensor(x.indices(), mask[tuple(x.indices())], x.shape, is_coalesced=True)


def test_weights_are_repetitions() -> None:
    x, valid = table(3)
    times = torch.arange(ROWS) % 4
    often = x.repeat_interleave(times, 0), valid.repeat_interleave(times, 0)
    stats = made().update(mt.as_masked_tensor(x, valid), times[:, None])
    for name, value in read(made().update(mt.as_masked_tensor(*often))).items():
        torch.testing.assert_close(read(stats)[name], value, rtol=1e-12, atol=1e-13, msg=name)


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), -1e30])
def test_what_masked_weights_hold_reaches_nothing(garbage: float) -> None:
    """Nor what a weight is where its entry is masked."""
    x, valid = table(4)
    times = torch.randint(0, 4, x.shape).double()
    seen = torch.rand(x.shape) < 0.7
    clean = made(False).update(mt.as_masked_tensor(x, valid), torch.where(seen, times, 0))
    dirty = mt.as_masked_tensor(torch.where(seen & valid, times, garbage), seen)
    for given in (dirty, torch.where(valid, torch.where(seen, times, 0), garbage)):
        for name, value in read(made(False).update(mt.as_masked_tensor(x, valid), given)).items():
            torch.testing.assert_close(read(clean)[name], value, rtol=0, atol=0, equal_nan=True, msg=name)
    times, seen = times[:, :1], seen[:, :1]
    clean = made().update(mt.as_masked_tensor(x, valid), torch.where(seen, times, 0))
    found = made().update(mt.as_masked_tensor(x, valid), mt.as_masked_tensor(torch.where(seen, times, garbage), seen))
    for name, value in read(found).items():
        torch.testing.assert_close(read(clean)[name], value, rtol=0, atol=0, equal_nan=True, msg=name)


@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_a_weight_that_is_none_is_refused(wrong: float) -> None:
    stats, weight = mt.RunningStatistics(2), torch.tensor([[1.0, 1.0], [wrong, 1.0]])
    with pytest.raises(ValueError, match=f"weights must not be negative or NaN, got {wrong:g}"):
        stats.update(torch.ones(2, 2), weight)
    assert stats.count.tolist() == [0, 0]
    x = mt.masked_tensor([[1.0, 1.0], [None, 1.0]])  # where nothing is weighed, it is no weight
    assert stats.update(x, weight).count.tolist() == [1, 2]


def test_a_constant_has_no_correlation() -> None:
    """Not even if it is constant only where the other column is valid, and whatever its mean rounds to."""
    pandas = pytest.importorskip("pandas")
    for size in (2, 5, 30, 400):
        x, valid = torch.randn(size, 6, dtype=torch.float64), torch.rand(size, 6) < torch.rand(6)
        x[:, :3] = torch.where(valid[:, 3:4], torch.randn(3, dtype=torch.float64), x[:, :3])
        stats = mt.RunningStatistics(6, cov=True)
        for part, mask in zip((x + 0.3).split(7), valid.split(7), strict=True):
            stats.update(mt.as_masked_tensor(part, mask))
        ours = stats.corr().filled(float("nan"))
        np.testing.assert_array_equal(stats.corrcoef().filled(float("nan")).numpy(), ours.numpy())
        assert not (ours.abs() > 1).any()
        wanted = pandas.DataFrame(np.where(valid, x, np.nan)).corr(min_periods=2)
        np.testing.assert_allclose(ours.numpy(), wanted.to_numpy(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.77, 1.0])
def test_quantiles_are_as_exact_as_they_say(q: float) -> None:
    x, valid = table(4)
    stats = made().update(mt.as_masked_tensor(x, valid))
    exact = mt.nanquantile(mt.as_masked_tensor(x, valid), q, 0)
    for _ in range(3):
        off = (stats.quantile(q) - exact).abs().filled(0)
        error = stats.quantile_error(q).filled(0)
        assert (off <= error + 1e-12).all()
        stats = stats.refined(q).update(mt.as_masked_tensor(x, valid))
    assert not stats.quantile(q).get_mask()[-1]


def test_as_scikit_learns_scaler() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    x, valid = table(5, 1.0, 10.0)
    x[:, 1] = 3.0  # no deviation
    whole = np.where(valid.numpy(), x.numpy(), np.nan)[:, :-1]
    scaler, stats = preprocessing.StandardScaler(), mt.RunningStatistics(COLUMNS - 1, correction=0)
    for part in np.array_split(whole, 5):
        scaler.partial_fit(part)
        stats.update(mt.masked_invalid(torch.from_numpy(part.copy())))
    np.testing.assert_allclose(stats.mean.filled(0).numpy(), scaler.mean_, rtol=1e-12)
    np.testing.assert_allclose(stats.var.filled(0).numpy(), scaler.var_, rtol=1e-12, atol=1e-13)
    found = stats(mt.masked_invalid(torch.from_numpy(whole.copy())))
    np.testing.assert_allclose(found.filled(torch.nan).numpy(), scaler.transform(whole), rtol=1e-12, atol=1e-13)


def test_standardises_in_the_dtype_of_its_input() -> None:
    x = torch.randn(1000, 1, dtype=torch.float64) + 1e4
    stats = mt.RunningStatistics(1).update(x)
    exact = (x - x.mean(0)) / x.std(0, correction=0)
    single = stats(x.float())
    assert single.dtype is torch.float32
    torch.testing.assert_close(single.double(), exact, rtol=0, atol=2e-3)  # what float32 holds of x
    torch.testing.assert_close(stats(x), exact, rtol=1e-10, atol=1e-10)
    assert not mt.is_masked_tensor(stats(x))
    half = mt.RunningStatistics(2).update(mt.masked_tensor([[1.0, None]]))
    assert half(torch.tensor([[3, 3]])).tolist() == [[2.0, 3.0]]  # of the second nothing was seen
    y = x[:2].clone().requires_grad_()
    stats(y).sum().backward()
    assert y.grad.isfinite().all()


def test_the_device_is_asked_until_something_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    any_of = Tensor.any
    monkeypatch.setattr(Tensor, "any", lambda *args: asked.append(1) or any_of(*args))
    stats = mt.RunningStatistics(2)
    for row in ([[None, None]], [[None, 7.0]], [[1.0, 1.0]], [[2.0, 2.0]], [[3.0, 3.0]]):
        stats.update(mt.masked_tensor(row))
    stats(torch.ones(1, 2))
    assert len(asked) == 2


def test_state_travels() -> None:
    x, valid = table(6)
    stats = made().update(mt.as_masked_tensor(x, valid))
    model = nn.Sequential(nn.Linear(1, 1), stats)
    model.half().to("cpu", torch.bfloat16)
    assert {b.dtype for b in stats.buffers()} == {torch.float64}
    other = made()
    other.load_state_dict(stats.state_dict())
    file = io.BytesIO()
    torch.save(stats.state_dict(), file)
    file.seek(0)
    loaded = made()
    loaded.load_state_dict(torch.load(file))
    for copied in (other, loaded, copy.deepcopy(stats)):
        for name, value in read(stats).items():
            torch.testing.assert_close(read(copied)[name], value, rtol=0, atol=0, equal_nan=True)
    assert stats.reset().count.sum() == 0
    assert read(stats)["mean"].tolist() == read(made())["mean"].tolist()


def test_empty_batches_and_what_nobody_has() -> None:
    stats = made().update(torch.ones(0, COLUMNS))
    stats.update(mt.as_masked_tensor(torch.full((2, COLUMNS), torch.nan), torch.zeros(2, COLUMNS) > 0))
    assert (
        stats.mean.tolist() == stats.var.tolist() == stats.amin.tolist() == stats.quantile(0.5).tolist() == [None] * 4
    )
    assert stats.merge(made()).cov().count() == 0
    stats.update(torch.tensor([[1.0, torch.inf, torch.nan, 2.0]]))
    assert stats.mean.tolist()[:2] == [1.0, torch.inf]
    assert stats.mean.filled(0)[2].isnan()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extremes_are_found_whatever_their_signs(dtype: torch.dtype) -> None:
    """Each column has another mix of signs, zeros, infinities and NaN; what is masked is beyond all of them."""
    columns = torch.tensor(
        [[1, 2, 3], [-1, -2, -3], [0, 5, 0], [0, -5, 0], [-1, 0, 1], [torch.inf, 1, 2],
                            [-torch.inf, -1, 2], [torch.nan, 1, -1], [0, 0, 0], [torch.inf] * 3], dtype=dtype,
    )  # fmt: skip
    for hidden in (torch.nan, torch.inf, -torch.inf, 1e30, -1e30):
        rows = torch.cat([columns.T, torch.full((2, len(columns)), hidden, dtype=dtype)])
        valid = torch.arange(5).unsqueeze(1).expand(rows.shape) < 3
        for x, mask in ((rows, valid), (rows.T.contiguous().T, valid.T.contiguous().T), (columns.T, valid[:3])):
            stats = mt.RunningStatistics(len(columns)).update(mt.as_masked_tensor(x, mask))
            for found, wanted in ((stats.amin, columns.amin(1)), (stats.amax, columns.amax(1))):
                torch.testing.assert_close(found.filled(0), wanted.double(), rtol=0, atol=0, equal_nan=True)
    one_sided = mt.masked_tensor([[3.0, -3.0, None], [None, None, None]])
    stats = mt.RunningStatistics(3).update(one_sided)
    assert (stats.amin.tolist(), stats.amax.tolist()) == ([3.0, -3.0, None], [3.0, -3.0, None])


def test_no_device_is_waited_for() -> None:
    """A tensor without values has none to look at."""
    x, mask = torch.ones(5, 2, device="meta"), torch.ones(5, 2, dtype=torch.bool, device="meta")
    found = moments_of(x, mask, None)
    assert found.low.shape == found.squares.shape == (2,)


def test_a_distributed_checkpoint_keeps_them(tmp_path: Path) -> None:
    x, valid = table(8)
    stats, loaded = made().update(mt.as_masked_tensor(x, valid)), made()
    with alone():
        checkpoint.save({"stats": stats.state_dict()}, checkpoint_id=tmp_path)
        state = {"stats": loaded.state_dict()}
        checkpoint.load(state, checkpoint_id=tmp_path)
    loaded.load_state_dict(state["stats"])
    check(loaded, x, valid)
    check(loaded.merge(stats), torch.cat([x, x]), torch.cat([valid, valid]))


class Counted(IterableDataset[Any]):
    """Each worker adds up its part of the rows, and gives its statistics."""

    def __iter__(self) -> Iterator[mt.RunningStatistics]:
        x, valid = table(9)
        worker: Any = get_worker_info()
        rows = slice(worker.id, None, worker.num_workers)
        yield made().update(mt.as_masked_tensor(x[rows], valid[rows]))


def test_the_workers_of_a_loader_each_take_a_part() -> None:
    whole = made()
    for part in DataLoader(Counted(), batch_size=None, num_workers=2):
        whole.merge(part)
    check(whole, *table(9))


def test_as_a_metric_of_torchmetrics() -> None:
    """The class that docs/metrics.md shows: in a collection, with a value for each batch, merged over ranks."""
    torchmetrics = pytest.importorskip("torchmetrics")
    page = (Path(__file__).parent.parent / "docs" / "metrics.md").read_text()
    code = next(code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Columns" in code)
    names: dict[str, Any] = {"torchmetrics": torchmetrics, "mt": mt}
    exec(code.partition("\nmetrics =")[0], names)
    x, valid = table(10)
    metrics = torchmetrics.MetricCollection({"columns": names["Columns"](COLUMNS)})
    for rows in (slice(0, 9), slice(9, ROWS)):
        batch = mt.as_masked_tensor(x[rows], valid[rows])
        check(made().update(batch), x[rows], valid[rows])
        shown = metrics(batch)["columns"]
        torch.testing.assert_close(shown.count, valid[rows].sum(0).double())
    alike = mt.RunningStatistics(COLUMNS).update(mt.as_masked_tensor(x, valid))
    torch.testing.assert_close(metrics.compute()["columns"].mean, alike.mean, rtol=1e-12, atol=0)
    torch.testing.assert_close(metrics.clone().half().compute()["columns"].var, alike.var, rtol=1e-12, atol=0)
    metrics.reset()
    assert metrics["columns"].read(metrics["columns"].state).count.tolist() == [0] * COLUMNS
    one, other = (names["Columns"](COLUMNS) for _ in range(2))
    one.update(mt.as_masked_tensor(x[:3], valid[:3]))
    other.update(mt.as_masked_tensor(x[3:], valid[3:]))
    whole = one.read(one.merged(torch.stack([one.state, other.state])))  # as it is done for the states of ranks
    torch.testing.assert_close(whole.var, alike.var, rtol=1e-12, atol=0)


def refused_by_ranks(rank: int) -> list[str]:
    """What each rank is told where one of them made its statistics in another way, or has other columns."""
    last = rank == 2
    ways = [
        mt.RunningStatistics(2, edges=EDGES + last),
        mt.RunningStatistics(2, edges=EDGES[last:]),
        mt.RunningStatistics(2, cov=last),
        mt.RunningStatistics(2, correction=int(last)),
        mt.RunningStatistics(2 + last),
    ]
    named = mt.RunningStatistics(2)
    named.columns.copy_(torch.tensor([1.0, 2.0 + last]))
    found = []
    for stats in (*ways, named):
        try:
            stats.all_reduce()
        except ValueError as reason:
            found.append(str(reason).partition("differ in ")[2] or str(reason))
    return found


def on_ranks(rank: int, ranks: int, begun: dict[str, Any]) -> dict[str, Any]:
    """What each rank has of all, what DistributedDataParallel made of its own, and what it has after a restart."""
    x, valid = table(7)
    resumed = made()
    if rank == 0:  # the statistics of all ranks of another run go on with one of them
        resumed.load_state_dict(begun)
    resumed.update(mt.as_masked_tensor(x[rank::ranks], valid[rank::ranks]))
    rows = slice(0, 0) if rank == 0 else slice((rank - 1) * ROWS // (ranks - 1), rank * ROWS // (ranks - 1))
    stats = made().update(mt.as_masked_tensor(x[rows], valid[rows]))
    model = nn.Module()
    model.layer, model.stats = nn.Linear(COLUMNS, 1), stats
    model.forward = lambda x: model.layer(x)  # type: ignore[method-assign]
    wrapped = nn.parallel.DistributedDataParallel(model)
    wrapped(torch.ones(2, COLUMNS)).sum().backward()
    return {
        "own": stats.count,
        "refused": refused_by_ranks(rank),
        "all": stats.all_reduce().state_dict(),
        "valid": valid[rows].sum(0),
        "resumed": resumed.all_reduce().state_dict(),
    }


def test_ranks_one_of_which_has_nothing() -> None:
    begun = made().update(mt.as_masked_tensor(*table(8)))  # on one process; then on three, then on one
    found = gathered(3, on_ranks, begun.state_dict())
    for each in found:
        assert each["refused"] == [
            "edges", "edges", "cov", "correction", "features",
            "all_reduce() needs columns of the same names as before, in any order; got others",
        ]  # fmt: skip
        assert each["own"].tolist() == each["valid"].tolist()  # DistributedDataParallel left them alone
        stats = made()
        stats.load_state_dict(each["all"])
        check(stats, *table(7))
        torch.testing.assert_close(each["all"], found[0]["all"], rtol=0, atol=0, equal_nan=True)
    resumed = made()
    resumed.load_state_dict(found[1]["resumed"])
    with alone():
        check(made().update(mt.as_masked_tensor(*table(7))).all_reduce(), *table(7))
        resumed.update(mt.as_masked_tensor(*table(9)))
        tables = zip(table(8), table(7), table(9), strict=True)
        check(resumed.all_reduce(), *(torch.cat(parts) for parts in tables))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_autograd_tracks_is_standardised_alike(dtype: torch.dtype) -> None:
    x = mt.masked_tensor([[1.0, None, 4.0], [3.0, 7.0, None], [8.0, 1.0, 4.0]], dtype=dtype)
    stats = mt.RunningStatistics(3).update(x)
    tracked = x.clone().requires_grad_()
    found = stats(tracked)
    torch.testing.assert_close(found.detach(), stats(x))
    found.sum().backward()
    scale = x.double().std(0, correction=0)
    scale = torch.where(scale == 0, 1, scale).filled(1.0)
    expected = mt.as_masked_tensor((1 / scale).expand(3, 3).to(dtype), x.mask)
    torch.testing.assert_close(tracked.grad.filled(0), expected.filled(0))
