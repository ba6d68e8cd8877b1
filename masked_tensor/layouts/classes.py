"""Scores of classes in sparse tensors: only those that the targets name are looked up; the others are summed."""

import torch
from torch import Tensor

from . import laws, validity
from .elements import at
from .keys import ravel, unravel
from .reduction import reduce


def named(x: Tensor, mask: Tensor | None, target: Tensor, counts: Tensor, *, logits: bool) -> tuple[Tensor, Tensor]:
    """The score of the class (dimension 1, or 0 of a vector) that each target names, and whether it is valid.

    ``counts`` says which targets name a class; 0 where the result is not valid.  ``logits``: minus the logsumexp of
    the valid classes, the unspecified ones among them.
    """
    dim = min(x.dim() - 1, 1)
    rest = [d for d in range(x.dim()) if d != dim]
    if tuple(target.shape) != tuple(x.shape[d] for d in rest):
        raise ValueError(
            f"target must have the shape of the scores without the classes, got {tuple(target.shape)} for scores of "
            f"shape {tuple(x.shape)}"
        )
    index = torch.where(counts, target, 0).reshape(-1).long()
    outside = ((index < 0) | (index >= x.shape[dim])).nonzero().view(-1)
    if outside.numel():
        raise IndexError(f"Target {int(index[outside[0]])} is out of bounds: there are {x.shape[dim]} classes.")
    number = torch.arange(index.shape[0], device=index.device)
    place = {dim: index, **dict(zip(rest, unravel(number, target.shape), strict=True))}
    key = ravel(lambda d: place[d], x.shape, range(x.dim()))
    assert key is not None
    valid = counts.reshape(-1)
    if mask is not None:
        valid = valid & validity.looked_up(mask, x.shape, lambda d: place[d], index.shape[0])
    score = at(x, key)
    if logits:
        total, _ = reduce(laws.logsumexp, x, mask, (dim,), everywhere=True)
        score = score - at(total, number)
    return torch.where(valid, score, 0).view(target.shape), valid.view(target.shape)
