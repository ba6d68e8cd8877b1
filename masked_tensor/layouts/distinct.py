"""Distinct values of sparse tensors: the valid zeros that nobody stores are counted, never written out."""

import torch
from torch import Tensor

from . import validity
from .places import Places
from .ranks import runs
from .reduction import taken


def unique(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The distinct valid values and how often each occurs, strided."""
    t = taken(x, mask)
    found, counts = t.values.unique(return_counts=True)
    zeros = _valid(x, mask) - t.values.numel()
    zero = torch.zeros_like(zeros, dtype=found.dtype)
    found, inverse = torch.cat((found, zero[zeros > 0])).unique(return_inverse=True)
    counts = torch.cat((counts, zeros[zeros > 0]))
    return found, torch.zeros_like(found, dtype=torch.int64).index_add(0, inverse, counts)


def unique_consecutive(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The runs of equal values among the valid elements in row-major order, and their lengths, strided.

    Between two stored values whose ranks among the valid elements are not neighbours lies a run of zeros.
    """
    t = taken(x, mask)
    rank = Places(mask, x.shape, range(x.dim()), x.device).before(t.coordinate).expand(t.values.shape)
    rank, order = rank.sort()
    gaps = torch.diff(rank, prepend=rank.new_full((1,), -1), append=_valid(x, mask)) - 1
    stored = t.values[order]
    values = torch.stack((torch.zeros_like(stored), stored), 1).view(-1)
    values = torch.cat((values, stored.new_zeros(1)))  # zeros, value, zeros, value, ... zeros
    lengths = torch.cat((torch.stack((gaps[:-1], torch.ones_like(rank)), 1).view(-1), gaps[-1:]))
    present = (lengths > 0).nonzero().view(-1)
    values, lengths = values[present], lengths[present]
    run = runs(values.detach())
    size = torch.bincount(run)
    return values[size.cumsum(0) - size], torch.zeros_like(size).index_add(0, run, lengths)


def _valid(x: Tensor, mask: Tensor | None) -> Tensor:
    """The number of valid elements, 1-d."""
    number = validity.counts(mask, x.shape, range(x.dim()), torch.zeros(1, dtype=torch.int64, device=x.device))
    return torch.as_tensor(number, device=x.device).reshape(1)
