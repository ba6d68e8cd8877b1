"""Elementwise losses: an entry counts where input, target and weight are valid; a mean divides by the valid entries.

Without valid entries the loss is a masked scalar with zero gradient, and a backward pass warns.
``reduction="none"`` returns every entry with its validity.
"""

from typing import Any

import torch
from torch import Tensor

from .. import kernels, masks, pair
from ..compat import OpOverload, schema
from ..errors import expect_shape
from ..kernels.losses import distances, entries
from ..op import Op, ops
from ..packing import losses as packed
from ..pair import Pair, Payload, data_of
from ..settings import STACK
from ..shared.averaging import MEAN, NONE, finish_average
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
    data = {name: x.data for name, x in operands.items()}
    if _runs_as_plain(mask):
        return pair.plain_pair(op(**named | data, reduction=reduction))
    known = tuple(_known(x, mask) for x in operands.values()) if ranged else None
    parameters = {name: value for name, value in named.items() if name not in data}
    found = kernels.run("loss", entries, (*data.values(), mask), op, tuple(data), known, parameters, reduction)
    if reduction == NONE:
        return Pair(found, masks.expand_to(mask, found.shape))
    return finish_average(*found, empty=mask.numel() == 0, reduction=reduction, kind=op)


def distance(
    op: OpOverload, x: Pair | Tensor, y: Pair | Tensor, reduction: int = MEAN, *parameters: float, **keywords: Any
) -> Pair:
    """A loss of differences.  At zero it and its derivative are 0, so the op runs on operands zeroed under the mask."""
    first, second = data_of(x), data_of(y)
    if reduction == NONE or first.shape != second.shape:
        return elementwise(op, x, y, reduction, *parameters, **keywords)
    if type(x) is Pair:
        mask = masks.logical_and(x.mask, y.mask) if type(y) is Pair else x.mask
    else:
        mask = y.mask if type(y) is Pair else pair.plain_pair(second).mask
    if _runs_as_plain(mask):
        return pair.plain_pair(op(first, second, reduction, *parameters, **keywords))
    if parameters:
        keywords = dict(zip(PARAMETERS[op][3:], parameters, strict=False)) | keywords
    known = _known(x, mask) if type(x) is Pair else None, _known(y, mask) if type(y) is Pair else None
    found = kernels.run("loss", distances, (first, second, mask), op, _PAIR, known, keywords, reduction)
    return finish_average(*found, empty=mask.numel() == 0, reduction=reduction, kind=op)


def _runs_as_plain(mask: Tensor) -> bool:
    """Whether every entry is known to be valid, and no setting asks for another mean: the op itself is the rule."""
    return (not mask.dim() or 0 in mask.stride()) and masks.is_all_valid(mask) and not STACK.get()


def common_mask(several: list[Tensor]) -> Tensor:
    """The AND of masks."""
    mask = several[0]
    for other in several[1:]:
        mask = masks.logical_and(mask, other)
    return mask


def _known(x: Pair, mask: Tensor) -> Payload:
    """What is known about an operand's data outside the common mask."""
    return x.payload if x.mask is mask or masks.same_memory(x.mask, mask) else Payload.ANY


_PAIR = ("self", "target")
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
