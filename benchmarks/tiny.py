"""Tiny tensors: 4 x 4, float32, where the time is that of the calls; the floor is a Python kernel and a wrapper.

No op whose kernel is written in Python and makes a wrapper can be cheaper than the floor, which looks at no mask
(``floor.py``).  The peers are ``torch.masked``, which has no relu, and on the CPU ``numpy.ma``, where they have the op.
By hand, an elementwise op with one mask is the plain op itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.masked import masked_tensor as peer

import masked_tensor as mt

from . import timing
from .floor import bare
from .timing import Candidates, row

CALLS = 200
ARRAYS = ("add, one mask", "mul", "mul by 2.0", "add_", "sum", "mean", "var")  # what numpy.ma calls by the same name
ALONE = ("add, two masks", "add a plain tensor", "relu", "dropout, eval")  # which torch.masked has not


def run(small: bool) -> None:
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    mask, other = torch.rand(4, 4) < 0.7, torch.rand(4, 4) < 0.7
    x, y, z = mt.as_masked_tensor(a, mask), mt.as_masked_tensor(b, mask), mt.as_masked_tensor(b, other)
    cases: dict[str, tuple[Callable[[Any, Any], object], tuple[Any, Any], str]] = {
        "add, one mask": (lambda x, y: x + y, (x, y), "6"),
        "add, two masks": (lambda x, y: x + y, (x, z), ""),
        "add a plain tensor": (lambda x, y: x + y, (x, b), ""),
        "mul": (lambda x, y: x * y, (x, y), "6"),
        "mul by 2.0": (lambda x, y: x * 2.0, (x, y), ""),
        "relu": (lambda x, y: x.relu(), (x, y), "5.5"),
        "exp": (lambda x, y: x.exp(), (x, y), ""),
        "add_": (lambda x, y: x.__iadd__(y), (x.clone(), y), ""),
        "sum": (lambda x, y: x.sum(), (x, y), "7"),
        "mean": (lambda x, y: x.mean(), (x, y), ""),
        "amax": (lambda x, y: x.amax(), (x, y), ""),
        "var": (lambda x, y: x.var(), (x, y), "8"),
        "softmax": (lambda x, y: x.softmax(-1), (x, y), "8"),
        "dropout, eval": (lambda x, y: torch.dropout(x, 0.5, False), (x, y), ""),
    }
    written = by_hand(a, b, mask, other)
    with torch.no_grad():
        for name, (op, given, goal) in cases.items():
            inputs = {"plain": (a.clone(), b), "masked": given}
            if name not in ALONE:
                inputs["torch.masked"] = peer(a.clone(), mask), peer(b, mask)
            if name in ARRAYS and timing.DEVICE == "cpu":
                inputs["numpy.ma"] = tuple(np.ma.masked_array(t.clone().numpy(), ~mask.numpy()) for t in (a, b))
            inputs["floor"] = bare(a.clone()), b if given[1] is b else bare(b)
            candidates = {kind: lambda op=op, xy=xy: op(*xy) for kind, xy in inputs.items()}
            candidates |= {"by hand": written[name]} if name in written else {}
            row(name, candidates, goal, rounds=31, calls=CALLS)
    p, q = a.clone().requires_grad_(), b.clone().requires_grad_()
    u, v = mt.masked_tensor(a, mask, requires_grad=True), mt.masked_tensor(b, mask, requires_grad=True)
    f, g = peer(a, mask, requires_grad=True), peer(b, mask, requires_grad=True)
    steps = {
        "plain": step(p, q),
        "masked": step(u, v),
        "by hand": step(p, q, lambda t: torch.where(mask, t, 0)),
        "torch.masked": step(f, g),
    }
    row("mul and sum, forward and backward", steps, "4", rounds=31, calls=CALLS)


def by_hand(a: Tensor, b: Tensor, mask: Tensor, other: Tensor) -> Candidates:
    """Data and mask of the result; reductions by ``torch.where``."""

    def var() -> object:
        number = mask.sum()
        apart = torch.where(mask, a - torch.where(mask, a, 0).sum() / number, 0)
        return apart.square().sum() / (number - 1), number > 1

    return {
        "add, two masks": lambda: (a + b, mask & other),
        "sum": lambda: (torch.where(mask, a, 0).sum(), mask.any()),
        "mean": lambda: torch.where(mask, a, 0).sum() / mask.sum(),
        "amax": lambda: (torch.where(mask, a, -torch.inf).amax(), mask.any()),
        "var": var,
        "softmax": lambda: torch.where(mask, a, -torch.inf).softmax(-1).nan_to_num(0),
    }


def step(left: Tensor, right: Tensor, filled: Callable[[Tensor], Tensor] = lambda t: t) -> Callable[[], None]:
    def run() -> None:
        (filled(left) * filled(right)).sum().backward()  # type: ignore[no-untyped-call]
        left.grad = right.grad = None

    return run
