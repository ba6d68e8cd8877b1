"""Elementwise ops on (4096, 4096) float32 against the plain op and ``torch.masked`` (interleaved, medians).

``python benchmarks/pointwise.py [size]``
"""

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.masked import masked_tensor as peer

import masked_tensor as mt

ROUNDS = 7


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratios(plain: Callable[[], Any], *others: Callable[[], Any]) -> tuple[float, list[float]]:
    """The plain op's milliseconds, and the medians of the others' ratios to it in the same round."""
    times = [[seconds(run) for run in (plain, *others)] for _ in range(ROUNDS)]
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    return medians[0] * 1e3, [statistics.median(t[i] / t[0] for t in times) for i in range(1, len(medians))]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    warnings.simplefilter("ignore")
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    a, b = torch.rand(size, size) + 0.1, torch.rand(size, size) + 0.1
    masks = {
        "random, shared": (torch.rand(size, size) < 0.7,) * 2,
        "random, two": (torch.rand(size, size) < 0.7, torch.rand(size, size) < 0.7),
        "rows, two": ((torch.rand(size, 1) < 0.7).expand(size, size), (torch.rand(size, 1) < 0.7).expand(size, size)),
    }
    ops: dict[str, Callable[..., Any]] = {
        "add": torch.add,
        "mul": torch.mul,
        "relu": lambda x, y: torch.relu(x),
        "exp": lambda x, y: torch.exp(x),
        "x * 2": lambda x, y: x * 2.0,
        "where": lambda x, y: torch.where(y > 0.5, x, y),
    }
    print(f"({size}, {size}) float32    {'plain ms':>9} {'masked':>7} {'torch.masked':>13}")
    for mask_name, (m, n) in masks.items():
        x, y = mt.as_masked_tensor(a, m), mt.as_masked_tensor(b, n)
        p, q = peer(a, m.contiguous()), peer(b, m.contiguous())  # the peer refuses two different masks
        for name, op in ops.items():
            runs = [lambda: op(x, y)]  # noqa: B023 (called within this round)
            try:
                op(p, q)
                runs.append(lambda: op(p, q))  # noqa: B023
            except (TypeError, RuntimeError, ValueError):
                pass
            plain, found = ratios(lambda: op(a, b), *runs)  # noqa: B023
            theirs = f"{found[1]:13.1f}" if len(found) > 1 else f"{'-':>13}"
            print(f"{mask_name:15} {name:8} {plain:9.1f} {found[0]:7.2f} {theirs}", flush=True)


if __name__ == "__main__":
    main()
