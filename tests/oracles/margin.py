"""Margin losses, sample by sample."""

import itertools
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..helpers.harness import Masked
from .loss import both, by_entry, reduced


def multi_margin_loss(
    op: Any, x: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Masked:
    x, target = both(x), both(target)
    size = x.data.shape[-1] if x.data.dim() else 1
    w = both(torch.ones(size, dtype=x.data.dtype) if weight is None else weight)
    entries, mask = [], []
    for row, v, t, k in zip(
        x.data.reshape(-1, size),
        x.mask.reshape(-1, size),
        target.data.reshape(-1),
        target.mask.reshape(-1),
        strict=True,
    ):
        mask.append(bool(k and v[t] and w.mask[t]))
        terms = [w.data[t] * max(0, margin - row[t] + row[i]) ** p for i in range(size) if mask[-1] and i != t and v[i]]
        entries.append(sum(terms) / max(1, int(v.sum())) + row.new_zeros(()))
    shape = target.data.shape
    return reduced(torch.stack(entries).reshape(shape), torch.tensor(mask).reshape(shape), reduction)


def multilabel_margin_loss(op: Any, x: Any, target: Any, reduction: str = "mean") -> Masked:
    x, target = both(x), both(target)
    size = x.data.shape[-1] if x.data.dim() else 1
    entries, mask = [], []
    for row, v, labels, known in zip(
        *(t.reshape(-1, size) for t in (x.data, x.mask, target.data, target.mask)), strict=True
    ):
        named = list(itertools.takewhile(lambda t: t >= 0, labels[known].tolist()))
        named = [t for t in named if v[t]]
        others = [i for i in range(size) if v[i] and i not in named]
        terms = [max(0, 1 - row[j] + row[i]) for j, i in itertools.product(named, others)]
        entries.append(sum(terms) / max(1, int(v.sum())) + row.new_zeros(()))
        mask.append(bool(v.any() and known.any()))
    shape = x.data.shape[:-1]
    return reduced(torch.stack(entries).reshape(shape), torch.tensor(mask).reshape(shape), reduction)


def multilabel_soft_margin_loss(op: Any, x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Masked:
    """Its sum over the classes is divided by the number of the valid ones."""
    args = (x, target) if weight is None else (x, target, weight)
    entry = by_entry(lambda a, b, *w, reduction: _soft(a, b, *w), *args, reduction="none")
    total = torch.where(entry.mask, entry.data, 0).sum(-1) / entry.mask.sum(-1).clamp(min=1)
    return reduced(total, entry.mask.any(-1), reduction)


def _soft(x: Tensor, target: Tensor, weight: Tensor | float = 1.0) -> Tensor:
    return -(target * F.logsigmoid(x) + (1 - target) * F.logsigmoid(-x)) * weight


def distance(a: Masked, b: Masked, p: float, eps: float) -> tuple[Tensor, Tensor]:
    size = a.data.shape[-1]
    values, mask = [], (a.mask & b.mask).reshape(-1, size)
    for r, s, v in zip(a.data.reshape(-1, size), b.data.reshape(-1, size), mask, strict=True):
        values.append((r[v] - s[v] + eps).norm(p) if v.any() else r.new_zeros(()))
    shape = a.data.shape[:-1]
    return torch.stack(values).reshape(shape), mask.any(-1).reshape(shape)


def triplet_margin_loss(
    op: Any,
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    distance_function: Any = None,
) -> Masked:
    a, b, c = both(anchor), both(positive), both(negative)
    near, mask = distance(a, b, p, eps)
    far, known = distance(a, c, p, eps)
    mask = mask & known
    if swap:
        other, known = distance(b, c, p, eps)
        far, mask = torch.min(far, other), mask & known
    return reduced(torch.relu(margin + near - far), mask, reduction)


ORACLES = {
    "nn.functional.multi_margin_loss": multi_margin_loss,
    "nn.functional.multilabel_margin_loss": multilabel_margin_loss,
    "nn.functional.multilabel_soft_margin_loss": multilabel_soft_margin_loss,
    "nn.functional.triplet_margin_loss": triplet_margin_loss,
    "nn.functional.triplet_margin_with_distance_loss": triplet_margin_loss,
}
