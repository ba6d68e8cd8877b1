"""The engines that people keep tables in, each on this machine: ``python -m tests.engines`` prints engine by task.

Each reads a folder of Parquet files (holes, a wholly null column, an empty file, columns in other orders, texts beside
numbers), and its result is compared with that of all rows in one table, or of pandas.  ``python -m tests.engines polars
dask`` runs some.  An engine that is not installed is left out, with the reason.
"""

import functools
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt

from .helpers.ranks import gathered

ROWS, NAMES = 6000, ["a", "b", "void"]
READ = ["row", "key", *NAMES]
Table = Any  # of pyarrow
OfTable = Callable[[Table], Table]


def write(folder: str) -> Table:
    """The files, and all rows of them in one table."""
    import pyarrow as pa
    from pyarrow import parquet

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 2, generator=generator, dtype=torch.float64) * torch.tensor([1.0, 1e3]) + torch.tensor(
        [0.0, 1e6]
    )
    hole = torch.rand(ROWS, 2, generator=generator) < 0.3
    a, b = (pa.array(values.tolist(), mask=masked.numpy()) for values, masked in zip(x.T, hole.T, strict=True))
    keys = torch.randint(40, (ROWS,), generator=generator).tolist()
    table = pa.table({"text": ["x"] * ROWS, "b": b, "a": a, "void": pa.nulls(ROWS, pa.float64()), "key": keys})
    table = table.append_column("row", pa.array(range(ROWS)))
    for i, start in enumerate(range(0, ROWS, ROWS // 4)):
        order = ["void", "a", "text", "row", "b", "key"] if i % 2 else table.column_names
        parquet.write_table(table.slice(start, ROWS // 4).select(order), f"{folder}/{i}.parquet")
    parquet.write_table(table[:0], f"{folder}/empty.parquet")
    return table


# -------------------------------------------------------------------------------------------------------- the engines
# Each has two functions: the rows that ``function`` gives for the parts of a table, and the same, written to a folder.


@dataclass(frozen=True)
class Engine:
    """How an engine applies a function of an Arrow table to each part of the files in a folder."""

    rows: Callable[[str, OfTable, str], Table]  #: all results, as one table; the schema is in Spark's words
    write: Callable[[str, OfTable, str, str], None]  #: the results as Parquet files in another folder


def _whole(parts: Iterable[Table]) -> Table:
    import pyarrow as pa

    return pa.concat_tables([pa.table(part) for part in parts])


def _files(parts: Iterable[Table], out: str) -> None:
    from pyarrow import parquet

    for i, part in enumerate(parts):
        parquet.write_table(part, f"{out}/{i}.parquet")


def _in_arrow(function: OfTable) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For an engine that gives record batches, and takes them back."""

    def mapped(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            yield from function(pa.Table.from_batches([batch])).to_batches()

    return mapped


def _polars(folder: str, function: OfTable) -> Iterator[Table]:
    import polars as pl

    for path in sorted(Path(folder).glob("*.parquet")):
        for frame in pl.scan_parquet(path).collect_batches(chunk_size=1000, maintain_order=True):
            yield function(frame.to_arrow())


def _duckdb(folder: str, function: OfTable) -> Iterator[Table]:
    import duckdb
    import pyarrow as pa

    query = f"select * from read_parquet('{folder}/*.parquet', union_by_name=true)"
    for batch in duckdb.sql(query).to_arrow_reader(1000):
        yield function(pa.Table.from_batches([batch]))


def _dask(folder: str, function: OfTable) -> list[Any]:
    import dask
    import pyarrow as pa
    from dask import dataframe

    frame = dataframe.read_parquet(folder, dtype_backend="pyarrow", columns=READ)
    of_frame = dask.delayed(lambda part: function(pa.Table.from_pandas(part, preserve_index=False)))
    return [of_frame(part) for part in frame.to_delayed()]


def _dask_rows(folder: str, function: OfTable, _: str) -> Table:
    import dask

    return _whole(dask.compute(*_dask(folder, function)))


def _dask_write(folder: str, function: OfTable, _: str, out: str) -> None:
    import dask
    from pyarrow import parquet

    parts = _dask(folder, function)
    dask.compute(*(dask.delayed(parquet.write_table)(part, f"{out}/{i}.parquet") for i, part in enumerate(parts)))


def _datasets(folder: str, function: OfTable) -> Any:
    import datasets

    datasets.disable_progress_bars()
    files = sorted(map(str, Path(folder).glob("[0-9].parquet")))
    data = datasets.Dataset.from_parquet(files, cache_dir=tempfile.mkdtemp()).with_format("arrow")
    return data.map(function, batched=True, remove_columns=data.column_names, load_from_cache_file=False)


@functools.cache
def _sorted_by_spark(folder: str) -> Any:
    """The rows in order, in partitions that stay the same: without, each pass would cut them in its own way."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.sql.shuffle.partitions", 4).config("spark.sql.adaptive.enabled", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark.read.parquet(folder).select(*READ).orderBy("row").cache()


def _spark(folder: str, function: OfTable, schema: str) -> Any:
    return _sorted_by_spark(folder).mapInArrow(_in_arrow(function), schema)


@functools.cache
def _sorted_by_ray(folder: str) -> Any:
    """The rows in order, in blocks that stay the same."""
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray.data.read_parquet(folder, columns=READ, override_num_blocks=4).sort("row").materialize()


def _ray(folder: str, function: OfTable) -> Any:
    return _sorted_by_ray(folder).map_batches(function, batch_format="pyarrow", batch_size=None)


def _ray_rows(folder: str, function: OfTable, _: str) -> Table:
    import ray

    return _whole(ray.get(_ray(folder, function).to_arrow_refs()))


ENGINES = {
    "polars": Engine(lambda f, g, _: _whole(_polars(f, g)), lambda f, g, _, out: _files(_polars(f, g), out)),
    "duckdb": Engine(lambda f, g, _: _whole(_duckdb(f, g)), lambda f, g, _, out: _files(_duckdb(f, g), out)),
    "dask": Engine(_dask_rows, _dask_write),
    "datasets": Engine(
        lambda f, g, _: _datasets(f, g)[:], lambda f, g, _, out: _datasets(f, g).to_parquet(f"{out}/0.parquet")
    ),
    "pyspark": Engine(
        lambda f, g, schema: _spark(f, g, schema).toArrow(),
        lambda f, g, schema, out: _spark(f, g, schema).write.mode("overwrite").parquet(out),
    ),
    "ray": Engine(_ray_rows, lambda f, g, _, out: _ray(f, g).write_parquet(out)),
}


def why_not(name: str) -> str:
    """Why an engine cannot run here; empty where it can."""
    if find_spec(name) is None or find_spec("pyarrow") is None:
        return f"{name} is not installed"
    return "there is no Java" if name == "pyspark" and which("java") is None else ""


# ---------------------------------------------------------------------------------------------------------- the tasks


def fit(**options: Any) -> OfTable:
    """Of a part the state of its statistics, as a table of one row."""

    def state(part: Table) -> Table:
        import pyarrow as pa

        return pa.table(mt.RunningStatistics(columns=NAMES, **options).update(part).to_arrow())

    return state


def statistics(engine: Engine, folder: str, **options: Any) -> mt.RunningStatistics:
    """All that the engine has seen."""
    return mt.RunningStatistics.from_arrow(engine.rows(folder, fit(**options), mt.RunningStatistics.SCHEMA))


def moments(engine: Engine, folder: str, table: Table) -> str:
    """Beside one pass over one table."""
    found, wanted = statistics(engine, folder, cov=True), mt.RunningStatistics(columns=NAMES, cov=True).update(table)
    for name in ("count", "missing", "mean", "var", "amin", "amax"):
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-12, atol=1e-9, msg=name)
    torch.testing.assert_close(found.cov(), wanted.cov(), rtol=1e-10, atol=1e-9)
    frame = table.select(["a", "b"]).to_pandas()
    torch.testing.assert_close(found.mean.filled(0)[:2], torch.tensor(frame.mean().to_numpy()), rtol=1e-12, atol=1e-9)
    torch.testing.assert_close(found.cov().filled(0)[:2, :2], torch.tensor(frame.cov().to_numpy()), rtol=1e-9, atol=0)
    return "exact to 1e-12"


def quantiles(engine: Engine, folder: str, table: Table) -> str:
    """Within what the sketch promises; and what it promises."""
    found, x = statistics(engine, folder, sketch=256), mt.masked_tensor(table.select(NAMES))
    for q in (0.0, 0.01, 0.25, 0.5, 0.9, 1.0):
        off = (found.quantile(q) - mt.nanquantile(x, q, 0)).abs().filled(0)
        assert (off <= found.quantile_error(q).filled(0) * (1 + 1e-9)).all(), q
    return f"off by {found.rank_error().filled(0).amax():.4f} of the ranks at most"


WRITTEN = "row bigint, a double, b double, void double"


def _rows(part: Table, x: torch.Tensor) -> Table:
    """The columns of ``x`` beside the number of each row."""
    import pyarrow as pa

    return pa.table(mt.to_arrow(x, NAMES)).add_column(0, "row", part["row"])


def _read(out: str) -> Any:
    """What was written, in the order of the rows, as a frame of pandas."""
    from pyarrow import dataset

    frame = dataset.dataset(out, format="parquet").to_table().to_pandas().sort_values("row")
    assert frame["row"].tolist() == list(range(ROWS))
    return frame[["a", "b"]].reset_index(drop=True), frame["void"]


def scaled(engine: Engine, folder: str, out: str) -> None:
    """The columns standardised, written as Parquet files."""
    stats = statistics(engine, folder)
    engine.write(folder, lambda part: _rows(part, stats(part)), WRITTEN, out)


def standardise(engine: Engine, folder: str, table: Table) -> str:
    """Beside pandas, on the whole; nulls stay nulls."""
    with tempfile.TemporaryDirectory() as out:
        scaled(engine, folder, out)
        found, void = _read(out)
    frame = table.select(["a", "b"]).to_pandas()
    assert void.isna().all()
    off = (found - (frame - frame.mean()) / frame.std(ddof=0)).abs()
    assert (found.isna() == frame.isna()).all(axis=None)
    assert off.max(axis=None) < 1e-9, off.max()
    return f"off by {off.max(axis=None):.0e} at most"


def fill(engine: Engine, folder: str, table: Table) -> str:
    """Within each key and over the borders of parts, beside ``groupby(key).ffill(limit=5)`` of pandas on the whole."""
    before: dict[float, mt.LastValid] = {}

    def first(part: Table) -> float:
        return part["row"][0].as_py() if len(part) else -1 - len(part)

    def left(part: Table) -> Table:
        import pyarrow as pa

        rows = pa.table(mt.LastValid(NAMES, limit=5).update(part, group="key").to_arrow(first(part)))
        return rows if len(part) else rows[:0]

    def filled(part: Table) -> Table:
        return _rows(
            part, before[first(part)](part, group="key") if len(part) else mt.masked_tensor(part.select(NAMES))
        )

    with tempfile.TemporaryDirectory() as out:
        before |= mt.LastValid.before(engine.rows(folder, left, mt.LastValid.SCHEMA))
        engine.write(folder, filled, WRITTEN, out)
        found, void = _read(out)
    frame = table.select(["key", "a", "b"]).to_pandas()
    assert void.isna().all()
    assert found.equals(frame.groupby("key")[["a", "b"]].ffill(limit=5))
    assert len(before) > 1
    return f"exact, {len(before)} parts"


def _trained(rank: int, ranks: int, out: str) -> list[float]:
    """The weights after a few steps on what was standardised, each rank with its own rows."""
    x = mt.masked_invalid(torch.tensor(_read(out)[0].to_numpy())[rank::ranks])
    model = nn.Linear(1, 1).double()
    model.load_state_dict({"weight": torch.full((1, 1), 0.5), "bias": torch.zeros(1)})
    spread = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    for _ in range(4):
        optimizer.zero_grad()
        with mt.mean_over():
            F.mse_loss(spread(x[:, :1]), x[:, 1:]).backward()
        optimizer.step()
    return [p.item() for p in model.parameters()]


def train(engine: Engine, folder: str, table: Table) -> str:
    """On two ranks, from the standardised files; beside descent by hand on the rows that have both values."""
    with tempfile.TemporaryDirectory() as out:
        scaled(engine, folder, out)
        found = gathered(2, _trained, out)
        x, y = _read(out)[0].dropna().to_numpy().T
    weight, bias = 0.5, 0.0
    for _ in range(4):
        off = weight * x + bias - y
        weight, bias = weight - 0.6 * (off * x).mean(), bias - 0.6 * off.mean()
    for rank in found:
        assert max(abs(rank[0] - weight), abs(rank[1] - bias)) < 1e-12
        assert rank == found[0]
    return "two ranks as by hand"


TASKS = {"moments": moments, "quantiles": quantiles, "standardise": standardise, "fill": fill, "train": train}


def main() -> int:
    names, failed = sys.argv[1:] or list(ENGINES), 0
    with tempfile.TemporaryDirectory() as folder:
        table = write(folder)
        for name in names:
            for task, check in TASKS.items():
                start = time.perf_counter()
                try:
                    said = why_not(name) or check(ENGINES[name], folder, table)
                except Exception:
                    said, failed = f"FAILED\n{traceback.format_exc()}", failed + 1
                print(f"{name:10} {task:12} {said} ({time.perf_counter() - start:.1f} s)", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
