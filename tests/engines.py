"""The engines that people keep tables in, each on this machine: ``python -m tests.engines`` prints engine by task.

Each reads a folder of Parquet files (holes, a wholly null column, an empty file, columns in other orders, texts beside
numbers) and gives states that travel as rows; the result is compared with all rows in one table.  ``python -m
tests.engines polars dask`` runs some.  An engine that is not installed is left out, with the reason.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import torch

import masked_tensor as mt

ROWS, NAMES = 6000, ["a", "b", "void"]
Options = dict[str, Any]


def write(folder: str) -> Any:
    """The files, and all rows of them in one table."""
    import pyarrow as pa
    from pyarrow import parquet

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 2, generator=generator, dtype=torch.float64) * torch.tensor([1.0, 1e3]) + torch.tensor(
        [0.0, 1e6]
    )
    hole = torch.rand(ROWS, 2, generator=generator) < 0.3
    a, b = (pa.array(values.tolist(), mask=masked.numpy()) for values, masked in zip(x.T, hole.T, strict=True))
    table = pa.table({"text": ["x"] * ROWS, "b": b, "a": a, "void": pa.nulls(ROWS, pa.float64())})
    for i, start in enumerate(range(0, ROWS, ROWS // 4)):
        order = ["void", "a", "text", "b"] if i % 2 else table.column_names
        parquet.write_table(table.slice(start, ROWS // 4).select(order), f"{folder}/{i}.parquet")
    parquet.write_table(table[:0], f"{folder}/empty.parquet")
    return table


def fit(options: Options) -> Callable[[Any], Any]:
    """Of a batch the state of its statistics, as a table of one row."""

    def state(batch: Any) -> Any:
        import pyarrow as pa

        return pa.table(mt.RunningStatistics(columns=NAMES, **options).update(batch).to_arrow())

    return state


def polars(folder: str, options: Options) -> mt.RunningStatistics:
    import polars as pl

    stats = mt.RunningStatistics(columns=NAMES, **options)
    for path in sorted(Path(folder).glob("*.parquet")):
        for frame in pl.scan_parquet(path).collect_batches():
            stats.update(frame)
    return stats


def duckdb(folder: str, options: Options) -> mt.RunningStatistics:
    import duckdb

    stats = mt.RunningStatistics(columns=NAMES, **options)
    for batch in duckdb.sql(f"select * from read_parquet('{folder}/*.parquet', union_by_name=true)").to_arrow_reader(
        1000
    ):
        stats.update(batch)
    return stats


def dask(folder: str, options: Options) -> mt.RunningStatistics:
    import dask
    import pyarrow as pa
    from dask import dataframe

    frame = dataframe.read_parquet(folder, dtype_backend="pyarrow", columns=NAMES)
    rows = dask.compute(*map(dask.delayed(fit(options)), frame.to_delayed()))
    return mt.RunningStatistics.from_arrow(pa.concat_tables(rows))


def datasets(folder: str, options: Options) -> mt.RunningStatistics:
    import datasets

    datasets.disable_progress_bars()
    files = sorted(map(str, Path(folder).glob("[0-9].parquet")))
    data = datasets.Dataset.from_parquet(files, cache_dir=tempfile.mkdtemp()).with_format("arrow")
    rows = data.map(fit(options), batched=True, remove_columns=data.column_names)
    return mt.RunningStatistics.from_arrow(rows[:])


def pyspark(folder: str, options: Options) -> mt.RunningStatistics:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    stats = mt.RunningStatistics(columns=NAMES, **options)
    rows = spark.read.parquet(folder).mapInArrow(stats.map_batches, stats.SCHEMA).toArrow()
    return mt.RunningStatistics.from_arrow(rows)


def ray(folder: str, options: Options) -> mt.RunningStatistics:
    import pyarrow as pa
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", ignore_reinit_error=True)
    rows = ray.data.read_parquet(folder, columns=NAMES).map_batches(fit(options), batch_format="pyarrow")
    return mt.RunningStatistics.from_arrow(pa.concat_tables(ray.get(rows.to_arrow_refs())))


ENGINES = {engine.__name__: engine for engine in (polars, duckdb, dask, datasets, pyspark, ray)}


def why_not(name: str) -> str:
    """Why an engine cannot run here; empty where it can."""
    if find_spec(name) is None or find_spec("pyarrow") is None:
        return f"{name} is not installed"
    return "there is no Java" if name == "pyspark" and which("java") is None else ""


def moments(run: Callable[[str, Options], mt.RunningStatistics], folder: str, table: Any) -> str:
    """Beside one pass over one table."""
    found, wanted = run(folder, {"cov": True}), mt.RunningStatistics(columns=NAMES, cov=True).update(table)
    for name in ("count", "missing", "mean", "var", "amin", "amax"):
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-12, atol=1e-9, msg=name)
    torch.testing.assert_close(found.cov(), wanted.cov(), rtol=1e-10, atol=1e-9)
    return "exact to 1e-12"


def quantiles(run: Callable[[str, Options], mt.RunningStatistics], folder: str, table: Any) -> str:
    """Within what the sketch promises; and what it promises."""
    found, x = run(folder, {"sketch": 256}), mt.masked_tensor(table.select(NAMES))
    for q in (0.0, 0.01, 0.25, 0.5, 0.9, 1.0):
        off = (found.quantile(q) - mt.nanquantile(x, q, 0)).abs().filled(0)
        assert (off <= found.quantile_error(q).filled(0) * (1 + 1e-9)).all(), q
    return f"off by {found.rank_error().filled(0).amax():.4f} of the ranks at most"


TASKS = {"moments": moments, "quantiles": quantiles}


def main() -> None:
    names = sys.argv[1:] or list(ENGINES)
    with tempfile.TemporaryDirectory() as folder:
        table = write(folder)
        for name in names:
            for task, check in TASKS.items():
                start = time.perf_counter()
                said = why_not(name) or check(ENGINES[name], folder, table)
                print(f"{name:10} {task:10} {said} ({time.perf_counter() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
