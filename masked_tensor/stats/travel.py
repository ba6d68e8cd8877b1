"""A state on its way: as one row of a table that any engine carries, and from rank to rank.

A row is options and buffers by name.  Its columns are the same for all statistics, so that rows of many workers make
one table.  What comes back is checked: nothing is unpickled.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..extend.data import ArrowTable, Column, lists, read_rows, texts
from ..extend.ranks import group_device, group_size
from .sketch import PARTS, Sketch, no_sketch
from .state import State
from .summary import all_numbers

VERSION = 1

#: The columns of a row as Spark writes a schema.
SCHEMA = (
    "version bigint, features bigint, dim bigint, correction double, sketch bigint, names array<string>, "
    "columns array<double>, keys array<bigint>, moments array<double>, missed array<double>, pairs array<double>, "
    "edges array<double>, bins array<double>, waiting array<double>, items array<double>, counts array<bigint>, "
    "halvings array<bigint>"
)
_TYPES: dict[str, str] = dict(part.split() for part in SCHEMA.split(", "))
_DTYPES = {"array<double>": torch.float64, "array<bigint>": torch.int64}
_BUFFERS = tuple(name for name, kind in _TYPES.items() if kind in _DTYPES)


def to_row(state: State) -> dict[str, Any]:
    """Options and buffers, each buffer flat; of a sketch only what is there."""
    row: dict[str, Any] = {name: buffer for name, buffer in state.tensors().items() if name in _BUFFERS}
    sketch = state.sketch
    if sketch is not None:
        row["waiting"] = sketch.waiting[_filled(sketch.waiting, sketch.counts[:, 0])]
        row["items"] = sketch.items[_filled(sketch.items, sketch.counts[:, 1:].T)]
    row = {name: None if buffer is None else buffer.detach().cpu().flatten() for name, buffer in row.items()}
    known = {"version": VERSION, "features": state.features, "dim": state.dim, "sketch": state.size}
    return {**row, **known, "correction": float(state.correction), "names": state.names}


def from_row(row: Mapping[str, Any], make: Callable[..., Any]) -> Any:
    """The statistics that a row is of, made by ``make``."""
    lacking = sorted(_TYPES.keys() - row.keys())
    if lacking or row["version"] != VERSION:
        raise ValueError(
            f"from_arrow() expects what to_arrow() of this version returned (version {VERSION}), got "
            + (f"a table without {', '.join(lacking)}" if lacking else f"version {row['version']}")
        )
    try:
        return _from_row(row, make)
    except (RuntimeError, TypeError, AttributeError, OverflowError) as reason:
        raise ValueError(f"the row is not whole, or was changed: {reason}") from reason


def _from_row(row: Mapping[str, Any], make: Callable[..., Any]) -> Any:
    features, size, names = int(row["features"]), int(row["sketch"]), row["names"]
    rows = () if row["keys"] is None else (len(row["keys"]),)
    edges = None if row["edges"] is None else row["edges"].view(features, -1)
    stats = make(
        features,
        columns=names or None,
        dim=int(row["dim"]),
        cov=row["pairs"] is not None,
        edges=edges,
        correction=row["correction"],
        sketch=size,
    )
    state = {"correction": stats.correction}
    state |= {name: row[name].to(dtype=_DTYPES[_TYPES[name]], copy=True) for name in _BUFFERS if row[name] is not None}
    shapes = {"moments": (6, *rows, features), "missed": (*rows, features), "pairs": (5, features, features)}
    shapes |= {"edges": (features, -1), "bins": (features, -1)}
    state |= {name: state[name].view(shape) for name, shape in shapes.items() if name in state}
    if size:
        sketch = _sketch_of(state, features, size)
        state |= {name: getattr(sketch, name) for name in PARTS}
    if rows and (state["keys"].diff() <= 0).any():
        raise RuntimeError("its groups do not rise")
    if names and not torch.equal(stats.columns, state["columns"]):
        raise RuntimeError("its names are not those of its columns")
    stats.load_state_dict(state)
    return stats


def _filled(x: Tensor, count: Tensor) -> Tensor:
    """The first entries of each row, as many as are counted."""
    return torch.arange(x.shape[-1], device=x.device) < count.unsqueeze(-1)


def _sketch_of(state: Mapping[str, Tensor], features: int, size: int) -> Sketch:
    counts = state["counts"].view(features, -1)
    halvings = state["halvings"].view(features, counts.shape[1] - 1)
    empty = no_sketch(features, size)
    waiting, items = empty.waiting, empty.items.new_zeros(halvings.shape[1], features, size)
    most = torch.tensor([waiting.shape[1], *[size] * halvings.shape[1]])
    if ((counts < 0) | (counts > most)).any() or (halvings < 0).any():
        raise RuntimeError("its sketch counts what it does not hold")
    for memory, count, values in (
        (waiting, counts[:, 0], state["waiting"]),
        (items, counts[:, 1:].T, state["items"]),
    ):
        memory[_filled(memory, count)] = values
    return Sketch(waiting, items, counts, halvings)


# -------------------------------------------------------------------------------------------------------------- Arrow


def to_arrow(row: Mapping[str, Any], types: Mapping[str, str] = _TYPES) -> ArrowTable:
    """A table of this one row, whose columns have these types."""
    return ArrowTable([(name, _column(kind, row[name])) for name, kind in types.items()])


def _column(kind: str, value: Any) -> Column:
    if kind == "array<string>":
        return lists([None if value is None else len(value)], texts(value or ()))
    if kind in _DTYPES:
        values = torch.zeros(0, dtype=_DTYPES[kind]) if value is None else value
        return lists([None if value is None else len(value)], all_numbers(values))
    return all_numbers(torch.tensor([value], dtype=torch.float64 if kind == "double" else torch.int64))


def rows_of(data: Any) -> list[dict[str, Any]]:
    """The rows of a table."""
    if not hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__"):
        raise TypeError(
            "from_arrow() expects an Arrow table, such as one of pyarrow, polars or pandas, got "
            f"{type(data).__name__}; put tables together with pyarrow.concat_tables"
        )
    return read_rows(data)


# -------------------------------------------------------------------------------------------------------------- ranks


def add_ranks(whole: Any, make: Callable[..., Any], group: Any) -> Any:
    """The statistics of all ranks, on each: pairs are added up, then pairs of pairs; the last sum is sent to all."""
    rank, ranks, step = dist.get_rank(group), group_size(group), 1
    while step < ranks:
        if rank % (2 * step):
            for part in _pack(whole._state, group):
                dist.send(part, group=group, group_dst=rank - step)
            break
        if rank + step < ranks:
            whole.merge(_receive(partial(dist.recv, group=group, group_src=rank + step), make, group))
        step *= 2
    send = partial(dist.broadcast, group=group, group_src=0)
    if rank:
        return _receive(send, make, group)
    for part in _pack(whole._state, group):
        send(part)
    return whole


def _pack(state: State, group: Any) -> list[Tensor]:
    """Three messages: numbers and lengths, names as bytes, and buffers as float64, integers by their bits."""
    row = to_row(state)
    lengths = [-1 if row[name] is None else len(row[name]) for name in _BUFFERS]
    words = json.dumps(row["names"]).encode()
    head = [row["features"], row["dim"], row["sketch"], len(words), *lengths]
    body = [row[name].view(torch.float64) for name in _BUFFERS if row[name] is not None]
    parts = [
        torch.tensor(head),
        torch.tensor([*words], dtype=torch.uint8),
        torch.cat([torch.tensor([row["correction"]], dtype=torch.float64), *body]),
    ]
    return [part.to(group_device(group)) for part in parts]


def _receive(take: Callable[[Tensor], object], make: Callable[..., Any], group: Any) -> Any:
    device = group_device(group)

    def message(length: int, dtype: torch.dtype) -> Tensor:
        part = torch.empty(length, dtype=dtype, device=device)
        take(part)
        return part.cpu()

    features, dim, sketch, size, *lengths = message(4 + len(_BUFFERS), torch.int64).tolist()
    names = json.loads(bytes(message(size, torch.uint8).tolist()))
    correction, *body = message(1 + sum(n for n in lengths if n > 0), torch.float64).split(
        [1, *(max(n, 0) for n in lengths)]
    )
    buffers = {
        name: None if n < 0 else part.view(_DTYPES[_TYPES[name]])
        for name, n, part in zip(_BUFFERS, lengths, body, strict=True)
    }
    known = {"version": VERSION, "features": features, "dim": dim, "sketch": sketch, "correction": float(correction)}
    return from_row({**buffers, **known, "names": names}, make)
