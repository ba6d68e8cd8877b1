"""The price of a masked op on a 4x4 tensor, as a multiple of the plain op's time (interleaved, medians).

``python -m benchmarks.tiny [words of the names]``
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import masked_tensor as mt

from .timing import many, medians

ROUNDS, CALLS = 101, 200


def cases() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    mask = torch.rand(4, 4) < 0.7
    x, y, z = (mt.as_masked_tensor(v, m) for v, m in ((a, mask), (b, mask), (b, torch.rand(4, 4) < 0.7)))
    p, q = a.clone().requires_grad_(), b.clone().requires_grad_()
    u, v = mt.masked_tensor(a, mask, requires_grad=True), mt.masked_tensor(b, mask, requires_grad=True)

    def step(left: torch.Tensor, right: torch.Tensor) -> Callable[[], None]:
        def run() -> None:
            left.grad = right.grad = None
            (left * right).sum().backward()

        return run

    return {
        "add (one mask)": (lambda: a + b, lambda: x + y),
        "add (two masks)": (lambda: a + b, lambda: x + z),
        "add plain": (lambda: a + b, lambda: x + b),
        "mul (one mask)": (lambda: a * b, lambda: x * y),
        "mul 2.0": (lambda: a * 2.0, lambda: x * 2.0),
        "relu": (lambda: a.relu(), lambda: x.relu()),
        "exp": (lambda: a.exp(), lambda: x.exp()),
        "add_": (lambda: a.add_(b), lambda: x.add_(y)),
        "dropout (eval)": (
            lambda: torch.nn.functional.dropout(a, 0.5, False),
            lambda: torch.nn.functional.dropout(x, 0.5, False),
        ),
        "mul + sum, forward and backward": (step(p, q), step(u, v)),
    }


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'4x4 float32':34} {'plain us':>9} {'masked us':>10} {'ratio':>6}")
    for name, (plain, masked) in cases().items():
        if len(sys.argv) > 1 and not any(a in name for a in sys.argv[1:]):
            continue
        with torch.set_grad_enabled("backward" in name):
            pair = {"plain": many(plain, CALLS), "masked": many(masked, CALLS)}
            a, b = medians(pair, ROUNDS, time.process_time).values()  # what others do on the machine does not count
        print(f"{name:34} {a / CALLS * 1e6:9.2f} {b / CALLS * 1e6:10.2f} {b / a:6.1f}", flush=True)


if __name__ == "__main__":
    main()
