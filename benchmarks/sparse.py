"""Sparse reductions and softmax against one scatter over the stored values, and against torch.masked.

    python -m benchmarks.sparse            # 4096 x 4096 at 1 %, and 100,000 x 100,000 with 5e6 entries
    python -m benchmarks.sparse --peer     # with torch.masked (slow: tens of seconds per line at the second size)
    python -m benchmarks.sparse --small    # the first size only

"floor" is the best single scatter or segment reduction over the values that this kind of result allows.
"""

import argparse
import resource
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

import masked_tensor as mt


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


def best(function: Callable[[], object], repeats: int) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


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
    """Both with the pattern of the input as the mask: torch.masked has few sparse forms without one."""
    mask = mt.specified_mask(x)
    here = best(lambda: getattr(mt, name)(x, dim, keepdim=True, mask=mask), 3)
    try:
        theirs = best(lambda: getattr(torch.masked, name)(x, dim, keepdim=True, mask=mask), 1)
    except Exception as reason:
        return f"{here:10.2f}   {type(reason).__name__}"
    return f"{here:10.2f}{theirs:10.1f}{theirs / here:8.1f}"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--peer", action="store_true")
    arguments.add_argument("--small", action="store_true", help="4096 x 4096 only")
    given = arguments.parse_args()
    peer = given.peer
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(f"{'':40}{'floor':>10}{'here':>10}{'ratio':>8}" + (f"{'masked':>10}{'peer':>10}{'ratio':>8}" if peer else ""))
    for size, entries in ((4096, 167772), (100_000, 5_000_000))[: 1 if given.small else 2]:
        for layout in ("coo", "csr"):
            x = example(size, entries, layout)
            for name in ("sum", "mean", "amax", "softmax"):
                for dim in (0, 1):
                    form = getattr(mt, name)
                    keywords = {"keepdim": True} if name != "softmax" else {}
                    repeats = 20 if size < 10_000 else 5
                    least = best(floor(x, name, dim), repeats)
                    here = best(lambda: form(x, dim, **keywords), repeats)  # noqa: B023
                    line = f"{name} {layout} {size} dim {dim}"
                    print(f"{line:40}{least:10.2f}{here:10.2f}{here / least:8.2f}", end="")
                    if peer and name != "softmax":
                        print(against_the_peer(name, x, dim), end="")
                    print(flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
