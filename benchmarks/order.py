"""Order, gather and fill of a (4096, 4096) float32 tensor, half of it masked at random, as ratios to the unmasked op.

``python -m benchmarks.order [rows]``: all candidates run in turn in one process; medians.  The target, printed beside
each ratio, is 1.5 times the plain op plus one pass over the mask.  ``mt.masked_fill`` is compared with itself on plain
data, which is faster than torch's.
"""

import sys
from collections.abc import Callable

import torch

import masked_tensor as mt

from .timing import medians

SIZE = 4096


def main(rows: int = SIZE) -> None:
    """Prints the table."""
    torch.set_num_threads(1)
    data, mask = torch.randn(rows, SIZE), torch.rand(rows, SIZE) < 0.5
    x = mt.masked_tensor(data, mask)
    padded = mt.masked_tensor(data, torch.rand(rows, 1) < 0.5)
    index, where = torch.randint(0, SIZE, (rows, SIZE)), torch.rand(rows, SIZE) < 0.5
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
    for name, op in ops.items():
        times = medians(
            {
                "plain": lambda op=op: op(data),
                "mask pass": lambda: mask.clone(),
                "random": lambda op=op: op(x),
                "rows": lambda op=op: op(padded),
            }
        )
        plain, target = times["plain"], 1.5 + times["mask pass"] / times["plain"]
        ratios = "   ".join(
            f"{kind} mask {times[key] / plain:5.2f}x (target {target:.2f}x)"
            for kind, key in (("random", "random"), ("row", "rows"))
        )
        print(f"{name:16}{plain * 1e3:8.1f} ms   {ratios}", flush=True)


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
