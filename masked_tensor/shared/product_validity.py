"""Terms of a product: which entries of a row count as present, and which pairs a matrix product needs.

By ``meaning(product=)``: with ``"any"`` an output needs one valid pair; with ``"all"`` every valid entry needs its
partner, too.  A pair of holes is no term: a key that padding hides, and its value, are not missed.
"""

from collections.abc import Sequence

from torch import Tensor

from .. import masks, settings
from . import pairing


def needs_all_terms() -> bool:
    """Whether a product needs all of its terms."""
    return settings.current().product == "all"


def is_present(mask: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """Whether what lies along ``dim`` is there: any of it, or all of it; of nothing, nothing is missing."""
    return masks.all(mask, dim, keepdim) if needs_all_terms() else masks.reduce_validity(mask, dim, keepdim)


def product_mask(a: Tensor, b: Tensor) -> Tensor:
    """Where a matrix product of masks ``(..., n, k) @ (..., k, m)`` has the valid pairs that it needs."""
    found = pairing.any_valid_pair(a, b)
    if not needs_all_terms() or a.shape[-1] == 0:
        return found
    alone = masks.compact(pairing.any_valid_pair(a, _masked_terms(b))) | masks.compact(
        pairing.any_valid_pair(_masked_terms(a), b)
    )
    return masks.expand_to(masks.compact(found) & ~alone, found.shape)


def _masked_terms(mask: Tensor) -> Tensor:
    return masks.expand_to(~masks.compact(mask), mask.shape)
