"""Sparse reductions and softmax against one scatter over the stored values, and against torch.masked.

    python -m benchmarks.sparse            # 4096 x 4096 at 1 %, and 100,000 x 100,000 with 5e6 entries
    python -m benchmarks.sparse --peer     # with torch.masked, one run per line (slow at the second size)
    python -m benchmarks.sparse --small    # the first size only; --large: the second

"floor" is the best single scatter or segment reduction over the values that this kind of result allows; "memory" is
what a call needs at its peak beyond its input, as a multiple of the input.  Targets: 2x, 4x; the peer 20x.
"""

import argparse
import ctypes
import itertools
import time
import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import masked_tensor as mt

from .timing import medians


def example(size: int, entries: int, layout: str) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    key = torch.randint(size * size, (entries,), generator=generator).unique()
    x = torch.sparse_coo_tensor(
        torch.stack((key // size, key % size)),
        torch.randn(key.numel(), generator=generator),
        (size, size),
        is_coalesced=True,
        check_invariants=False,
    )
    return x if layout == "coo" else x.to_sparse_csr()


def extra_memory(function: Callable[[], object]) -> float:
    """How many bytes the call needs at its peak beyond what is there before (Linux: the high-water mark is reset)."""
    function()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed is not there: it counts when it is needed again
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")
    before = resident("VmRSS")
    function()
    return resident("VmHWM") - before


def resident(field: str) -> float:
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) * 1024 for line in status if line.startswith(field))


def size_of(x: Tensor) -> int:
    parts = (x.indices(),) if x.layout is torch.sparse_coo else (x.crow_indices(), x.col_indices())
    return sum(t.numel() * t.itemsize for t in (*parts, x.values()))


def floor(x: Tensor, name: str, dim: int) -> Callable[[], Tensor]:
    """One scatter (or, along the runs of CSR, one segment reduction) over the values."""
    size, values = x.shape[0], x.values()
    kind = {"sum": "sum", "mean": "sum", "amax": "max", "softmax": "max"}[name]
    if x.layout is torch.sparse_csr and dim == 1:
        offsets = x.crow_indices()
        reduce = lambda: torch.segment_reduce(values, kind, offsets=offsets)  # noqa: E731
        index = torch.arange(size).repeat_interleave(offsets.diff())
    else:
        index = x.col_indices() if x.layout is torch.sparse_csr else x.indices()[1 - dim]
        if kind == "sum":
            reduce = lambda: torch.zeros(size).scatter_add_(0, index, values)  # noqa: E731
        else:
            reduce = lambda: torch.full((size,), -torch.inf).scatter_reduce_(0, index, values, "amax")  # noqa: E731
    if name != "softmax":
        return reduce

    def softmax() -> Tensor:
        weights = (values - reduce().index_select(0, index)).exp_()
        return weights / torch.zeros(size).scatter_add_(0, index, weights).index_select(0, index)

    return softmax


def against_the_peer(name: str, x: Tensor, dim: int) -> str:
    """Both with the pattern of the input as the mask: torch.masked has few sparse forms without one.  One run of it."""
    mask = mt.specified_mask(x)
    here = medians({"here": lambda: getattr(mt, name)(x, dim, keepdim=True, mask=mask)}, 3)["here"]
    start = time.perf_counter()
    try:
        getattr(torch.masked, name)(x, dim, keepdim=True, mask=mask)
    except Exception as reason:
        return f"{here * 1e3:11.2f}  {type(reason).__name__}"
    theirs = time.perf_counter() - start
    return f"{here * 1e3:11.2f}{theirs * 1e3:11.1f}{theirs / here:8.1f}"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--peer", action="store_true")
    arguments.add_argument("--small", action="store_true", help="4096 x 4096 only")
    arguments.add_argument("--large", action="store_true", help="100,000 x 100,000 only")
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    header = f"{'milliseconds':30}{'floor':>9}{'here':>9}{'ratio':>7}{'memory':>8}"
    print(header + (f"{'masked':>11}{'peer':>11}{'ratio':>8}" if given.peer else ""))
    sizes = [(4096, 167772)] * (not given.large) + [(100_000, 5_000_000)] * (not given.small)
    for (size, entries), layout in itertools.product(sizes, ("coo", "csr")):
        x = example(size, entries, layout)
        for name, dim in itertools.product(("sum", "mean", "amax", "softmax"), (0, 1)):
            keywords = {"keepdim": True} if name != "softmax" else {}
            call = partial(getattr(mt, name), x, dim, **keywords)
            times = medians({"floor": floor(x, name, dim), "here": call}, 60 if size < 10_000 else 5)
            ratio = times["here"] / times["floor"]
            line = f"{name} {layout} {size} dim {dim}"
            print(f"{line:30}{times['floor'] * 1e3:9.2f}{times['here'] * 1e3:9.2f}{ratio:7.2f}", end="")
            print(f"{extra_memory(call) / size_of(x):7.2f}x", end="")
            print(against_the_peer(name, x, dim) if given.peer and name != "softmax" else "", flush=True)


if __name__ == "__main__":
    main()
