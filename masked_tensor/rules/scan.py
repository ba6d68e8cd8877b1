"""Scans: a masked-out entry is skipped, the total carries across it, and its result is masked."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..compat import in_transform
from ..kernels.identity import identity
from ..op import Op
from ..packing import per_sequence as packed
from ..pair import Pair
from ..select import fill_masked
from ..shared import strict_counts
from ..sparse.rules import scan, scan_extreme


def accumulate(
    x: Pair, dim: int, *, scan: Callable[..., Tensor], identity: float, dtype: torch.dtype | None = None
) -> Pair:
    """cumsum, cumprod: integers promote as in the plain op."""
    if strict_counts.KNOWN:
        strict_counts.refuse(scan.__name__, x)
    return Pair(scan(fill_masked(x, identity), dim, dtype=dtype), x.mask)


def extreme(x: Pair, dim: int, *, which: str) -> tuple[Pair, Pair]:
    """cummax, cummin: the extreme so far, and the last valid position that attained it."""
    scan = torch.cummax if which == "max" else torch.cummin
    values, indices = scan(fill_masked(x, identity(which, x.data.dtype)), dim)
    return Pair(values, x.mask), Pair(indices, x.mask)


def logcumsumexp(x: Pair, dim: int) -> Pair:
    """``log(cumsum(exp(x)))``."""
    if in_transform():
        return _logcumsumexp_valid_first(x, dim)
    return Pair(torch.logcumsumexp(fill_masked(x, -float("inf")), dim), x.mask)


def _logcumsumexp_valid_first(x: Pair, dim: int) -> Pair:
    """The same of the valid entries moved to the front.

    The formula of torch's gradient, differentiated in forward mode, is wrong beside results of -inf.
    """
    order = torch.sort(x.mask.to(torch.uint8), dim=dim, descending=True, stable=True).indices
    data, mask = torch.gather(x.data, dim, order), torch.gather(x.mask, dim, order)
    some = mask.any(dim, True) if mask.dim() else mask
    filled = torch.where(mask, data, torch.where(some, -float("inf"), 0.0).to(data.dtype))
    return Pair(torch.gather(torch.logcumsumexp(filled, dim), dim, order.argsort(dim)), x.mask)


OPS = [
    Op("cumsum", accumulate, {"scan": torch.cumsum, "identity": 0}, sparse=scan, packed=packed.along_any(fill="sum")),
    Op(
        "cumprod", accumulate, {"scan": torch.cumprod, "identity": 1}, sparse=scan, packed=packed.along_any(fill="prod")
    ),
    Op("cummax", extreme, {"which": "max"}, sparse=scan_extreme, packed=packed.along_any(ranked=True, fill="max")),
    Op("cummin", extreme, {"which": "min"}, sparse=scan_extreme, packed=packed.along_any(ranked=True, fill="min")),
    Op("logcumsumexp", logcumsumexp, sparse=scan, packed=packed.along_any(fill="max")),
    Op("_logcumsumexp", logcumsumexp),
]
