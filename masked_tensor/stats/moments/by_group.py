"""Moments of columns by group: each group of rows has its own, and groups are known by an integer key."""

import torch
from torch import Tensor

from ...extend import select
from .. import settings
from .columns import Moments, merge_moments, moments_around, no_moments


def moments_of_groups(x: Tensor, mask: Tensor, weight: Tensor | None, at: Tensor, groups: int) -> Moments:
    """The moments ``(G, F)`` of the valid entries of ``x`` (N, F); row i is of group ``at[i]``, from 0 to G - 1."""
    rows = max(1, settings.CHUNK // max(1, x.shape[1]))
    parts = []
    for start in range(0, max(1, len(x)), rows):
        some = slice(start, start + rows)
        parts.append(_of_chunk(x[some], mask[some], None if weight is None else weight[some], at[some], groups))
    return parts[0] if len(parts) == 1 else merge_moments(parts)


def missing_of_groups(mask: Tensor, at: Tensor, groups: int) -> Tensor:
    """How many entries of each group are masked ``(G, F)``."""
    zero = torch.zeros(groups, mask.shape[1], dtype=torch.float64, device=mask.device)
    return _added(zero, at, (~mask).double())


def put_groups(values: Tensor, at: Tensor, empty: Tensor) -> Tensor:
    """``values`` (..., G, F) where groups are of a longer list ``empty``, group i at ``at[i]``."""
    return empty.index_copy(-2, at, values)


def empty_moments(groups: int, columns: int, device: torch.device) -> Tensor:
    """The moments of groups without a row, ``(6, G, F)``."""
    return torch.stack(no_moments(columns, device)).unsqueeze(1).repeat(1, groups, 1)


def _of_chunk(x: Tensor, mask: Tensor, weight: Tensor | None, at: Tensor, groups: int) -> Moments:
    zero = torch.zeros(groups, x.shape[1], dtype=torch.float64, device=x.device)
    known = mask.double() if weight is None else select(weight.double().expand(x.shape), mask, 0)
    values = select(x, mask, 0).double()
    count = _added(zero, at, known)
    near = _added(zero, at, values * known) / torch.where(count > 0, count, 1)
    rest = select(values - near[at], mask, 0)
    left, squares = _added(zero, at, rest * known), _added(zero, at, rest * rest * known)
    low = _extreme(zero + torch.inf, at, select(x, mask, torch.inf).double(), "amin")
    high = _extreme(zero - torch.inf, at, select(x, mask, -torch.inf).double(), "amax")
    return moments_around(count, near, left, squares, low, high)


def _added(into: Tensor, at: Tensor, rows: Tensor) -> Tensor:
    return into.scatter_add(0, at.unsqueeze(1).expand(rows.shape), rows.contiguous())


def _extreme(into: Tensor, at: Tensor, rows: Tensor, reduce: str) -> Tensor:
    return into.scatter_reduce(0, at.unsqueeze(1).expand(rows.shape), rows.contiguous(), reduce)


def rows_of_groups(groups: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Where each key stands among ``groups``, which rise; and whether it is there at all."""
    at = torch.searchsorted(groups, keys)
    there = at < len(groups)
    at = at.clamp_max(max(0, len(groups) - 1))
    return at, there & (groups[at] == keys) if len(groups) else there
