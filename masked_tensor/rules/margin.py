"""Margin losses: masked classes are left out, and the mean over the classes divides by the valid ones.

A sample counts where its target is valid and the score it names is.
"""

import torch
from torch import Tensor

from .. import masks, pair
from ..errors import expect_positions, expect_shape
from ..op import Op
from ..pair import Pair
from ..select import select, zero_masked
from ..shared.averaging import MEAN, reduce_loss
from .similarity import pairwise_distance

Operand = Pair | Tensor


def multi_margin_loss(
    x: Operand,
    target: Operand,
    p: int = 1,
    margin: float = 1,
    weight: Operand | None = None,
    reduction: int = MEAN,
) -> Pair:
    """``sum over i != y of max(0, margin - x[y] + x[i]) ** p * weight[y] / n`` per sample, for n valid classes."""
    x, t = pair.as_pair(x), pair.as_pair(target)
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    shape, size = t.data.shape, x.data.shape[-1] if x.data.dim() else 1
    batch = tuple(x.data.shape[:-1])
    expect_positions("target", t.data)
    expect_shape("target", t.data, batch, *((), (1,)) * (batch in ((), (1,))))
    data, valid = zero_masked(x).reshape(-1, size), x.mask.reshape(-1, size)
    index = torch.where(t.mask, t.data, 0).reshape(-1, 1)
    hinge = torch.relu(margin - data.gather(1, index) + data) ** p
    mask = t.mask & valid.gather(1, index).reshape(shape)
    if weight is not None:
        w = pair.as_pair(weight)
        expect_shape("weight", w.data, (size,))
        hinge = hinge * zero_masked(w)[index]
        mask = mask & w.mask[index].reshape(shape)
    others = masks.logical_and(valid, torch.arange(size, device=data.device) != index)
    entries = select(hinge, others, 0).sum(1) / masks.count(valid, 1).clamp_min(1)
    return reduce_loss(entries.reshape(shape), mask, reduction, kind="multi_margin_loss")


def multilabel_margin_loss(x: Operand, target: Operand, reduction: int = MEAN) -> Pair:
    """``sum over labels j and other classes i of max(0, 1 - x[j] + x[i]) / n``; a masked label names no class."""
    return multilabel_margin_loss_forward(x, target, reduction)[0]


def multilabel_margin_loss_forward(x: Operand, target: Operand, reduction: int) -> tuple[Pair, Pair]:
    """Also returns the indicator of the labels.  The first valid -1 ends a list of labels."""
    x, t = pair.as_pair(x), pair.as_pair(target)
    expect_positions("target", t.data)
    single = x.data.dim() < 2 and x.data.numel() == 1
    expect_shape("target", t.data, x.data.shape, *(((), (1,)) if single else ()))
    ended = (t.mask & (t.data < 0)).cumsum(-1) > 0 if t.data.dim() else t.mask & (t.data < 0)
    named = t.mask & ~ended
    data, valid, named, labels = (
        v if v.dim() else v.reshape(1) for v in (zero_masked(x), x.mask, named, torch.where(named, t.data, 0))
    )
    named = named & valid.gather(-1, labels)
    is_label = torch.zeros_like(data).scatter_add(-1, labels, named.to(data.dtype)) > 0
    hinge = torch.relu(1 - data.gather(-1, labels).unsqueeze(-1) + data.unsqueeze(-2))
    pairs = named.unsqueeze(-1) & (valid & ~is_label).unsqueeze(-2)
    entries = select(hinge, pairs, 0).sum((-1, -2)) / masks.count(valid, -1).clamp_min(1)
    mask = masks.any(valid, -1) & masks.any(t.mask if t.mask.dim() else t.mask.reshape(1), -1)
    indicator = is_label.to(data.dtype).reshape(x.data.shape)
    return reduce_loss(entries, mask, reduction, kind="multilabel_margin_loss"), Pair(indicator, x.mask)


def triplet_margin_loss(
    anchor: Operand,
    positive: Operand,
    negative: Operand,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = MEAN,
) -> Pair:
    """``max(0, margin + d(anchor, positive) - d(anchor, negative))``, each distance over its pairs of valid entries."""
    sizes = [tuple(pair.data_of(x).shape) for x in (anchor, positive, negative)]
    if len({len(size) for size in sizes}) > 1:
        raise RuntimeError(f"triplet_margin_loss: the operands must have as many dimensions, got shapes {sizes}")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    mask = masks.logical_and(near.mask, far.mask)
    away = select(far.data, mask, 0)
    if swap:
        other = pairwise_distance(positive, negative, p, eps)
        mask = masks.logical_and(mask, other.mask)
        away = torch.min(away, select(other.data, mask, 0))
    entries = torch.clamp_min(margin + select(near.data, mask, 0) - away, 0)
    return reduce_loss(entries, masks.expand_to(mask, entries.shape), reduction, kind="triplet_margin_loss")


OPS = [
    Op("multi_margin_loss", multi_margin_loss),
    Op("multilabel_margin_loss", multilabel_margin_loss),
    Op("multilabel_margin_loss_forward", multilabel_margin_loss_forward),
    Op("triplet_margin_loss", triplet_margin_loss),
]
