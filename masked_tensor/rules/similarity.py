"""Similarity of vectors: over the pairs of entries that are both valid; the result is valid if there is such a pair."""

import torch
from torch import Tensor

from .. import masks, pair
from ..op import Op
from ..pair import Pair
from ..select import select
from ..shared.averaging import MEAN, NONE, reduce_loss

Operand = Pair | Tensor


def cosine_similarity(x1: Operand, x2: Operand, dim: int = 1, eps: float = 1e-8) -> Pair:
    """``x1 @ x2 / (|x1| * |x2|)`` along ``dim``, each norm at least ``eps``."""
    a, b, mask = pair_up(x1, x2)
    return Pair(torch.cosine_similarity(a, b, dim, eps), masks.reduce_validity(mask, dim))


def pairwise_distance(x1: Operand, x2: Operand, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Pair:
    """The p-norm of ``x1 - x2 + eps`` along the last dimension."""
    a, b, mask = pair_up(x1, x2)
    last = max(a.dim() - 1, 0)
    nothing = float("inf") if p < 0 else 0  # what adds 0 to the sum of the powers
    distance = torch.norm(select(a - b + eps, mask, nothing), p, last, keepdim)
    return Pair(distance, masks.reduce_validity(mask, last, keepdim))


def cosine_embedding_loss(
    x1: Operand, x2: Operand, target: Operand, margin: float = 0.0, reduction: int = MEAN
) -> Pair:
    """``1 - cos`` for target 1, ``max(0, cos - margin)`` for -1; cos along the last dimension."""
    t = pair.as_pair(target)
    for name, x in (("x1", x1), ("x2", x2)):
        if pair.data_of(x).dim() != t.data.dim() + 1:
            raise RuntimeError(
                f"cosine_embedding_loss: {name} must have one dimension more than the target, got shapes "
                f"{tuple(pair.data_of(x).shape)} and {tuple(t.data.shape)}"
            )
    a, b, pairs = pair_up(x1, x2)
    mask = masks.logical_and(masks.reduce_validity(pairs, -1), t.mask)
    entries = torch.cosine_embedding_loss(a, b, t.data, margin, reduction=NONE)
    return reduce_loss(entries, masks.expand_to(mask, entries.shape), reduction, kind="cosine_embedding_loss")


def pair_up(x1: Operand, x2: Operand) -> tuple[Tensor, Tensor, Tensor]:
    """Both operands broadcast, 0 outside the pairs of valid entries, and where those are."""
    a, b = pair.as_pair(x1), pair.as_pair(x2)
    mask = masks.logical_and(a.mask, b.mask)
    return select(a.data.expand(mask.shape), mask, 0), select(b.data.expand(mask.shape), mask, 0), mask


OPS = [
    Op("cosine_similarity", cosine_similarity, batched=True),
    Op("pairwise_distance", pairwise_distance),
    Op("cosine_embedding_loss", cosine_embedding_loss, batched=True),
]
