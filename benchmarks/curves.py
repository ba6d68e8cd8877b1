"""How cost grows: with the number of elements, the share of masked entries, and the share of padding."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt

from .timing import row

WIDTH = 64  # of a row


def run(small: bool) -> None:
    weight = torch.randn(WIDTH, WIDTH)
    ops: dict[str, Callable[[Tensor], Tensor]] = {
        "add": lambda x: x + x,
        "sum": lambda x: x.sum(-1),
        "softmax": lambda x: x.softmax(-1),
        "linear": lambda x: F.linear(x, weight),
    }
    with torch.no_grad():
        for name, op in ops.items():
            for rows in sizes(small):
                data, mask = torch.randn(rows, WIDTH), torch.rand(rows, WIDTH) < 0.7
                calls = max(1, (1 << 12) // rows)
                pair = {"plain": data, "masked": mt.as_masked_tensor(data, mask)}
                candidates = {kind: lambda op=op, x=x: op(x) for kind, x in pair.items()}
                row(f"{name} of {rows * WIDTH} elements", candidates, rounds=9, calls=calls)
        rows = 8 if small else 1 << 14
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            data, mask = torch.randn(rows, WIDTH), torch.rand(rows, WIDTH) >= share
            x = mt.as_masked_tensor(data, mask)
            for name, op in ops.items():
                candidates = {"plain": lambda op=op, x=data: op(x), "masked": lambda op=op, x=x: op(x)}
                row(f"{name}, {share:.0%} random_mask", candidates, rounds=5)


def sizes(small: bool) -> Iterator[int]:
    """Numbers of rows: powers of four, so that every threshold lies between two."""
    yield from (4**n for n in range(2 if small else 10))
