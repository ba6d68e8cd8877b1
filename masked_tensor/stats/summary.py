"""The statistics of each column as a table: printed, in a notebook, for pandas and for Arrow."""

import html
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ..extend import Pair, masks, select
from ..extend.data import ArrowTable, Column, numbers, plain, texts

_MOST, _EDGE = 12, 3  # lines of a printed table, and those at either end of a longer one
_TABLE = "font-family:monospace;border-collapse:collapse;margin:0.3em 0"
_CELL = "padding:0.1em 0.5em;text-align:right;white-space:pre"
_QUARTILES = (0.25, 0.5, 0.75)


def library(name: str) -> Any:
    """A library that is asked for."""
    try:
        return import_module(name)
    except ImportError as reason:
        raise ImportError(f"this table is made by {name}: pip install {name}") from reason


def _fields(stats: Any) -> dict[str, Pair]:
    """Of each column, or of each group and column, ``(n,)``; masked where it is not known, and NaN there."""
    found = {"count": stats.count, "missing": stats.missing}
    found |= {"mean": stats.mean, "std": stats.std, "min": stats.amin, "max": stats.amax}
    if stats.waiting is not None or stats.edges is not None:
        found |= {f"{q:.0%}": stats.quantile(q) for q in _QUARTILES}
    pairs = {name: plain(x.flatten().cpu()) for name, x in found.items()}
    return {name: Pair(select(pair.data, pair.mask, torch.nan), pair.mask) for name, pair in pairs.items()}


def _names(stats: Any) -> list[str]:
    return stats.names or [str(i) for i in range(stats.features)]


def _rows(stats: Any) -> tuple[list[int], list[str]]:
    """The group of each row, if there are any, and the name of its column."""
    names = _names(stats)
    if stats.keys is None:
        return [], names
    keys = stats.keys.tolist()
    return [key for key in keys for _ in names], names * len(keys)


def table_of(stats: Any) -> ArrowTable:
    """With a column of names, and one of groups before it if there are any."""
    groups, names = _rows(stats)
    first: list[tuple[str, Column]] = [("column", texts(names))]
    if stats.keys is not None:
        first.insert(0, ("group", all_numbers(torch.tensor(groups, dtype=torch.int64))))
    fields = _fields(stats)
    return ArrowTable([*first, *((name, numbers(x.data, x.mask)) for name, x in fields.items())])


def all_numbers(x: Tensor) -> Column:
    """A column without nulls."""
    return numbers(x, masks.full(x.shape, x.device))


def frame_of(stats: Any) -> Any:
    """A ``pandas.DataFrame``."""
    pandas = library("pandas")
    groups, names = _rows(stats)
    index = pandas.Index(names)
    if stats.keys is not None:
        index = pandas.MultiIndex.from_arrays([groups, names], names=["group", None])
    return pandas.DataFrame({name: x.data.tolist() for name, x in _fields(stats).items()}, index=index)


def _lines(stats: Any) -> list[list[str]]:
    """Cells of a head and of each row; of many rows the first and the last."""
    groups, names = _rows(stats)
    fields = _fields(stats)
    lines = [[*["group"] * bool(groups), "", *fields]]
    kept = range(len(names)) if len(names) <= _MOST else [*range(_EDGE), None, *range(len(names) - _EDGE, len(names))]
    for i in kept:
        if i is None:
            lines.append(["..."] * len(lines[0]))
        else:
            lines.append([*map(str, groups[i : i + 1]), names[i], *(_cell(x, i) for x in fields.values())])
    return lines


def _cell(field: Pair, i: int) -> str:
    x = field.data[i].item()
    if not field.mask[i]:
        return "--"
    return f"{x:.0f}" if 1e4 <= abs(x) < torch.inf and x == round(x) else f"{x:.4g}"


def text_of(stats: Any) -> str:
    """Columns of text below the line of a module."""
    title = f"RunningStatistics({stats.extra_repr()})"
    if not stats._state.is_used():
        return title
    lines = _lines(stats)
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    first = lines[0].index("")
    rows = [
        "  ".join(c.ljust(w) if i == first else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    ]
    return "\n".join([title, *(row.rstrip() for row in rows)])


def html_of(stats: Any) -> str:
    """The same as a table of a notebook."""
    head, *rows = _lines(stats) if stats._state.is_used() else [[]]
    cells = [f'<td style="{_CELL}">{html.escape(cell)}</td>' for cell in head]
    lines = ["".join(cells), *("".join(f'<td style="{_CELL}">{html.escape(c)}</td>' for c in row) for row in rows)]
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    title = html.escape(f"RunningStatistics({stats.extra_repr()})")
    return f'<div><div style="{_TABLE};opacity:0.8">{title}</div><table style="{_TABLE}">{table}</table></div>'
