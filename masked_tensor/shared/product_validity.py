"""Terms of a product: which entries of a row count as present, and which pairs a matrix product needs.

By ``meaning(product=)``: with ``"any"`` an output needs one valid pair; with ``"all"`` every valid entry needs its
partner, too.  A pair of holes is no term: a key that padding hides, and its value, are not missed.
"""

from collections.abc import Sequence

from torch import Tensor

from .. import masks, settings
from . import pairing


def every() -> bool:
    """Whether a product needs all of its terms."""
    return settings.current().product == "all"


def present(mask: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """Whether what lies along ``dim`` is there: any of it, or all of it; of nothing, nothing is missing."""
    return masks.all(mask, dim, keepdim) if every() else masks.reduced(mask, dim, keepdim)


def paired(a: Tensor, b: Tensor) -> Tensor:
    """Where a matrix product of masks ``(..., n, k) @ (..., k, m)`` has the valid pairs that it needs."""
    found = pairing.paired(a, b)
    if not every() or a.shape[-1] == 0:
        return found
    alone = masks.compact(pairing.paired(a, _holes(b))) | masks.compact(pairing.paired(_holes(a), b))
    return masks.fit(masks.compact(found) & ~alone, found.shape)


def _holes(mask: Tensor) -> Tensor:
    return masks.fit(~masks.compact(mask), mask.shape)
