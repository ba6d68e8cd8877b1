"""Sparse reductions and softmax: 4096 x 4096 at 1 %, and 100,000 x 100,000 with 5 million entries.

``plain`` is the best single scatter or segment reduction over the stored values that this kind of result allows.
"""

import itertools
import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import masked_tensor as mt

from .timing import row


def example(size: int, entries: int, layout: str) -> Tensor:
    key = torch.randint(size * size, (entries,)).unique()
    x = torch.sparse_coo_tensor(
        torch.stack((key // size, key % size)),
        torch.randn(key.numel()),
        (size, size),
        is_coalesced=True,
        check_invariants=False,
    )
    return x if layout == "coo" else x.to_sparse_csr()


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
            reduce = lambda: values.new_zeros(size).scatter_add_(0, index, values)  # noqa: E731
        else:
            reduce = lambda: values.new_full((size,), -torch.inf).scatter_reduce_(0, index, values, "amax")  # noqa: E731
    if name != "softmax":
        return reduce

    def softmax() -> Tensor:
        weights = (values - reduce().index_select(0, index)).exp_()
        return weights / values.new_zeros(size).scatter_add_(0, index, weights).index_select(0, index)

    return softmax


def run(small: bool) -> None:
    warnings.simplefilter("ignore")
    sizes = [(64, 41)] if small else [(4096, 167_772), (100_000, 5_000_000)]
    for (size, entries), layout in itertools.product(sizes, ("coo", "csr")):
        x = example(size, entries, layout)
        for name, dim in itertools.product(("sum", "mean", "amax", "softmax"), (0, 1)):
            keywords = {"keepdim": True} if name != "softmax" else {}
            call = partial(getattr(mt, name), x, dim, **keywords)
            candidates: dict[str, Callable[[], object]] = {"plain": floor(x, name, dim), "masked": call}
            if size < 10_000 and (layout == "csr" or name == "sum") and name != "softmax":  # minutes at the second size
                peer, mask = getattr(torch.masked, name), mt.extend.specified_mask(x)
                candidates["torch.masked"] = partial(peer, x, dim, keepdim=True, mask=mask)
            row(f"{name}({dim}), {layout}, {size}", candidates, "2", rounds=3)
