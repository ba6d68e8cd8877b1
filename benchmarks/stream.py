"""A table that is larger than memory: four passes over a Parquet file, masked, with NaN by hand and by engines.

``python -m benchmarks.stream`` makes a table of 16.8 million rows and 64 columns, 30 % of it null, in row groups (3 GB
in a folder of its own, removed afterwards), and reads it batch by batch.  ``--share 0.1`` makes a tenth of it.  The
passes: statistics of each column, its quantiles, its standardised values written as Parquet, an epoch of training.
The candidates take turns, batch after batch, in one process; polars and DuckDB, which read the file themselves, have a
process of their own.  The times are processor time.  The peak of memory is that of a process of its own for each.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import masked_tensor as mt

ROWS, COLUMNS, GROUP, BATCH = 1 << 24, 64, 1 << 16, 1 << 12
SHARE = 0.3  #: of nulls
NAMES = [f"c{i}" for i in range(COLUMNS)]
SKETCH = 1000  #: of datasketches: a rank is off by at most 0.0026, 99 times of 100
GOALS = {"fit": 0.8, "quantiles": None, "standardise": 1.0, "epoch": 1.05}
MOST = 2048  #: MiB of memory that a pass may take
QUANTILES = [0.01, 0.25, 0.5, 0.75, 0.99]

Step = Callable[[Any], object]


def write(path: Path, rows: int) -> None:
    """Normal numbers about 10 times the column, row group by row group."""
    import pyarrow as pa
    from pyarrow import parquet

    generator = torch.Generator().manual_seed(0)
    names = NAMES[:COLUMNS]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(0, rows, GROUP):
            data = torch.randn(COLUMNS, GROUP, generator=generator) + 10 * torch.arange(COLUMNS).unsqueeze(1)
            null = torch.rand(COLUMNS, GROUP, generator=generator) < SHARE
            columns = [pa.array(x.numpy(), mask=m.numpy()) for x, m in zip(data, null, strict=True)]
            writer.write_table(pa.table(columns, names=names), row_group_size=GROUP)


def batches(path: Path) -> Iterator[Any]:
    """The row groups, each as a record batch; none is read before it is asked for, so that few are in memory."""
    from pyarrow import parquet

    yield from parquet.ParquetFile(path, pre_buffer=False).iter_batches(batch_size=GROUP, use_threads=False)


def with_nan(batch: Any) -> Tensor:
    """What one writes without masks: nulls become NaN, and the columns are put side by side."""
    return torch.stack([torch.from_numpy(column.to_numpy(zero_copy_only=False)) for column in batch.columns]).T


class ByHand:
    """Count, mean, variance and extremes of columns with NaN, merged over batches."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares = torch.zeros(3, COLUMNS, dtype=torch.float64)
        self.low, self.high = torch.full((COLUMNS,), torch.inf), torch.full((COLUMNS,), -torch.inf)

    def update(self, x: Tensor) -> None:
        seen = ~x.isnan()
        count = seen.sum(0).double()
        mean = x.double().nansum(0) / count
        squares = (x - mean).square().nansum(0)
        whole, away = self.count + count, mean - self.mean
        self.squares += squares + away.square() * self.count * count / whole
        self.mean += away * count / whole
        self.count = whole
        self.low = torch.minimum(self.low, x.nan_to_num(nan=torch.inf).amin(0))
        self.high = torch.maximum(self.high, x.nan_to_num(nan=-torch.inf).amax(0))


def fits(_: Path) -> dict[str, Step]:
    """One pass for the statistics of each column."""
    ours, theirs = mt.RunningStatistics(COLUMNS), ByHand()
    return {
        "scan": lambda batch: batch.num_rows,
        "by hand": lambda batch: theirs.update(with_nan(batch)),
        "masked": lambda batch: ours.update(mt.masked_tensor(batch)),
    }


