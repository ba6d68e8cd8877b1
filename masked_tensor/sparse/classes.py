"""Scores of classes in sparse tensors: only those that the targets name are looked up; the others are summed."""

import torch
from torch import Tensor

from .. import masks
from ..kernels.precision import rounds_noticeably
from ..layouts import validity
from ..layouts.elements import is_sparse, zeros_read
from ..layouts.positions import find, ravel, unravel
from ..pair import Pair
from ..shared.averaging import reduce_loss
from . import slice_reductions
from .reduction import outputs, take_valid


def cross_entropy(
    x: Tensor,
    mask: Tensor | None,
    target: Tensor,
    named: Tensor | None,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    *,
    logits: bool,
) -> Pair:
    """The loss of classes; ``named`` are the targets that are valid.  ``logits=False``: the scores are logarithms."""
    counts = target != ignore_index
    counts = counts if named is None else masks.logical_and(counts, named)
    score, valid = named_scores(x, mask, target, counts, logits=logits)
    classes = None if weight is None else weight[torch.where(valid, target, 0).long()]
    kind = "cross_entropy" if logits else "nll_loss"
    return reduce_loss(-score if classes is None else -score * classes, valid, reduction, classes, kind)


def plain_classes(target: Tensor, weight: object = None, label_smoothing: float = 0.0) -> bool:
    """Whether sparse scores take these arguments: strided class indices, a plain weight, nothing smoothed."""
    indices = not (is_sparse(target) or target.is_floating_point() or target.is_complex())
    return indices and not label_smoothing and not isinstance(weight, Pair)


def named_scores(
    x: Tensor, mask: Tensor | None, target: Tensor, counts: Tensor, *, logits: bool
) -> tuple[Tensor, Tensor]:
    """The score of the class (dimension 1, or 0 of a vector) that each target names, and whether the sample counts.

    ``counts`` says which targets name a class, and a class of the sample has to be valid; 0 where it does not count,
    -inf of a masked class.  ``logits``: minus the logsumexp of the valid classes, the unspecified ones among them.
    """
    dim = min(x.dim() - 1, 1)
    rest = [d for d in range(x.dim()) if d != dim]
    _check_shape(target, x.shape, dim)
    number = torch.arange(target.numel(), device=target.device)
    if mask is not None:
        several = torch.as_tensor(validity.counts(mask, x.shape, (dim,), number))
        counts = counts & (several != 0).view(target.shape)
    index = _check_classes(target, counts, x.shape[dim])
    place = {dim: index, **dict(zip(rest, unravel(number, target.shape), strict=True))}
    key = ravel(lambda d: place[d], x.shape, range(x.dim()))
    t = take_valid(x, mask)  # once: torch's engine cannot add up two gradients of most layouts
    assert key is not None
    stored, order = t.position(range(x.dim())).sort()
    score = _read(t.values[order], stored, key)
    if mask is not None:  # before the logsumexp is taken off, which also sends the other classes a gradient
        valid = validity.look_up(mask, x.shape, lambda d: place[d], index.shape[0])
        score = torch.where(valid, score, -torch.inf)
    if logits:
        o = outputs(t, (dim,), True, False)
        wide = t.values.float() if rounds_noticeably(t.values.dtype) else t.values
        total = _read(slice_reductions.logsumexp(wide, o.slices), o.keys, number)
        total = total * torch.where(total == torch.inf, torch.nan, 1)  # as softmax has it, of a class of score inf
        score = (score - total).to(t.values.dtype)
    return torch.where(counts, score.view(target.shape), 0), counts


def _read(v: Tensor, table: Tensor, key: Tensor) -> Tensor:
    """The values at ``key``, of those at the sorted positions ``table``; 0 where there are none."""
    place, found = find(key, table)
    return torch.where(found, v[place], 0) if table.numel() else zeros_read(v, key.shape)


def _check_shape(target: Tensor, shape: torch.Size, dim: int) -> None:
    if tuple(target.shape) != (*shape[:dim], *shape[dim + 1 :]):
        raise ValueError(
            f"target must have the shape of the scores without the classes, got {tuple(target.shape)} for scores of "
            f"shape {tuple(shape)}"
        )


def _check_classes(target: Tensor, counts: Tensor, size: int) -> Tensor:
    """The class of each target in a row, 0 for those that do not count."""
    index = torch.where(counts, target, 0).reshape(-1).long()
    outside = ((index < 0) | (index >= size)).nonzero().view(-1)
    if outside.numel():
        raise IndexError(f"Target {int(index[outside[0]])} is out of bounds: there are {size} classes.")
    return index
