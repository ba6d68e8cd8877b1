"""Losses by the element: an entry counts where input, target and weight are valid; a mean divides by the valid entries.

With nothing valid the loss is a masked scalar with zero gradient, of which a backward pass warns.  ``reduction="none"``
gives the masked entries.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload, schema
from ..errors import expect_shape
from ..kernels.precision import rounds_noticeably
from ..op import Op, ops
from ..packing import losses as packed
from ..pair import Pair, data_of
from ..select import guard, select, zero_masked
from ..settings import STACK
from ..shared.averaging import MEAN, NONE, SUM, average, reduce_loss
from ..sparse.rules import on_values


def elementwise(op: OpOverload, *arguments: Any, ranged: bool = False, **keywords: Any) -> Pair:
    """A loss whose entries depend on one entry of each operand.

    Every operand's gradient is guarded with the common mask, plain operands included.  ``ranged``: the op checks the
    range of its operands, so nothing but 0 may reach it from under the mask.
    """
    named = dict(zip(PARAMETERS[op], arguments, strict=False)) | keywords
    reduction = named.pop("reduction", MEAN)
    operands = {name: pair.as_pair(value) for name, value in named.items() if isinstance(value, Pair | Tensor)}
    mask = common_mask([x.mask for x in operands.values()])
    if ranged:
        expect_shape("the input of binary_cross_entropy", next(iter(operands.values())).data, mask.shape)
    if _runs_as_plain(mask):
        return pair.plain_pair(op(**named | {name: x.data for name, x in operands.items()}, reduction=reduction))
    data = {name: zero_outside(x, mask) if ranged else guard(x.data, mask, inside=True) for name, x in operands.items()}
    entries = op(**{**named, **data}, reduction=NONE)
    return reduce_loss(entries, masks.expand_to(mask, entries.shape), reduction, kind=op)


def distance(
    op: OpOverload, x: Pair | Tensor, y: Pair | Tensor, reduction: int = MEAN, *parameters: float, **keywords: Any
) -> Pair:
    """A loss of differences.  That of zeros is 0 and so is its derivative, so the op adds up zeroed operands itself."""
    if reduction == NONE or data_of(x).shape != data_of(y).shape:
        return elementwise(op, x, y, reduction, *parameters, **keywords)
    if type(x) is Pair:
        mask = masks.logical_and(x.mask, y.mask) if type(y) is Pair else x.mask
    else:
        mask = pair.as_pair(y).mask
    if _runs_as_plain(mask):
        return pair.plain_pair(op(data_of(x), data_of(y), reduction, *parameters, **keywords))
    first, second = zero_outside(x, mask), zero_outside(y, mask)
    if not rounds_noticeably(first.dtype) and not rounds_noticeably(second.dtype):
        total = op(first, second, SUM, *parameters, **keywords)
        return average(total, mask, reduction, None, total.dtype, op)
    entries = op(first, second, NONE, *parameters, **keywords)
    wide = torch.float32 if rounds_noticeably(entries.dtype) else None
    return average(entries.sum(dtype=wide), mask, reduction, None, entries.dtype, op)


def _runs_as_plain(mask: Tensor) -> bool:
    """Whether every entry is known to be valid, and no setting asks for another mean: the op itself is the rule."""
    return masks.is_all_valid(mask) and not STACK.get()


def common_mask(several: list[Tensor]) -> Tensor:
    """The AND of masks."""
    mask = several[0]
    for other in several[1:]:
        mask = masks.logical_and(mask, other)
    return mask


def zero_outside(x: Pair | Tensor, mask: Tensor) -> Tensor:
    """The data, 0 outside ``mask`` to which it is broadcast."""
    if type(x) is Pair and (x.mask is mask or masks.same_memory(x.mask, mask)):
        return zero_masked(x)
    data = data_of(x)
    return select(data if data.shape == mask.shape else data.expand(mask.shape), mask, 0)


DISTANCES = "mse_loss l1_loss smooth_l1_loss huber_loss"
NAMES = """
    binary_cross_entropy_with_logits kl_div poisson_nll_loss soft_margin_loss hinge_embedding_loss margin_ranking_loss
"""
# Read from the schemas at import: a compiler cannot trace through them.
PARAMETERS = {
    op: tuple(a.name for a in schema(op).arguments)
    for op in (getattr(torch.ops.aten, n).default for n in f"{DISTANCES} {NAMES} binary_cross_entropy".split())
}
COMMON: dict[str, Any] = {"generic": True, "sparse": on_values, "packed": packed.elementwise}
OPS = [
    *ops(DISTANCES, distance, **COMMON),
    *ops(NAMES, elementwise, **COMMON),
    Op("binary_cross_entropy", elementwise, {"ranged": True}, **COMMON),
]
