"""Scans: a masked-out entry is skipped, the total carries across it, and the hole stays masked."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..op import Op
from ..packing import per_sequence as packed
from ..pair import Pair
from ..select import filled
from ..shared import strict_counts
from ..shared.identity import identity
from ..sparse.rules import scan, scan_extreme


def accumulate(
    x: Pair, dim: int, *, scan: Callable[..., Tensor], identity: float, dtype: torch.dtype | None = None
) -> Pair:
    """cumsum, cumprod: integers promote as in the plain op."""
    if strict_counts.KNOWN:
        strict_counts.refuse(scan.__name__, x)
    return Pair(scan(filled(x, identity), dim, dtype=dtype), x.mask)


def extreme(x: Pair, dim: int, *, which: str) -> tuple[Pair, Pair]:
    """cummax, cummin: the extreme so far and the last place where it was attained, a valid one."""
    scan = torch.cummax if which == "max" else torch.cummin
    values, indices = scan(filled(x, identity(which, x.data.dtype)), dim)
    return Pair(values, x.mask), Pair(indices, x.mask)


def logcumsumexp(x: Pair, dim: int) -> Pair:
    """``log(cumsum(exp(x)))``."""
    return Pair(torch.logcumsumexp(filled(x, -float("inf")), dim), x.mask)


ROWS = [
    Op("cumsum", accumulate, {"scan": torch.cumsum, "identity": 0}, sparse=scan, rows=packed.along()),
    Op("cumprod", accumulate, {"scan": torch.cumprod, "identity": 1}, sparse=scan, rows=packed.along()),
    Op("cummax", extreme, {"which": "max"}, sparse=scan_extreme, rows=packed.along(ranked=True)),
    Op("cummin", extreme, {"which": "min"}, sparse=scan_extreme, rows=packed.along(ranked=True)),
    Op("logcumsumexp", logcumsumexp, sparse=scan, rows=packed.along()),
    Op("_logcumsumexp", logcumsumexp),
]