def quantiles(_: Path) -> dict[str, Step]:
    """One pass for a sketch of each column, whose ranks are off by at most about 0.003 in both."""
    import datasketches

    ours = mt.RunningStatistics(COLUMNS, sketch=True)
    theirs = [datasketches.kll_floats_sketch(SKETCH) for _ in range(COLUMNS)]

    def by_kll(batch: Any) -> None:
        for sketch, column in zip(theirs, batch.columns, strict=True):
            sketch.update(column.drop_null().to_numpy(writable=True, zero_copy_only=False))

    return {
        "scan": lambda batch: batch.num_rows,
        "datasketches": by_kll,
        "masked": lambda batch: ours.update(mt.masked_tensor(batch)),
    }


def standardise(folder: Path) -> dict[str, Step]:
    """One pass that writes each column less its mean over its deviation as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    stats = known()
    mean, scale = stats.mean.filled(0).float(), stats.std.filled(1).float()
    schema = pa.schema([(name, pa.float32()) for name in NAMES])
    files = {
        name: parquet.ParquetWriter(folder / f"{name}.parquet", schema, compression="none", use_dictionary=False)
        for name in ("by hand", "masked")
    }

    def by_hand(batch: Any) -> None:
        x = (with_nan(batch) - mean) / scale
        columns = [pa.array(column.numpy(), from_pandas=True) for column in x.T]  # NaN is a null
        files["by hand"].write_batch(pa.record_batch(columns, schema))

    def masked(batch: Any) -> None:
        x = stats(mt.masked_tensor(batch)).float()
        files["masked"].write_table(pa.table(mt.to_arrow(x, NAMES)))

    return {"scan": lambda batch: batch.num_rows, "by hand": by_hand, "masked": masked}


def known() -> mt.RunningStatistics:
    """About the statistics of the table."""
    return mt.RunningStatistics(COLUMNS).update(torch.randn(1000, COLUMNS) + 10 * torch.arange(COLUMNS))


def epochs(_: Path) -> dict[str, Step]:
    """One pass of training: each column is predicted from all, where it is there."""
    stats = known()
    mean, scale = stats.mean.filled(0).float(), stats.std.filled(1).float()
    models = {}
    for name in ("by hand", "masked"):
        torch.manual_seed(0)
        models[name] = nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, COLUMNS))
    optimizers = {name: torch.optim.SGD(model.parameters(), 0.1) for name, model in models.items()}

    def finish(name: str, loss: Tensor) -> None:
        optimizers[name].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizers[name].step()

    def by_hand(batch: Any) -> None:
        for x in ((with_nan(batch) - mean) / scale).contiguous().split(BATCH):  # rows lie together
            seen = ~x.isnan()
            known = x.nan_to_num(nan=0.0)
            squares = torch.where(seen, models["by hand"](known) - known, 0).square()
            finish("by hand", squares.sum() / seen.sum())

    def masked(batch: Any) -> None:
        for x in stats(mt.masked_tensor(batch)).contiguous().split(BATCH):
            finish("masked", F.mse_loss(models["masked"](x.filled(0)), x))

    return {"scan": lambda batch: batch.num_rows, "by hand": by_hand, "masked": masked}


WORK = {"fit": fits, "quantiles": quantiles, "standardise": standardise, "epoch": epochs}


def polars_engine(path: Path, work: str) -> None:
    import polars as pl

    every, table = pl.all(), pl.scan_parquet(path)
    if work == "fit":
        names = {
            "count": every.count(),
            "mean": every.mean(),
            "var": every.var(),
            "low": every.min(),
            "top": every.max(),
        }
        table.select(x.name.suffix(f" {name}") for name, x in names.items()).collect(engine="streaming")
    elif work == "quantiles":
        table.select(every.quantile(q).name.suffix(f" {q}") for q in QUANTILES).collect(engine="streaming")
    else:
        mean, scale = (x.filled().float().tolist() for x in (known().mean, known().std))
        scaled = [(pl.col(name) - mean[i]) / scale[i] for i, name in enumerate(NAMES)]
        table.select(scaled).sink_parquet(path.with_name("polars.parquet"), compression="uncompressed")


def duckdb_engine(path: Path, work: str) -> None:
    import duckdb

    base = duckdb.connect(config={"threads": 1, "memory_limit": "1GB"})
    if work == "fit":
        asked = [f"{f}({c})" for c in NAMES for f in ("count", "avg", "var_samp", "min", "max")]
        base.sql(f"select {', '.join(asked)} from '{path}'").fetchall()
    elif work == "quantiles":
        base.sql(f"select {', '.join(f'approx_quantile({c}, {QUANTILES})' for c in NAMES)} from '{path}'").fetchall()
    else:
        mean, scale = (x.filled().float().tolist() for x in (known().mean, known().std))
        scaled = ", ".join(f"(({c} - {mean[i]}) / {scale[i]})::float as {c}" for i, c in enumerate(NAMES))
        written = path.with_name("duckdb.parquet")
        base.sql(f"copy (select {scaled} from '{path}') to '{written}' (compression uncompressed)")


ENGINES = {"polars": polars_engine, "DuckDB": duckdb_engine}  #: one thread; no epochs


def times(path: Path, work: str) -> dict[str, float]:
    """Processor seconds of each candidate, reading included."""
    steps = WORK[work](path.parent)
    readers = {name: batches(path) for name in steps}
    seconds = dict.fromkeys(steps, 0.0)
    for number in range(sum(1 for _ in groups(path))):
        order = list(steps) if number % 2 else list(reversed(steps))
        for name in order:
            start = time.process_time()
            steps[name](next(readers[name]))
            seconds[name] += time.process_time() - start
    return seconds


def groups(path: Path) -> range:
    from pyarrow import parquet

    return range(parquet.ParquetFile(path).num_row_groups)


def alone(path: Path, work: str, name: str) -> tuple[float, float]:
    """Processor seconds and the peak of memory in MiB of a process that does only this."""
    command = [sys.executable, "-m", "benchmarks.stream", "--only", work, name, "--file", str(path)]
    one = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    seconds, most = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | one
    ).stdout.split()
    return float(seconds), float(most)


def only(path: Path, work: str, name: str) -> None:
    start = time.process_time()
    if name in ENGINES:
        ENGINES[name](path, work)
    else:
        step = WORK[work](path.parent)[name]
        for batch in batches(path):
            step(batch)
    lines = Path("/proc/self/status").read_text().splitlines()  # of this process alone, unlike getrusage
    most = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    print(time.process_time() - start, most)


def measure(path: Path, works: list[str]) -> None:
    for work in works:
        seconds = times(path, work)
        memory = {name: alone(path, work, name)[1] for name in seconds}
        for name in ENGINES if work != "epoch" else ():
            if find_spec(name.lower()) is not None:
                seconds[name], memory[name] = alone(path, work, name)
        for name, spent in seconds.items():
            print(f"{work:12} {name:14} {spent:7.1f} s {memory[name]:7.0f} MiB", flush=True)
        peer = next(name for name in seconds if name != "scan")
        ratio = f"masked / {peer} {seconds['masked'] / seconds[peer]:.2f}, goal {GOALS[work]}"
        print(f"{work:12} {ratio}; at most {MOST} MiB: {memory['masked'] <= MOST}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("works", nargs="*", help="all, or some passes: " + ", ".join(WORK))
    parser.add_argument("--share", type=float, default=1.0, help="of the 16.8 million rows")
    parser.add_argument("--file", type=Path, help="a table that was made before")
    parser.add_argument("--only", nargs=2, metavar=("WORK", "CANDIDATE"), help="this alone; prints seconds and MiB")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.only:
        only(options.file, *options.only)
    elif options.file:
        measure(options.file, options.works or list(WORK))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.parquet"
            write(path, int(ROWS * options.share))
            print(f"{path.stat().st_size / 2**30:.2f} GiB, {len(groups(path))} row groups", flush=True)
            measure(path, options.works or list(WORK))


if __name__ == "__main__":
    main()
