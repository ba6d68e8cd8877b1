"""A table that is larger than memory: statistics and an epoch over a Parquet file, masked and with NaN by hand.

``python -m benchmarks.stream`` makes a table of 16.8 million rows and 64 columns, 30 % of it null, in row groups (3 GB
in a folder of its own, removed afterwards), and reads it batch by batch.  ``--share 0.1`` makes a tenth of it.  The
candidates take turns, batch after batch, in one process; the times are processor time.  The peak of memory is that of
a process of its own for each.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import masked_tensor as mt

ROWS, COLUMNS, GROUP, BATCH = 1 << 24, 64, 1 << 16, 1 << 12
SHARE = 0.3  #: of nulls
GOALS = {"fit": 0.8, "epoch": 1.05}
MEMORY = 1.3

Step = Callable[[Any], object]


def write(path: Path, rows: int) -> None:
    """Normal numbers about 10 times the column, row group by row group."""
    import pyarrow as pa
    from pyarrow import parquet

    generator = torch.Generator().manual_seed(0)
    names = [f"c{i}" for i in range(COLUMNS)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(0, rows, GROUP):
            data = torch.randn(COLUMNS, GROUP, generator=generator) + 10 * torch.arange(COLUMNS).unsqueeze(1)
            null = torch.rand(COLUMNS, GROUP, generator=generator) < SHARE
            columns = [pa.array(x.numpy(), mask=m.numpy()) for x, m in zip(data, null, strict=True)]
            writer.write_table(pa.table(columns, names=names), row_group_size=GROUP)


def batches(path: Path) -> Iterator[Any]:
    """The row groups, each as a record batch."""
    from pyarrow import parquet

    yield from parquet.ParquetFile(path).iter_batches(batch_size=GROUP, use_threads=False)


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


def fits() -> dict[str, Step]:
    """One pass for the statistics of each column."""
    ours, theirs = mt.RunningStatistics(COLUMNS), ByHand()
    return {
        "scan": lambda batch: batch.num_rows,
        "by hand": lambda batch: theirs.update(with_nan(batch)),
        "masked": lambda batch: ours.update(mt.masked_tensor(batch)),
    }


def epochs() -> dict[str, Step]:
    """One pass of training: each column is predicted from all, where it is there."""
    stats = mt.RunningStatistics(COLUMNS).update(torch.randn(1000, COLUMNS) + 10 * torch.arange(COLUMNS))
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


WORK = {"fit": fits, "epoch": epochs}


def times(path: Path, work: str) -> dict[str, float]:
    """Processor seconds of each candidate, reading included."""
    steps = WORK[work]()
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


def peak(path: Path, work: str, name: str) -> float:
    """The most memory in MiB that a process has which does only this."""
    command = [sys.executable, "-m", "benchmarks.stream", "--only", work, name, "--file", str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def alone(path: Path, work: str, name: str) -> None:
    step = WORK[work]()[name]
    for batch in batches(path):
        step(batch)
    lines = Path("/proc/self/status").read_text().splitlines()  # of this process alone, unlike getrusage
    print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)


def measure(path: Path) -> None:
    for work, goal in GOALS.items():
        seconds = times(path, work)
        shown = ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items())
        print(
            f"{work}: {shown}; masked / by hand {seconds['masked'] / seconds['by hand']:.2f}, goal {goal}", flush=True
        )
        memory = {name: peak(path, work, name) for name in seconds}
        shown = ", ".join(f"{name} {most:.0f} MiB" for name, most in memory.items())
        print(f"{work}: {shown}; masked / scan {memory['masked'] / memory['scan']:.2f}, goal {MEMORY}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="A table that is larger than memory: masked, and with NaN by hand.")
    parser.add_argument("--share", type=float, default=1.0, help="of the 16.8 million rows")
    parser.add_argument("--file", type=Path, help="a table that was made before")
    parser.add_argument("--only", nargs=2, metavar=("WORK", "CANDIDATE"), help="this alone; prints its peak in MiB")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.only:
        alone(options.file, *options.only)
    elif options.file:
        measure(options.file)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.parquet"
            write(path, int(ROWS * options.share))
            print(f"{path.stat().st_size / 2**30:.2f} GiB, {len(groups(path))} row groups", flush=True)
            measure(path)


if __name__ == "__main__":
    main()
