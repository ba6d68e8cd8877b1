"""What has its data in batches, on a disk or still to be computed, is no tensor: the error says the line to write."""

from collections.abc import Iterator
from os import PathLike
from typing import Any

_BATCHES = "for batch in data.to_batches(): masked_tensor(batch)"
_ARROW = 'for table in data.with_format("arrow").iter(1024): masked_tensor(table)'

#: Library and class, and the line for it.
LINES = {
    "pyarrow.Dataset": _BATCHES,
    "pyarrow.Fragment": _BATCHES,
    "pyarrow.Scanner": _BATCHES,
    "pyarrow.ParquetFile": "for batch in data.iter_batches(): masked_tensor(batch)",
    "polars.LazyFrame": "for frame in data.collect_batches(): masked_tensor(frame)",
    "datasets.Dataset": _ARROW,
    "datasets.IterableDataset": _ARROW,
    "datasets.DatasetDict": 'for table in data["train"].with_format("arrow").iter(1024): masked_tensor(table)',
    "datasets.Column": "masked_tensor(data[:])",
    "xarray.Dataset": "masked_tensor(data.to_dataarray())",
    "zarr.Group": "for name in data: masked_tensor(data[name])",
    "dask.DataFrame": "for part in data.partitions: masked_tensor(part.compute()), or before it, where nulls became "
    'NaN, read_parquet(path, dtype_backend="pyarrow")',
    "torch.DataLoader": "for batch in data: masked_tensor(batch)",
}
_LIBRARIES = frozenset(name.partition(".")[0] for name in LINES)


def refuse_source(data: object) -> None:
    """Raises if ``data`` is such a thing."""
    line = line_for(data)
    if line is not None:
        raise TypeError(f"masked_tensor takes one batch or one array, got {type(data).__name__}; write: {line}")


def line_for(data: object) -> str | None:
    """What to write instead of ``masked_tensor(data)``; None where that is right."""
    kind = type(data)
    if kind.__module__.partition(".")[0] in _LIBRARIES:
        names: list[Any] = [f"{c.__module__.partition('.')[0]}.{c.__name__}" for c in kind.__mro__]
        return next((LINES[name] for name in names if name in LINES), None)
    if isinstance(data, dict):
        return "masked_tensor(pyarrow.table(data)), or masked_tensor(data[name])"
    if isinstance(data, Iterator):
        return "for batch in data: masked_tensor(batch)"
    if isinstance(data, PathLike) or (isinstance(data, str) and data.endswith((".parquet", ".arrow", ".feather"))):
        return "for batch in pyarrow.dataset.dataset(data).to_batches(): masked_tensor(batch)"
    return None
