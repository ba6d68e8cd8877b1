"""Cross entropy: masked class logits leave the denominator; ignored and masked targets are the same thing.

A sample counts where its target is valid and not ``ignore_index``, and the logit it names is valid; what a masked
target holds is never used.  A mean divides by the summed weights of the samples that count (class indices) or by their
number (class probabilities).  Label smoothing goes to the valid classes.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import masks, pair
from ..errors import expect_shape
from ..op import Op, ops
from ..packing import losses as packed
from ..pair import Pair
from ..select import select, zero_masked
from ..shared.averaging import MEAN, NONE, reduce_loss
from ..sparse import operators
from ..sparse.rules import sparse_rule
from .softmax import softmax

Operand = Pair | Tensor
IGNORED = -100


class ChosenClasses(NamedTuple):
    """The classes that the targets name."""

    target: Tensor  #: the class it names, or ``ignore_index`` where the sample does not count
    mask: Tensor  #: the samples that count
    weight: Tensor | None  #: the weight of each sample's class


def cross_entropy(
    x: Operand,
    target: Operand,
    weight: Operand | None = None,
    reduction: int = MEAN,
    ignore_index: int = IGNORED,
    label_smoothing: float = 0.0,
) -> Pair:
    """``-log_softmax(x)[target]``, or ``-(target * log_softmax(x)).sum()``, weighted and smoothed."""
    x, t = pair.as_pair(x), pair.as_pair(target)
    dim = 0 if x.data.dim() == 1 else 1
    classes, usable = _class_weights(weight, x.mask, dim)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if t.data.shape == x.data.shape:
        return _probability_loss(x, usable, t, classes, reduction, ignore_index, label_smoothing, dim)
    chosen = _choose(usable, t, classes, ignore_index, dim)
    scores = _scores(x, chosen.mask, dim)
    entries = _pick_scores(scores.data, chosen, classes, ignore_index)
    if label_smoothing:
        spread = _weight_terms(select(scores.data, masks.logical_and(scores.mask, usable), 0), classes, dim).sum(dim)
        share = _share(label_smoothing, masks.count(usable, dim), entries.dtype)
        entries = entries * (1 - label_smoothing) - select(spread, chosen.mask, 0) * share
    return reduce_loss(entries, chosen.mask, reduction, chosen.weight)


def nll_loss(
    scores: Operand,
    target: Operand,
    weight: Operand | None = None,
    reduction: int = MEAN,
    ignore_index: int = IGNORED,
) -> Pair:
    """``-weight[target] * scores[target]``; the same operator for samples, images and anything of more dimensions."""
    return _class_loss(scores, target, weight, reduction, ignore_index)[0]


def nll_loss_forward(
    scores: Operand, target: Operand, weight: Operand | None, reduction: int, ignore_index: int
) -> tuple[Pair, Pair]:
    """The form with the total weight."""
    loss, chosen = _class_loss(scores, target, weight, reduction, ignore_index)
    if reduction == NONE and pair.data_of(scores).dim() != 1:
        total = torch.zeros((), dtype=loss.data.dtype, device=loss.data.device)
    elif chosen.weight is None:
        total = masks.count(chosen.mask).to(loss.data.dtype)
    else:
        total = select(chosen.weight, chosen.mask, 0).sum()
    return loss, pair.plain_pair(total)


def _class_loss(
    scores: Operand, target: Operand, weight: Operand | None, reduction: int, ignore_index: int
) -> tuple[Pair, ChosenClasses]:
    x, t = pair.as_pair(scores), pair.as_pair(target)
    dim = 0 if x.data.dim() == 1 else 1
    classes, usable = _class_weights(weight, x.mask, dim)
    chosen = _choose(usable, t, classes, ignore_index, dim)
    entries = _pick_scores(x.data, chosen, classes, ignore_index)
    return reduce_loss(entries, chosen.mask, reduction, chosen.weight), chosen


def _choose(usable: Tensor, target: Pair, classes: Tensor | None, ignore_index: int, dim: int) -> ChosenClasses:
    """Which samples count.  Only what a valid target names is looked up."""
    shape = usable.shape[:dim] + usable.shape[dim + 1 :]
    expect_shape("target", target.data, shape, *(() if shape else ((1,),)))
    target = Pair(target.data.reshape(shape), target.mask.reshape(shape))
    data = target.data.long() if target.data.dtype is torch.uint8 else target.data
    named = target.mask & (data != ignore_index)
    index = torch.where(named, data, 0).long()
    if usable.shape[dim] == 0:
        mask = torch.zeros_like(named)
    elif masks.is_constant(usable, dim):
        mask = masks.logical_and(named, usable.select(dim, 0))
    else:
        mask = named & usable.gather(dim, index.unsqueeze(dim)).squeeze(dim)
    weight = None if classes is None else classes.take(index)
    return ChosenClasses(torch.where(mask, data, ignore_index), masks.expand_to(mask, index.shape), weight)


def _pick_scores(scores: Tensor, chosen: ChosenClasses, classes: Tensor | None, ignore_index: int) -> Tensor:
    """The entries of the loss, 0 where a sample does not count: nothing is read there, and nothing flows back."""
    op = torch.ops.aten.nll_loss_nd.default
    result: Tensor = op(scores, chosen.target, classes, NONE, ignore_index)
    return result


def _probability_loss(
    x: Pair,
    usable: Tensor,
    target: Pair,
    classes: Tensor | None,
    reduction: int,
    ignore_index: int,
    smoothing: float,
    dim: int,
) -> Pair:
    """Targets that give each class a probability: a sample counts if it has a class valid in both."""
    if not target.data.is_floating_point():
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.data.dtype}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if x.data.shape[dim] == 0:  # without classes nothing is masked
        return pair.plain_pair(torch.ops.aten.cross_entropy_loss.default(x.data, target.data, None, reduction))
    valid = masks.logical_and(usable, target.mask)
    some = masks.any(valid, dim)
    scores = _scores(x, some, dim)
    likely = select(target.data, valid, 0)
    if smoothing:
        likely = likely * (1 - smoothing) + _share(smoothing, masks.count(valid, dim, True), likely.dtype)
    terms = _weight_terms(select(scores.data, valid, 0) * likely, classes, dim)
    return reduce_loss(-terms.sum(dim), some, reduction)


def _share(smoothing: float, number: Tensor, dtype: torch.dtype) -> Tensor:
    """What label smoothing gives each of ``number`` classes, in ``dtype``; a count may be too large for half of it."""
    exact = torch.promote_types(dtype, torch.float32)
    return (smoothing / number.clamp_min(1).to(exact)).to(dtype)


def _scores(x: Pair, samples: Tensor, dim: int) -> Pair:
    """The logarithms of the probabilities; a sample that does not count sends nothing back, not even NaN."""
    mask = masks.logical_and(x.mask, masks.expand_to(samples.unsqueeze(dim), x.data.shape))
    return softmax(Pair(x.data, mask), dim, log=True)


def _weight_terms(terms: Tensor, classes: Tensor | None, dim: int) -> Tensor:
    if classes is None:
        return terms
    return terms * classes.reshape([-1 if d == dim else 1 for d in range(terms.dim())])


def _class_weights(weight: Operand | None, mask: Tensor, dim: int) -> tuple[Tensor | None, Tensor]:
    """The weights of the classes, and ``mask`` without the classes whose weight is masked."""
    if weight is not None:
        expect_shape("weight", pair.data_of(weight), (mask.shape[dim],))
    if type(weight) is not Pair:
        return weight, mask
    shape = [-1 if d == dim else 1 for d in range(mask.dim())]
    return zero_masked(weight), masks.logical_and(mask, weight.mask.reshape(shape).expand(mask.shape))


_CLASSES: dict[str, Any] = {"batched": True, "packed": packed.class_loss}

OPS = [
    Op(
        "cross_entropy_loss", cross_entropy, sparse=sparse_rule(operators.cross_entropy, masked=("target",)), **_CLASSES
    ),
    *ops(
        "nll_loss nll_loss2d nll_loss_nd",
        nll_loss,
        sparse=sparse_rule(operators.nll_loss, masked=("target",)),
        **_CLASSES,
    ),
    Op("nll_loss_forward", nll_loss_forward),
    Op("nll_loss2d_forward", nll_loss_forward),
]
