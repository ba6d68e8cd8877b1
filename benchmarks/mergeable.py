"""Statistics that add up, beside those of others: moments, quantiles, moments by group.

``python -m benchmarks.mergeable`` prints a line for each that is installed: processor seconds of one thread (of Spark
seconds) for columns in memory, of which 30 % is missing, how far the result is from the exact one, and what is
promised.  polars computes quantiles exactly, and nothing of its adds up; the states of the others do, but for those of
Spark and DuckDB, which stay inside.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import torch
from torch import Tensor

import masked_tensor as mt

os.environ.setdefault("POLARS_MAX_THREADS", "1")
PARTS = 64  #: in which a table comes
SHARE = 0.3  #: of nulls
LEVELS = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
GROUPS = 5_000

Found = tuple[float, Any]  # seconds, and what came out


def timed(call: Callable[[], Any], clock: Callable[[], float] = time.process_time, rounds: int = 3) -> Found:
    """The median of some rounds, in processor time."""
    spent = []
    for _ in range(rounds):
        start = clock()
        result = call()
        spent.append(clock() - start)
    return statistics.median(spent), result


def show(task: str, who: str, seconds: float, error: str, promised: str = "") -> None:
    print(f"| {task} | {who} | {seconds:.2f} | {error} | {promised} |", flush=True)


def table(x: Tensor, seen: Tensor, **others: Tensor) -> Any:
    """In Arrow, with nulls."""
    import pyarrow as pa

    columns = {f"c{i}": pa.array(v.numpy(), mask=~m.numpy()) for i, (v, m) in enumerate(zip(x.T, seen.T, strict=True))}
    return pa.table(columns | {name: pa.array(v.numpy()) for name, v in others.items()})


# ----------------------------------------------------------------------------------------------------------- moments


def moments(rows: int) -> None:
    """Variances of 8 columns about 1e6 with a deviation of 1, in float64."""
    x = torch.randn(rows, 8, dtype=torch.float64) + 1e6
    seen = torch.rand(x.shape) >= SHARE
    exact = torch.stack([column[there].var() for column, there in zip(x.T, seen.T, strict=True)])
    arrow, holes = table(x, seen), torch.where(seen, x, torch.nan)

    def ours() -> Tensor:
        stats = mt.RunningStatistics(8)
        for part in arrow.to_batches(rows // PARTS):
            stats.update(part)
        return stats.var.filled()

    calls: dict[str, Callable[[], Tensor]] = {"RunningStatistics": ours}
    if find_spec("sklearn"):
        from sklearn.preprocessing import StandardScaler

        def partial_fit() -> Tensor:
            scaler = StandardScaler()
            for part in holes.chunk(PARTS):
                scaler.partial_fit(part.numpy())
            return torch.from_numpy(scaler.var_ * scaler.n_samples_seen_ / (scaler.n_samples_seen_ - 1))

        calls["scikit-learn, partial_fit, NaN"] = partial_fit
    if find_spec("torchmetrics"):
        from torchmetrics import MeanMetric

        def metrics() -> Tensor:
            """Two a column: it has no variance; of squares, so that digits are lost."""
            means = [(MeanMetric("ignore"), MeanMetric("ignore")) for _ in range(8)]
            for part in holes.chunk(PARTS):
                for (mean, square), column in zip(means, part.T, strict=True):
                    mean.set_dtype(torch.float64).update(column)
                    square.set_dtype(torch.float64).update(column.square())
            return torch.stack([square.compute() - mean.compute().square() for mean, square in means])

        calls["torchmetrics, MeanMetric of x and x²"] = metrics
    if find_spec("polars"):
        import polars as pl

        frame = pl.from_arrow(arrow)
        lazy = frame.lazy().select(pl.all().var())
        calls["polars"] = lambda: torch.tensor(lazy.collect(engine="streaming").row(0), dtype=torch.float64)
    if find_spec("duckdb"):
        base = quack(arrow)
        asked = ", ".join(f"var_samp(c{i})" for i in range(8))
        query = f"select {asked} from arrow"
        calls["DuckDB"] = lambda: torch.tensor(base.sql(query).fetchall()[0], dtype=torch.float64)
    for name, call in calls.items():
        seconds, found = timed(call)
        show("variance", name, seconds, f"{((found - exact) / exact).abs().max():.0e} of it")


def quack(arrow: Any) -> Any:
    import duckdb

    base = duckdb.connect(config={"threads": 1})
    base.register("arrow", arrow)
    return base


# --------------------------------------------------------------------------------------------------------- quantiles

KINDS: dict[str, Callable[[int], Tensor]] = {
    "normal": lambda n: torch.randn(n),
    "lognormal": lambda n: torch.randn(n).mul(3).exp(),
    "sorted": lambda n: torch.randn(n).sort().values,
    "few values": lambda n: torch.randint(20, (n,)).float(),
}


def worst(found: Tensor, ordered: Tensor) -> float:
    """By how many ranks, as a share of all, the quantiles at ``LEVELS`` are off."""
    n, found = len(ordered), found.to(ordered.dtype)
    low, high = (torch.searchsorted(ordered, found, right=right) / n for right in (False, True))
    return float(torch.maximum(low - LEVELS, LEVELS - high).clamp_min(0).max())


def quantiles(rows: int) -> None:
    for kind, draw in KINDS.items():
        x = draw(rows)
        seen = torch.rand(x.shape) >= SHARE
        ordered, arrow = x[seen].sort().values.double(), table(x[:, None], seen[:, None])
        stats = mt.RunningStatistics(1, sketch=True)

        def ours(arrow: Any = arrow, stats: mt.RunningStatistics = stats) -> Tensor:
            stats.reset()
            for part in arrow.to_batches(rows // PARTS):
                stats.update(part)
            return stats.quantile(LEVELS).filled()[:, 0]

        seconds, found = timed(ours)
        promised = f"{float(stats.rank_error().filled()):.1e}, always"
        show(kind, "RunningStatistics", seconds, f"{worst(found, ordered):.1e}", promised)
        for name, (call, promised) in quantile_peers(arrow).items():
            seconds, found = timed(call, time.perf_counter if name.startswith("Spark") else time.process_time)
            show(kind, name, seconds, f"{worst(torch.as_tensor(found).double(), ordered):.1e}", promised)


def quantile_peers(arrow: Any) -> dict[str, tuple[Callable[[], Any], str]]:
    column, levels = arrow["c0"], LEVELS.tolist()
    found: dict[str, tuple[Callable[[], Any], str]] = {}

    def sketched(make: Callable[[], Any]) -> Any:
        sketch = make()
        for part in parts():
            sketch.update(part)
        return sketch.get_quantiles(levels)

    def parts() -> list[Any]:
        size = -(-len(column) // PARTS)
        return [
            column.slice(at, size).combine_chunks().drop_null().to_numpy(zero_copy_only=False, writable=True)
            for at in range(0, len(column), size)
        ]

    if find_spec("datasketches"):
        import datasketches as ds

        found["datasketches, KLL of 1,000"] = (lambda: sketched(lambda: ds.kll_floats_sketch(1000)), "2.6e-03, 99 %")
        found["datasketches, REQ of 50"] = (lambda: sketched(lambda: ds.req_floats_sketch(50)), "relative to the end")
    if find_spec("duckdb"):
        base = quack(arrow)
        asked = f"select approx_quantile(c0, {levels}) from arrow"
        found["DuckDB, approx_quantile"] = (lambda: base.sql(asked).fetchall()[0][0], "none (t-digest)")
    if find_spec("polars"):
        import polars as pl

        lazy = pl.from_arrow(arrow).lazy().select(pl.col("c0").quantile(q).alias(str(q)) for q in levels)
        found["polars, exact"] = (lambda: lazy.collect(engine="streaming").row(0), "exact")
    if find_spec("pyspark") and which("java"):
        found["Spark, approx_percentile"] = (lambda: spark(arrow, levels), "1.0e-04, always")
    return found


def spark(arrow: Any, levels: list[float]) -> Any:
    """From Parquet, with the default accuracy of 10,000."""
    from pyarrow import parquet
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        parquet.write_table(arrow, path)
        asked = f"approx_percentile(c0, array({', '.join(map(str, levels))}))"
        return session.read.parquet(str(path)).selectExpr(asked).collect()[0][0]


# ------------------------------------------------------------------------------------------------------------ groups


def groups(rows: int) -> None:
    """Means of 8 columns for each of 5,000 keys."""
    x, key = torch.randn(rows, 8), torch.randint(GROUPS, (rows,))
    seen = torch.rand(x.shape) >= SHARE
    arrow = table(x, seen, key=key)
    names = [f"c{i}" for i in range(8)]
    many, sums = (torch.zeros(GROUPS, 8, dtype=torch.float64) for _ in range(2))
    exact = sums.index_add_(0, key, torch.where(seen, x, 0).double()) / many.index_add_(0, key, seen.double())

    def ours() -> Tensor:
        stats = mt.RunningStatistics(columns=names)
        for part in arrow.to_batches(rows // PARTS):
            stats.update(part, group="key")
        return stats.mean.filled()

    calls: dict[str, Callable[[], Tensor]] = {"RunningStatistics": ours}
    if find_spec("polars"):
        import polars as pl

        mean, var = pl.col(names).mean(), pl.col(names).var().name.suffix(" var")
        lazy = pl.from_arrow(arrow).lazy().group_by("key").agg(mean, var)
        calls["polars, mean and var"] = lambda: lazy.collect(engine="streaming").sort("key").select(names).to_torch()
    if find_spec("pandas"):
        frame = arrow.to_pandas()

        def pandas() -> Tensor:
            by = frame.groupby("key")[names].agg(["mean", "var"])
            return torch.from_numpy(by.xs("mean", axis=1, level=1).to_numpy(copy=True))

        calls["pandas, mean and var"] = pandas
    if find_spec("duckdb"):
        base = quack(arrow)
        asked = ", ".join(f"{f}({name})" for f in ("avg", "var_samp") for name in names)
        query = f"select {asked} from arrow group by key order by key"
        calls["DuckDB, mean and var"] = lambda: torch.tensor(base.sql(query).fetchall(), dtype=torch.float64)[:, :8]
    for name, call in calls.items():
        seconds, found = timed(call)
        show(f"{GROUPS:,} groups", name, seconds, f"{(found - exact).abs().max():.0e}")


TASKS = {"moments": moments, "quantiles": quantiles, "groups": groups}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tasks", nargs="*", help="all, or some: " + ", ".join(TASKS))
    parser.add_argument("--rows", type=int, default=4_000_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| task | who | seconds | error | promised |\n|---|---|---:|---:|---|")
    for name in options.tasks or TASKS:
        TASKS[name](options.rows)


if __name__ == "__main__":
    main()
