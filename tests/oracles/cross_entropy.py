"""Cross entropy, target by target."""

from typing import Any

import torch

from ..helpers.harness import Masked
from .loss import both, reduced, samples


def cross_entropy(
    op: Any,
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    score: Any = torch.log_softmax,
) -> Masked:
    x, target = both(x), both(target)
    dim = 0 if x.data.dim() == 1 else 1
    size = x.data.shape[dim]
    w = both(torch.ones(size, dtype=x.data.dtype) if weight is None else weight)
    probable = target.data.shape == x.data.shape
    rows, valid = samples(x, dim)
    shape = x.data.movedim(dim, -1).shape[:-1]
    likely, known = samples(target, dim) if probable else (target.data.reshape(-1), target.mask.reshape(-1))
    entries, mask, weights = (
        rows.new_zeros(len(rows)),
        torch.zeros(len(rows), dtype=torch.bool),
        rows.new_zeros(len(rows)),
    )
    for i, (row, v, t, k) in enumerate(zip(rows, valid, likely, known, strict=True)):
        if not v.any():
            continue
        scores = score(torch.where(v, row, -torch.inf), 0)  # what plain torch is given for a class that cannot be
        if probable:
            mask[i] = bool((k & w.mask).any())
            use, n = k & w.mask & (v | (t != 0)), int((v & k & w.mask).sum())
            smooth = t[use] * (1 - label_smoothing) + label_smoothing / max(n, 1)
            entries[i], weights[i] = -(scores[use] * smooth * w.data[use]).sum(), 1
        elif k and t != ignore_index and w.mask[t]:
            use = v & w.mask
            mask[i], weights[i] = True, w.data[t]
            spread = -(scores * w.data)[use].sum() / use.sum()
            entries[i] = -(1 - label_smoothing) * w.data[t] * scores[t] + label_smoothing * spread
    entries, mask, weights = (t.reshape(shape) for t in (entries, mask, weights))
    return reduced(entries, mask, reduction, None if weight is None or probable else weights)


def nll_loss(
    op: Any, x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    return cross_entropy(op, x, target, weight, ignore_index, reduction, score=lambda row, dim: row)


ORACLES = {"nn.functional.cross_entropy": cross_entropy, "nn.functional.nll_loss": nll_loss}
