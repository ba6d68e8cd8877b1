"""Similarity of rows, row by row."""

from typing import Any

import torch
from torch.nn import functional as F

from ..helpers.harness import Masked
from .loss import both, reduced
from .normalize import along_rows


def cosine_similarity(op: Any, a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Masked:
    return along_rows(lambda r, s: r @ s / (r.norm().clamp_min(eps) * s.norm().clamp_min(eps)), a, b, dim)


def pairwise_distance(op: Any, a: Any, b: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Masked:
    return along_rows(lambda r, s: (r - s + eps).norm(p), a, b, -1, keepdim)


def cosine_embedding_loss(
    op: Any, x1: Any, x2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Masked:
    a, b, t = both(x1), both(x2), both(target)
    size, entries = a.data.shape[-1], []
    pairs = (a.mask & b.mask).reshape(-1, size)
    for r, s, v, sign in zip(
        a.data.reshape(-1, size), b.data.reshape(-1, size), pairs, t.data.reshape(-1), strict=True
    ):
        entries.append(F.cosine_embedding_loss(r[v], s[v], sign, margin=margin) if v.any() else r.new_zeros(()))
    shape = t.data.shape
    return reduced(torch.stack(entries).reshape(shape), pairs.any(-1).reshape(shape) & t.mask, reduction)


ORACLES = {
    "nn.functional.cosine_similarity": cosine_similarity,
    "nn.functional.pairwise_distance": pairwise_distance,
    "nn.functional.cosine_embedding_loss": cosine_embedding_loss,
}
