"""Quantiles and modes of the valid entries of each slice, by one sort; masked where nothing is valid."""

import math

import torch
from torch import Tensor

from .. import masks, pair, shapes
from ..compat import is_readable_memory, is_tracked
from ..layouts import meshes
from ..op import Op
from ..pair import Pair, Payload
from ..select import select
from ..shared.order_statistics import interpolate_rank, quantile_rank
from ..sparse import operators
from ..sparse.rules import sparse_rule
from .order import order, take_chosen

_DTYPES = (torch.float32, torch.float64)


def quantile(
    x: Pair | Tensor,
    q: Pair | Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    skip_nan: bool = False,
    alphap: float = 1.0,
    betap: float = 1.0,
) -> Pair:
    """At rank ``q * (n - 1)`` of the ``n`` valid entries; NaN if there is a valid NaN, unless those are skipped.

    ``alphap`` and ``betap`` are the plotting positions of scipy.stats.mstats.mquantiles.
    """
    x = pair.as_pair(x)
    usual = type(q) is float and 0 <= q <= 1 and interpolation == "linear" and x.data.dtype in _DTYPES
    if not isinstance(q, Pair | Tensor):  # the same in each entry of a vmap: torch 2.11 can check no other
        q = meshes.replicate_like(torch.full((), q, dtype=x.data.dtype, device=x.data.device), x.data)
    known = pair.as_pair(q)
    share = select(known.data, known.mask, 0)
    if not usual:  # torch's checks
        torch.quantile(x.data.detach().new_zeros(1), share.detach(), interpolation=interpolation)
    shape = _result_shape(x.data.shape, dim, keepdim)
    if dim is None or x.data.dim() == 0:
        x = Pair(x.data.reshape(-1), masks.reshape(x.mask, (x.mask.numel(),)), x.payload)
        dim = 0
    if x.data.numel() == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    x = pair.moved(x, torch.movedim, dim, -1)
    mask = masks.any(x.mask, -1, keepdim=True) & known.mask.reshape(-1)
    result = _interpolate(x, share.reshape(-1), mask, interpolation, skip_nan, (alphap, betap))
    shape = (*share.shape, *shape)
    return Pair(result.movedim(-1, 0).reshape(shape), mask.movedim(-1, 0).reshape(shape), Payload.ZERO)


def _result_shape(shape: tuple[int, ...], dim: int | None, keepdim: bool) -> tuple[int, ...]:
    return shapes.reduced_shape(shape, shapes.canonical_dims(dim, len(shape)), keepdim)


def _sorted(x: Pair) -> Tensor:
    """The entries along the last dim: the valid numbers in order, then NaN and what is masked, of whatever value."""
    if is_tracked(x.data) or not is_readable_memory(x.data) or x.data.dtype not in _DTYPES:
        return x.data.gather(-1, order(x, -1))
    return select(x.data, x.mask, math.nan).sort(-1).values  # equal entries need no order where no gradient is taken


def _interpolate(
    x: Pair, share: Tensor, mask: Tensor, interpolation: str, skip_nan: bool, ends: tuple[float, float]
) -> Tensor:
    """The quantiles along the last dim, one per entry of ``share``; 0 outside ``mask``."""
    sorted = _sorted(x)
    nan = x.data.isnan() & x.mask
    nans = masks.count(nan, -1, keepdim=True)  # they are sorted behind the numbers
    rank = quantile_rank(share, masks.count(x.mask, -1, keepdim=True) - nans, None if skip_nan else nans, *ends)
    return interpolate_rank(lambda n: select(sorted.gather(-1, n), mask, 0), rank, interpolation)


def mode(x: Pair, dim: int = -1, keepdim: bool = False) -> tuple[Pair, Pair]:
    """``torch.mode``: the most frequent valid value, or the least of several; each NaN counts separately."""
    if x.data.dim() == 0:
        shapes.canonical_dims(dim, 0)  # raises
        return Pair(x.data.clone(), x.mask), Pair(torch.zeros_like(x.data, dtype=torch.int64), x.mask)
    if x.data.size(dim) == 0 or (x.data.is_complex() and x.data.size(dim) > 1):
        torch.mode(x.data, dim, keepdim)  # raises
    at = order(x, dim)
    sorted, size = x.data.detach().gather(dim, at), x.data.shape[dim]
    place = meshes.replicate_like(torch.arange(size, device=at.device), at)
    place = place.reshape([-1 if d == dim % at.dim() else 1 for d in range(at.dim())])
    first = torch.ones_like(sorted.narrow(dim, 0, 1), dtype=torch.bool)
    first = torch.cat([first, sorted.narrow(dim, 1, size - 1) != sorted.narrow(dim, 0, size - 1)], dim)
    start = select(place.expand(at.shape), first, 0).cummax(dim).values
    n = masks.count(x.mask, dim, keepdim=True)
    length = select(place - start + 1, place < n, 0)
    return take_chosen(x, dim, at.gather(dim, length.argmax(dim, keepdim=True)), n > 0, keepdim)


OPS = [
    Op("quantile", quantile, sparse=sparse_rule(operators.quantile)),
    Op("nanquantile", quantile, {"skip_nan": True}, sparse=sparse_rule(operators.nanquantile)),
    Op("mode", mode, sparse=sparse_rule(operators.mode)),
]
