"""Where batches come from: each source is taken, or the error says the line to write, which then runs.

Libraries that are not installed are left out: torchdata, datasets, zarr and dask are no part of the ``interop`` extra.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import masked_tensor as mt
from masked_tensor.api.containers import sources

TABLE = {"a": [1.0, None, 3.0], "b": [None, 5.0, 6.0]}
ROWS = [[1.0, None], [None, 5.0], [3.0, 6.0]]
WHOLE = {"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}


#: Dask calls what the newest pandas is about to drop.
CALLS_OF_DASK = pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")


def library(name: str) -> Any:
    return pytest.importorskip(name)


def parquet(folder: Path) -> str:
    path = str(folder / "table.parquet")
    library("pyarrow.parquet").write_table(library("pyarrow").table(TABLE), path, row_group_size=2)
    return path


def hugging_face(folder: Path) -> Any:
    return library("datasets").Dataset(library("pyarrow").table(TABLE))


def opened(folder: Path) -> Any:
    library("pyarrow.dataset")
    return library("pyarrow").dataset.dataset(parquet(folder))


def group(folder: Path) -> Any:
    made = library("zarr").create_group({})
    for name, values in WHOLE.items():
        made[name] = np.array(values)
    return made


REFUSED: dict[str, Callable[[Path], Any]] = {
    "pyarrow.Dataset": opened,
    "pyarrow.Fragment": lambda folder: next(opened(folder).get_fragments()),
    "pyarrow.Scanner": lambda folder: opened(folder).scanner(),
    "pyarrow.ParquetFile": lambda folder: library("pyarrow.parquet").ParquetFile(parquet(folder)),
    "polars.LazyFrame": lambda folder: library("polars").DataFrame(TABLE).lazy(),
    "datasets.Dataset": hugging_face,
    "datasets.IterableDataset": lambda folder: hugging_face(folder).to_iterable_dataset(),
    "datasets.DatasetDict": lambda folder: library("datasets").DatasetDict(train=hugging_face(folder)),
    "datasets.Column": lambda folder: hugging_face(folder)["a"],
    "xarray.Dataset": lambda folder: library("xarray").Dataset({k: ("t", v) for k, v in WHOLE.items()}),
    "zarr.Group": group,
    "dask.DataFrame": lambda folder: library("dask.dataframe").from_pandas(
        library("pandas").DataFrame(TABLE).convert_dtypes(), npartitions=2
    ),
    "torch.DataLoader": lambda folder: DataLoader(torch.tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])),  # type: ignore[arg-type]
    "an iterator": lambda folder: iter([torch.tensor([[1.0, 4.0], [2.0, 5.0]]), torch.tensor([[3.0, 6.0]])]),
    "a path": parquet,
}
COLUMNS = ("datasets.Column",)  # rows of one column
BY_NAME = ("xarray.Dataset", "zarr.Group")


def wanted(name: str) -> list[Any]:
    if name in COLUMNS:
        return TABLE["a"]
    if name in BY_NAME:
        return [value for column in WHOLE.values() for value in column]
    return (
        [list(row) for row in zip(*WHOLE.values(), strict=True)]
        if name in ("torch.DataLoader", "an iterator")
        else ROWS
    )


def test_every_line_has_an_example() -> None:
    assert sources.LINES.keys() <= REFUSED.keys()


@CALLS_OF_DASK
@pytest.mark.parametrize("name", REFUSED)
def test_the_line_that_the_error_says_runs(name: str, tmp_path: Path) -> None:
    data = REFUSED[name](tmp_path)
    with pytest.raises(TypeError, match="write: ") as raised:
        mt.masked_tensor(data)
    line = str(raised.value).partition("write: ")[2].partition(", or ")[0]
    found: list[Any] = []

    def take(part: Any) -> Any:
        x = mt.masked_tensor(part)
        assert mt.is_masked_tensor(x)
        found.extend(x.flatten().tolist() if name in BY_NAME else x.tolist())
        return x

    names = {"data": data, "masked_tensor": take}
    for module in ("pyarrow", "pyarrow.dataset"):
        if module in line:
            names["pyarrow"] = library("pyarrow")
            library(module)
    exec(line, names)
    assert (sorted(found) if name in BY_NAME else found) == wanted(name)


@CALLS_OF_DASK
@pytest.mark.parametrize("backend", ["pyarrow", "numpy_nullable"])
def test_nulls_of_parquet_stay_nulls_in_dask(backend: str, tmp_path: Path) -> None:
    """The call of the table in docs/streams.md; without the keyword they are NaN."""
    frames = library("dask.dataframe")
    for i in range(2):
        (tmp_path / f"{i}").mkdir()
        parquet(tmp_path / f"{i}")
    files = [str(tmp_path / f"{i}" / "table.parquet") for i in range(2)]
    data, stats = frames.read_parquet(files, dtype_backend=backend), mt.RunningStatistics(2)
    for part in data.partitions:
        stats.update(mt.masked_tensor(part.compute()))
    assert stats.mean.tolist() == data.mean().compute().tolist()
    assert stats.count.tolist() == data.count().compute().tolist()
    plain = frames.read_parquet(files).partitions[0].compute()
    with pytest.warns(UserWarning, match="masked_invalid"):
        assert mt.masked_tensor(plain).isnan().any()
    with pytest.raises(TypeError, match="dtype_backend="):
        mt.masked_tensor(data)


TAKEN: dict[str, Callable[[Path], Any]] = {
    "RecordBatchReader": lambda folder: library("pyarrow").table(TABLE).to_reader(max_chunksize=2),
    "a reader of a dataset": lambda folder: opened(folder).scanner(batch_size=2).to_reader(),
    "a batch of a LazyFrame": lambda folder: next(iter(library("polars").DataFrame(TABLE).lazy().collect_batches())),
    "datasets' arrow format": lambda folder: hugging_face(folder).with_format("arrow")[:],
    "datasets' stream": lambda folder: next(
        iter(hugging_face(folder).to_iterable_dataset().with_format("arrow").iter(9))
    ),
}
DENSE: dict[str, Callable[[Path, np.ndarray], Any]] = {
    "memmap": lambda folder, x: mapped(folder, x),
    "rows of a memmap": lambda folder, x: mapped(folder, np.concatenate([x, x]))[::2][: len(x)],
    "zarr": lambda folder, x: library("zarr").array(x),
    "dask": lambda folder, x: library("dask.array").from_array(x, chunks=1),
    "xarray": lambda folder, x: library("xarray").DataArray(x),
    "xarray on dask": lambda folder, x: (library("dask.array"), library("xarray").DataArray(x).chunk(1))[1],
}


def mapped(folder: Path, x: np.ndarray) -> np.ndarray:
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r")


@pytest.mark.parametrize("name", TAKEN)
def test_a_table_of_batches_is_taken(name: str, tmp_path: Path) -> None:
    assert mt.masked_tensor(TAKEN[name](tmp_path)).tolist() == ROWS


@pytest.mark.parametrize("name", DENSE)
def test_an_array_on_a_disk_is_taken_and_copied(name: str, tmp_path: Path) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]]) if "rows" not in name else np.array([[1.0, 2.0], [1.0, 2.0]])
    held = DENSE[name](tmp_path, x)
    y = mt.masked_tensor(held)
    assert y.tolist() == x.tolist()
    y += 1
    assert mt.masked_tensor(held).tolist() == x.tolist()


def test_rows_with_none_in_a_loader() -> None:
    """datasets' own rows are dicts; a list of dicts is the same for a loader."""
    rows = [{"a": 1.0, "b": None}, {"a": None, "b": 5.0}]
    (batch,) = DataLoader(rows, batch_size=2, collate_fn=mt.collate)  # type: ignore[arg-type]
    assert {name: column.tolist() for name, column in batch.items()} == {"a": [1.0, None], "b": [None, 5.0]}
    datasets = library("datasets")
    (same,) = DataLoader(datasets.Dataset.from_list(rows), batch_size=2, collate_fn=mt.collate)
    assert {name: column.tolist() for name, column in same.items()} == {"a": [1.0, None], "b": [None, 5.0]}
