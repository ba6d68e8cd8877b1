"""Order, gather and fill: 4096 x 4096, float32, half of it valid, at random or by rows.

The goal is 1.5 times the plain op plus one pass over the mask.  ``mt.masked_fill`` is compared with itself on plain
data, which is faster than torch's.  The peers are ``torch.masked`` and, on the CPU, ``numpy.ma``, where they have it;
``by hand`` fills with what sorts last or is ignored, and moves the mask along with the data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import masked_tensor as mt

from . import timing
from .timing import Candidates, row


def run(small: bool) -> None:
    size = 1024 if small else 4096
    rows = 8 if small else size
    data, mask = torch.randn(rows, size), torch.rand(rows, size) < 0.5
    x = mt.masked_tensor(data, mask)
    padded = mt.masked_tensor(data, torch.rand(rows, 1) < 0.5)
    index, where = torch.randint(0, size, (rows, size)), torch.rand(rows, size) < 0.5
    ops: dict[str, Callable[[torch.Tensor], object]] = {
        "sort": lambda t: torch.sort(t, -1),
        "topk 10": lambda t: torch.topk(t, 10),
        "topk 10 least": lambda t: torch.topk(t, 10, largest=False),
        "topk 500": lambda t: torch.topk(t, 500),
        "median": lambda t: torch.median(t, -1),
        "kthvalue": lambda t: torch.kthvalue(t, 1000),
        "quantile": lambda t: torch.quantile(t, 0.3, -1),
        "gather": lambda t: torch.gather(t, 1, index),
        "masked_fill": lambda t: t.masked_fill(where, 1.0),
        "mt.masked_fill": lambda t: mt.masked_fill(t, where, 1.0),
        "masked_scatter": lambda t: t.masked_scatter(where, data),
        "assign where": lambda t: t.clone().__setitem__(where, 1.0),
        "assign columns": lambda t: t.clone().__setitem__((slice(None), slice(0, None, 2)), 1.0),
    }
    peers: dict[str, Candidates] = {"median": {"torch.masked": lambda: torch.masked.median(data, -1, mask=mask)}}
    if timing.DEVICE == "cpu":
        array = np.ma.masked_array(data.numpy(), ~mask.numpy())
        peers["sort"] = {"numpy.ma": lambda: np.ma.sort(array, -1)}
        peers["median"]["numpy.ma"] = lambda: np.ma.median(array, -1)
    written = by_hand(data, mask, index, where)
    for name, op in ops.items():
        candidates = {"plain": data, "random mask": x, "mask of rows": padded}
        calls = {kind: lambda op=op, t=t: op(t) for kind, t in candidates.items()} | peers.get(name, {})
        calls["by hand"] = written[name.removeprefix("mt.")]
        row(name, calls, "1.5 and a pass", rounds=5)


def by_hand(data: Tensor, mask: Tensor, index: Tensor, where: Tensor) -> Candidates:
    """The same in plain torch, with the random mask."""

    def filled(value: float) -> Tensor:
        return torch.where(mask, data, value)

    def assign(place: Any) -> object:
        result, valid = data.clone(), mask.clone()
        result[place], valid[place] = 1.0, True
        return result, valid

    nan, inf = torch.nan, torch.inf
    return {
        "sort": lambda: filled(inf).sort(-1),
        "topk 10": lambda: filled(-inf).topk(10),
        "topk 10 least": lambda: filled(inf).topk(10, largest=False),
        "topk 500": lambda: filled(-inf).topk(500),
        "median": lambda: filled(nan).nanmedian(-1),
        "kthvalue": lambda: filled(inf).kthvalue(1000),
        "quantile": lambda: filled(nan).nanquantile(0.3, -1),
        "gather": lambda: (data.gather(1, index), mask.gather(1, index)),
        "masked_fill": lambda: (data.masked_fill(where, 1.0), mask | where),
        "masked_scatter": lambda: (data.masked_scatter(where, data), mask | where),
        "assign where": lambda: assign(where),
        "assign columns": lambda: assign((slice(None), slice(0, None, 2))),
    }
