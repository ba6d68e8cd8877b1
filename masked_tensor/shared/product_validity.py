"""Terms of a product: which entries of a row count as present, and which pairs a matrix product needs.

By ``meaning(product=)``: with ``"any"`` an output needs one valid pair; with ``"all"`` every valid entry also needs
its partner.  A pair of masked entries is not a term: a padded key and its value do not count as missing.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import masks, settings


def needs_all_terms() -> bool:
    """Whether a product needs all of its terms."""
    return settings.current().product == "all"


def is_present(mask: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """Whether what lies along ``dim`` is there: any of it, or all of it; of nothing, nothing is missing."""
    return masks.all(mask, dim, keepdim) if needs_all_terms() else masks.reduce_validity(mask, dim, keepdim)


def any_valid_pair(a: Tensor, b: Tensor) -> Tensor:
    """Where a matrix product of masks ``(..., n, k) @ (..., k, m)`` adds up at least one valid pair, or has none."""
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    if a.shape[-1] == 0:
        return masks.full(shape, a.device)
    if masks.is_constant(a, -1):
        return masks.expand_to(masks.logical_and(a.narrow(-1, 0, 1), masks.any(b, -2, True)), shape)
    if masks.is_constant(b, -2):
        return masks.expand_to(masks.logical_and(masks.any(a, -1, True), b.narrow(-2, 0, 1)), shape)
    with masks.no_autocast(a.device):
        return masks.expand_to(masks.compact(a).float() @ masks.compact(b).float() > 0, shape)


def product_mask(a: Tensor, b: Tensor) -> Tensor:
    """Where a matrix product of masks ``(..., n, k) @ (..., k, m)`` has the valid pairs that it needs."""
    found = any_valid_pair(a, b)
    if not needs_all_terms() or a.shape[-1] == 0:
        return found
    left, right = any_valid_pair(a, masks.complement(b)), any_valid_pair(masks.complement(a), b)
    alone = masks.compact(left) | masks.compact(right)
    return masks.expand_to(masks.compact(found) & ~alone, found.shape)
