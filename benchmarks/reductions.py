"""Reductions: 4096 x 4096, float32, half of it valid at random; what lies under the mask is not known to be 0.

The peers are ``torch.masked`` and, on the CPU, ``numpy.ma``, polars and pyarrow.  ``by hand`` is ``torch.where`` with
the number that the op ignores, and the plain op.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch import masked as peer

import masked_tensor as mt

from .timing import row

OPS: list[tuple[str, int, float | None, str]] = [  # op, dim, the number it ignores, goal
    ("sum", -1, 0.0, "1.5"),
    ("sum", 0, 0.0, "1.5"),
    ("mean", -1, None, "1.5"),
    ("mean", 0, None, "1.5"),
    ("prod", -1, 1.0, "3.5"),
    ("prod", 0, 1.0, "2"),
    ("amax", -1, -math.inf, "1.5"),
    ("amax", 0, -math.inf, "2"),
    ("amin", -1, math.inf, "4.5"),
    ("var", -1, None, "0.3"),
    ("var", 0, None, "0.3"),
    ("std", -1, None, "0.3"),
    ("logsumexp", -1, -math.inf, ""),
    ("argmax", -1, -math.inf, ""),
]


def run(small: bool) -> None:
    size = 64 if small else 4096
    data, mask = torch.randn(size, size), torch.rand(size, size) < 0.5
    x, rows = mt.as_masked_tensor(data, mask), mt.as_masked_tensor(data, mask[:, :1])
    array = None if data.device.type != "cpu" else np.ma.masked_array(data.numpy(), ~mask.numpy())
    for name, dim, _, goal in OPS:
        op, theirs = getattr(torch, name), getattr(peer, name)
        candidates: dict[str, Callable[[], object]] = {
            "plain": lambda op=op, dim=dim: op(data, dim),
            "masked": lambda op=op, dim=dim: op(x, dim),
            "torch.masked": lambda op=theirs, dim=dim: op(data, dim, mask=mask),
        }
        candidates["by hand"] = lambda name=name, dim=dim: by_hand(name, data, mask, dim)
        theirs = {"amax": "max", "amin": "min"}.get(name, name)
        if array is not None and hasattr(array, theirs):
            candidates["numpy.ma"] = lambda name=theirs, dim=dim: getattr(array, name)(dim)
        row(f"{name}({dim})", candidates, goal, rounds=5)
    for name, ignored in (("sum", 0.0), ("mean", None), ("max", -math.inf), ("var", None)):
        whole(name, ignored, data, mask, array)
    for name in ("sum", "mean", "amax", "var"):
        op = getattr(torch, name)
        row(
            f"{name}(-1), a mask of rows",
            {"plain": lambda op=op: op(data, -1), "masked": lambda op=op: op(rows, -1)},
            "1.1",
        )
    for name, dim in [(name, dim) for name in ("count", "any", "all") for dim in (-1, 0, None)]:
        asked = (lambda dim=dim: x.count(dim)) if name == "count" else lambda n=name, d=dim: of_mask(n, x.get_mask(), d)
        row(
            f"x.{'get_mask().' * (name != 'count')}{name}({'' if dim is None else dim})",
            {
                "plain": lambda n=name, d=dim: of_mask({"count": "sum"}.get(n, n), mask, d),
                "masked": asked,
                "by hand": lambda n=name, d=dim: of_mask({"count": "sum"}.get(n, n), mask, d),
            },
            "1.5",
        )
    leaf, masked = data.clone().requires_grad_(), mt.as_masked_tensor(data, mask).requires_grad_()
    for name in ("sum", "mean", "amax", "prod", "logsumexp", "var"):
        op = getattr(torch, name)

        def step(tensor: Tensor, op: Callable[..., Tensor] = op) -> None:
            torch.autograd.grad(op(tensor, -1).sum(), tensor)

        def hand(tensor: Tensor, dim: int, name: str = name) -> Tensor:
            return by_hand(name, tensor, mask, dim)

        row(
            f"{name}(-1), forward and backward",
            {
                "plain": lambda s=step: s(leaf),
                "by hand": lambda s=step, h=hand: s(leaf, h),
                "masked": lambda s=step: s(masked),
            },
            rounds=5,
        )


#: The number that a reduction ignores.
IGNORED = {name: ignored for name, _, ignored, _ in OPS if ignored is not None}


def by_hand(name: str, data: Tensor, mask: Tensor, dim: int) -> Tensor:
    """The reduction in plain torch, by ``torch.where``."""
    if name in IGNORED:
        return getattr(torch, name)(torch.where(mask, data, IGNORED[name]), dim)  # type: ignore[no-any-return]
    number = mask.sum(dim, keepdim=True)
    mean = torch.where(mask, data, 0).sum(dim, keepdim=True) / number
    if name == "mean":
        return mean.squeeze(dim)
    variance = torch.where(mask, data - mean, 0).square().sum(dim) / (number.squeeze(dim) - 1)
    return variance.sqrt() if name == "std" else variance


def of_mask(name: str, mask: Tensor, dim: int | None) -> Tensor:
    return getattr(torch, name)(mask, *(() if dim is None else (dim,)))  # type: ignore[no-any-return]


def whole(name: str, ignored: float | None, data: Tensor, mask: Tensor, array: Any) -> None:
    """A reduction of all elements, which libraries for tables have, too: their columns have missing values."""
    op, x = getattr(torch, name), mt.as_masked_tensor(data, mask)
    candidates: dict[str, Callable[[], object]] = {"plain": lambda: op(data), "masked": lambda: op(x)}
    if ignored is not None:
        candidates["by hand"] = lambda: op(torch.where(mask, data, ignored))
    if array is not None:
        candidates["numpy.ma"] = lambda: getattr(array, name)()
        candidates |= columns(name, array)
    row(f"{name}() of all", candidates, rounds=5)


def columns(name: str, array: Any) -> dict[str, Callable[[], object]]:
    """The reduction of polars and of pyarrow, where they are installed."""
    found: dict[str, Callable[[], object]] = {}
    try:
        import pyarrow as pa
        import pyarrow.compute as pc

        arrow = pa.array(array.data.ravel(), mask=array.mask.ravel())
        found["pyarrow"] = lambda: getattr(pc, {"var": "variance"}.get(name, name))(arrow)
        import polars as pl

        series = pl.from_arrow(arrow)
        found["polars"] = lambda: getattr(series, name)()
    except ImportError:
        pass
    return found


def compiled(small: bool) -> None:
    size = 64 if small else 4096
    data, mask = torch.randn(size, size), torch.rand(size, size) < 0.5
    x = mt.as_masked_tensor(data, mask)
    for name in ("sum", "mean", "amax", "prod", "var", "logsumexp"):
        op = getattr(torch, name)
        function = torch.compile(lambda t, op=op: op(t, -1), fullgraph=True)
        hand = torch.compile(lambda t, m, name=name: by_hand(name, t, m, -1), fullgraph=True)
        candidates = {
            "plain": lambda op=op: op(data, -1),
            "by hand": lambda f=hand: f(data, mask),
            "masked": lambda f=function: f(x),
        }
        row(f"{name}(-1), compiled", candidates, "1.6")
