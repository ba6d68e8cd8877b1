"""Tiny tensors: 4 x 4, float32, where the time is that of the calls.

The floor of an op whose kernel is written in Python and which makes a wrapper is about 4.7 times ``relu``.
"""

from collections.abc import Callable

import torch
from torch import Tensor

import masked_tensor as mt

from .timing import row

CALLS = 200


def run(small: bool) -> None:
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    mask, other = torch.rand(4, 4) < 0.7, torch.rand(4, 4) < 0.7
    x, y, z = mt.as_masked_tensor(a, mask), mt.as_masked_tensor(b, mask), mt.as_masked_tensor(b, other)
    cases: dict[str, tuple[Callable[[], object], Callable[[], object], str]] = {
        "add, one mask": (lambda: a + b, lambda: x + y, "6"),
        "add, two masks": (lambda: a + b, lambda: x + z, ""),
        "add a plain tensor": (lambda: a + b, lambda: x + b, ""),
        "mul": (lambda: a * b, lambda: x * y, "6"),
        "mul by 2.0": (lambda: a * 2.0, lambda: x * 2.0, ""),
        "relu": (lambda: a.relu(), lambda: x.relu(), "5.5"),
        "exp": (lambda: a.exp(), lambda: x.exp(), ""),
        "add_": (lambda: a.add_(b), lambda: x.add_(y), ""),
        "sum": (lambda: a.sum(), lambda: x.sum(), "7"),
        "mean": (lambda: a.mean(), lambda: x.mean(), ""),
        "amax": (lambda: a.amax(), lambda: x.amax(), ""),
        "var": (lambda: a.var(), lambda: x.var(), "8"),
        "softmax": (lambda: a.softmax(-1), lambda: x.softmax(-1), "8"),
        "dropout, eval": (lambda: torch.dropout(a, 0.5, False), lambda: torch.dropout(x, 0.5, False), ""),
    }
    with torch.no_grad():
        for name, (plain, masked, goal) in cases.items():
            row(name, {"plain": plain, "masked": masked}, goal, rounds=31, calls=CALLS)
    p, q = a.clone().requires_grad_(), b.clone().requires_grad_()
    u, v = mt.masked_tensor(a, mask, requires_grad=True), mt.masked_tensor(b, mask, requires_grad=True)
    both = {"plain": step(p, q), "masked": step(u, v)}
    row("mul and sum, forward and backward", both, "4", rounds=31, calls=CALLS)


def step(left: Tensor, right: Tensor) -> Callable[[], None]:
    def run() -> None:
        left.grad = right.grad = None
        (left * right).sum().backward()  # type: ignore[no-untyped-call]

    return run
