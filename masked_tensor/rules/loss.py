"""Losses by the element: an entry counts where input, target and weight are valid; a mean divides by the valid entries.

With nothing valid the loss is a masked scalar with zero gradient.  ``reduction="none"`` gives the masked entries.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload, schema
from ..op import Op, rows
from ..packing import losses as packed
from ..pair import Pair
from ..select import guard, select, zeroed
from ..shared.averaging import MEAN, NONE, SUM, averaged, reduced
from ..shared.chunks import rounds
from ..sparse.rules import on_values


def elementwise(
    op: OpOverload, *arguments: Any, ranged: bool = False, vanishing: bool = False, **keywords: Any
) -> Pair:
    """A loss whose entries depend on one entry of each operand.

    Every operand's gradient is guarded with the common mask, plain operands included.  ``ranged``: the op checks the
    range of its operands, so nothing but 0 may reach it from under the mask.  ``vanishing``: the loss of zeros is 0
    and so is its derivative, so the op may add up zeroed operands by itself.
    """
    named = dict(zip(PARAMETERS[op], arguments, strict=False)) | keywords
    reduction = named.pop("reduction", MEAN)
    operands = {name: pair.of(value) for name, value in named.items() if isinstance(value, Pair | Tensor)}
    mask = common([x.mask for x in operands.values()])
    if vanishing and reduction != NONE and not any(rounds(x.data.dtype) for x in operands.values()):
        data = {name: within(x, mask) for name, x in operands.items()}
        total = op(**{**named, **data}, reduction=SUM)
        return averaged(total, mask, reduction, None, total.dtype)
    data = {name: within(x, mask) if ranged else guard(x.data, mask, inside=True) for name, x in operands.items()}
    entries = op(**{**named, **data}, reduction=NONE)
    return reduced(entries, masks.fit(mask, entries.shape), reduction)


def common(several: list[Tensor]) -> Tensor:
    """The AND of masks."""
    mask = several[0]
    for other in several[1:]:
        mask = masks.both(mask, other)
    return mask


def within(x: Pair, mask: Tensor) -> Tensor:
    """The data, 0 outside ``mask`` to which it is broadcast."""
    if masks.same(x.mask, mask):
        return zeroed(x)
    return select(x.data if x.data.shape == mask.shape else x.data.expand(mask.shape), mask, 0)


DISTANCES = "mse_loss l1_loss smooth_l1_loss huber_loss"
NAMES = """
    binary_cross_entropy_with_logits kl_div poisson_nll_loss soft_margin_loss hinge_embedding_loss margin_ranking_loss
"""
# Read from the schemas at import: a compiler cannot trace through them.
PARAMETERS = {
    op: tuple(a.name for a in schema(op).arguments)
    for op in (getattr(torch.ops.aten, n).default for n in f"{DISTANCES} {NAMES} binary_cross_entropy".split())
}
LIFTS: dict[str, Any] = {"generic": True, "sparse": on_values, "rows": packed.elementwise}
ROWS = [
    *rows(DISTANCES, elementwise, params={"vanishing": True}, **LIFTS),
    *rows(NAMES, elementwise, **LIFTS),
    Op("binary_cross_entropy", elementwise, {"ranged": True}, **LIFTS),
]
