"""Data in batches, on disk or still to be computed, are not a tensor: the error names the line to write."""

import builtins
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, TypeVar

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


Found = TypeVar("Found")
OF_PYTHON = frozenset(kind for kind in (*vars(builtins).values(), type(None)) if isinstance(kind, type))


def refuse_source(data: object) -> None:
    """Raises if ``data`` is such a thing."""
    line = line_for(data)
    if line is not None:
        raise TypeError(f"masked_tensor expects one batch or one array, got {type(data).__name__}; write: {line}")


def of_class(kind: type, table: Mapping[Any, Found]) -> Found | None:
    """What a table has for a class, by the class itself or by library and name, or for the nearest that it is of."""
    for one in kind.__mro__ if kind not in OF_PYTHON else ():
        found = table.get(one) or table.get(f"{one.__module__.partition('.')[0]}.{one.__name__}")
        if found is not None:
            return found
    return None


def line_for(data: object) -> str | None:
    """What to write instead of ``masked_tensor(data)``; None where that is right."""
    line = of_class(type(data), LINES)
    if line is not None:
        return line
    if isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__"):
        return "for batch in data: masked_tensor(batch)"
    if isinstance(data, PathLike) or (isinstance(data, str) and data.endswith((".parquet", ".arrow", ".feather"))):
        return "for batch in pyarrow.dataset.dataset(data).to_batches(): masked_tensor(batch)"
    return None
