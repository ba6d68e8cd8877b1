"""Histograms of columns, and the quantiles that can be read from them.

The bins are numpy's: each takes its lower edge and not its upper one, the last takes both.  Before the first and after
the last edge there is one more bin each.
"""

import torch
from torch import Tensor

from ..extend.data import quantile_rank


def checked_edges(edges: Tensor, features: int) -> Tensor:
    """The edges of each column ``(features, n)``, in float64."""
    edges = torch.as_tensor(edges).detach().double()
    edges = edges.unsqueeze(0) if edges.dim() == 1 else edges
    fits = edges.dim() == 2 and edges.shape[0] in (1, features) and edges.shape[1] > 0
    if not fits or not bool((edges.diff(dim=1) >= 0).all()):
        raise ValueError(f"edges must rise, and be (n,) or ({features}, n), got {tuple(edges.shape)}")
    return edges.expand(features, -1).contiguous()


def bins_of(x: Tensor, mask: Tensor, weight: Tensor | None, edges: Tensor) -> Tensor:
    """The sum of weights in each bin ``(F, n + 1)`` of ``x`` (N, F); the weights are 0 where it is masked."""
    values = x.double().T.contiguous()
    at = torch.searchsorted(edges, values, right=True)
    if edges.shape[1] > 1:
        at -= (values == edges[:, -1:]).to(at.dtype)
    add = (mask if weight is None else weight.expand(mask.shape)).T.double()
    return add.new_zeros(len(edges), edges.shape[1] + 1).scatter_add_(1, at, add.contiguous())


def bracket(edges: Tensor, bins: Tensor, low: Tensor, high: Tensor, q: float) -> tuple[Tensor, Tensor, Tensor]:
    """For each column, the values between which the quantile lies, and where between them, from 0 to 1.

    Bins of whole numbers hold as many entries, and the quantile is torch's: entry ``q * (number - 1)``, counted from 0.
    Other bins hold weights, and it is the entry at which their sum reaches ``q * total``.
    """
    if not 0 <= q <= 1:
        raise ValueError(f"q must be from 0 to 1, got {q}")
    edge = torch.cat([low.unsqueeze(1), edges, high.unsqueeze(1)], 1).clamp(low.unsqueeze(1), high.unsqueeze(1))
    upto = bins.cumsum(1)
    number, total = (bins == bins.round()).all(1), upto[:, -1]
    rank, point = quantile_rank(q, total), q * total
    rounds = bins.shape[1] * torch.finfo(bins.dtype).eps  # a sum of weights that is the point may round to either side
    first, last = (
        (upto <= torch.where(number, entry, sum_).unsqueeze(1)).sum(1).clamp_max(bins.shape[1] - 1)
        for entry, sum_ in ((rank.floor(), point * (1 - rounds)), (rank.ceil(), point * (1 + rounds)))
    )
    before = torch.where(first > 0, _pick(upto, (first - 1).clamp_min(0)), 0)
    inside = _pick(upto, last) - before
    share = (torch.where(number, rank + 0.5, point) - before) / torch.where(inside > 0, inside, 1)
    return _pick(edge, first), _pick(edge, last + 1), share.clamp(0, 1)


def _pick(x: Tensor, at: Tensor) -> Tensor:
    """The entry at ``at`` in each row of ``x``."""
    return x.gather(1, at.unsqueeze(1)).squeeze(1)
