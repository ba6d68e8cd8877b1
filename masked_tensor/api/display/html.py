"""How a masked tensor looks in a notebook: tables of its last two dimensions, masked entries shaded, and a caption.

Only inherited colours and greys that let them through, so that it reads on white and on black.
"""

import html
from collections.abc import Iterator, Sequence
from itertools import product

import torch
from torch import Tensor

from ... import layouts
from ...engine.tensor import MaskedTensor, add_members, pair_of
from ...pair import Pair
from . import show

Kept = Sequence[int | None]
MOST = 12  #: rows, columns or tables along a dimension, before it is cut to its edges
EDGE = 3
TABLE = "font-family:monospace;border-collapse:collapse;margin:0.3em 0"
CELL = "padding:0.1em 0.5em;text-align:right;white-space:pre"
MASKED = f"{CELL};background:rgba(128,128,128,0.35);opacity:0.7"


def as_html(x: MaskedTensor) -> str:
    """The HTML of a tensor of any shape: a table for each index of the leading dimensions; long ones are cut."""
    pair = pair_of(x)
    readable = show.can_read(pair)
    if not readable or layouts.is_sparse(pair.data) or not x.shape.numel():
        return f"<pre>{html.escape(show.text(x))}</pre>"
    facts = [f"shape={tuple(x.shape)}", *show.facts(x, pair, True)]
    if not any(fact.startswith("dtype") for fact in facts):
        facts.append(f"dtype={x.dtype}")
    data, mask = pair.data.detach().cpu(), pair.mask.cpu()
    whole = Pair(data.reshape((1,) * (2 - data.dim()) + data.shape), mask.reshape((1,) * (2 - mask.dim()) + mask.shape))
    tables = "".join(_tables(whole, titled=data.dim() > 2))
    caption = f'<div style="{TABLE};opacity:0.8">masked_tensor {html.escape(", ".join(facts))}</div>'
    return f"<div>{tables}{caption}</div>"


def _tables(x: Pair, titled: bool) -> Iterator[str]:
    kept = [_shown_entries(size) for size in x.data.shape]
    rows, columns = kept[-2:]
    picked = torch.meshgrid(*[torch.tensor([i for i in k if i is not None]) for k in kept], indexing="ij")
    write = show.cell(Pair(x.data[picked], x.mask[picked]), 0)  # widths are those of what is shown
    for index in product(*kept[:-2]):
        if None in index:
            yield f'<div style="{TABLE}">&hellip;</div>'
            continue
        place = tuple(i for i in index if i is not None)
        title = f'<div style="{TABLE}">[{", ".join(map(str, place))}, :, :]</div>' if titled else ""
        yield title + _table(x.data[place], x.mask[place], rows, columns, write)


def _table(
    data: Tensor, mask: Tensor, rows: Sequence[int | None], columns: Sequence[int | None], write: show.Cell
) -> str:
    lines = []
    for row in rows:
        if row is None:
            lines.append(f'<tr><td style="{CELL}">&#8942;</td></tr>')
            continue
        cells = []
        for column in columns:
            if column is None:
                cells.append(f'<td style="{CELL}">&hellip;</td>')
                continue
            valid = bool(mask[row, column])
            text = html.escape(write(show.numbers(data[row, column]), valid).strip())
            cells.append(f'<td style="{CELL if valid else MASKED}">{text}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table style="{TABLE}">{"".join(lines)}</table>'


def _shown_entries(size: int) -> Kept:
    """Which entries of a dimension are shown; None stands for those that are left out."""
    if size <= MOST:
        return list(range(size))
    return [*range(EDGE), None, *range(size - EDGE, size)]


add_members(_repr_html_=as_html)
