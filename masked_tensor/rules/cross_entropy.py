"""Cross entropy: a masked class has the logit -inf; ignored and masked targets are the same thing.

A sample counts where its target is valid and not ``ignore_index``, and one of its logits is valid; what a masked target
holds is never used.  A target that names a masked class has the loss inf, a probability of 0 there adds nothing.  A
mean divides by the summed weights of the samples that count (class indices) or by their number (class probabilities).
Label smoothing goes to the valid classes.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import masks, pair
from ..errors import expect_positions, expect_shape
from ..kernels.precision import rounds_noticeably
from ..kernels.softmax import INFINITY
from ..op import Op, ops
from ..packing import losses as packed
from ..pair import Pair, Payload
from ..select import select, zero_masked
from ..shared.averaging import MEAN, NONE, SUM, average, finish_average, reduce_loss
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
    plain = type(x) is not Pair and type(weight) is not Pair
    x, t = pair.as_pair(x), pair.as_pair(target)
    dim = 0 if x.data.dim() == 1 else 1
    classes = _class_weights(weight, x, dim)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if t.data.shape == x.data.shape:
        return _probability_loss(x, t, classes, reduction, ignore_index, label_smoothing, dim)
    if plain and x.data.shape[dim]:
        return _plain_scores_loss(x.data, t, weight, reduction, ignore_index, label_smoothing, dim)
    chosen = _choose(x, t, classes, ignore_index, dim)
    scores = _scores(x, chosen.mask, dim)
    entries = _pick_scores(scores.data, chosen, classes, ignore_index)
    if label_smoothing:
        usable = _usable(x.mask, classes, dim)
        spread = _weight_terms(select(scores.data, masks.logical_and(scores.mask, usable), 0), classes, dim).sum(dim)
        share = _share(label_smoothing, masks.count(usable, dim), entries.dtype)
        entries = entries * (1 - label_smoothing) - select(spread, chosen.mask, 0) * share
    return reduce_loss(entries, chosen.mask, reduction, chosen.weight, "cross_entropy")


def _plain_scores_loss(
    x: Tensor, target: Pair, weight: Any, reduction: int, ignore_index: int, smoothing: float, dim: int
) -> Pair:
    """All classes are valid: torch's kernel leaves out what is ignored, and what does not count is ignored."""
    known = _known_targets(x, target, ignore_index, dim)
    op = torch.ops.aten.cross_entropy_loss.default
    rows = select(x, masks.expand_to(known.mask.unsqueeze(dim), x.shape), 0)  # nothing flows back there, not even NaN
    entries = op(rows, known.data, weight, NONE, ignore_index, smoothing)
    if reduction == NONE:
        return Pair(entries, known.mask, Payload.ZERO)
    total = entries.sum(dtype=torch.float32 if rounds_noticeably(entries.dtype) else None)
    if weight is None or reduction == SUM:
        return average(total, known.mask, reduction, None, entries.dtype, "cross_entropy")

    def weights() -> Tensor:
        """Of the samples that count: the loss of scores that are all -1."""
        ones = torch.full((), -1, dtype=x.dtype, device=x.device).expand(x.shape)
        each = torch.ops.aten.nll_loss_nd.default(ones, known.data, weight, NONE, ignore_index)
        summed: Tensor = each.detach().sum(dtype=total.dtype)  # torch gives the weights no gradient by it
        return summed

    some = masks.any(known.mask)
    return finish_average(total, weights, some, known.mask.numel() == 0, reduction, entries.dtype, "cross_entropy")


def _known_targets(x: Tensor, target: Pair, ignore_index: int, dim: int) -> Pair:
    """The targets that count, in the shape of the samples; ``ignore_index`` where they do not."""
    shape = x.shape[:dim] + x.shape[dim + 1 :]
    expect_positions("target", target.data)
    expect_shape("target", target.data, shape, *(() if shape else ((1,),)))
    data, mask = target.data.reshape(shape), target.mask.reshape(shape)
    data = data.long() if data.dtype is torch.uint8 else data
    data = torch.where(mask, data, ignore_index)
    return Pair(data, data != ignore_index)


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
    classes = _class_weights(weight, x, dim)
    chosen = _choose(x, t, classes, ignore_index, dim)
    data = x.data if masks.is_constant(x.mask, dim) else select(x.data, x.mask, -INFINITY)
    entries = _pick_scores(data, chosen, classes, ignore_index)
    return reduce_loss(entries, chosen.mask, reduction, chosen.weight, "nll_loss"), chosen


def _choose(x: Pair, target: Pair, classes: Pair | None, ignore_index: int, dim: int) -> ChosenClasses:
    """Which samples count.  Only what a valid target names is looked up."""
    known = _known_targets(x.data, target, ignore_index, dim)
    data, mask = known.data, masks.logical_and(known.mask, _any_class(x.mask, dim))
    weight = None
    if classes is not None and x.data.shape[dim]:
        index = torch.where(mask, data, 0).long().clamp(0, x.data.shape[dim] - 1)  # torch's op says which is outside
        weight = classes.data.take(index)
        mask = masks.logical_and(mask, classes.mask.take(index))
    return ChosenClasses(torch.where(mask, data, ignore_index), masks.expand_to(mask, data.shape), weight)


def _any_class(mask: Tensor, dim: int) -> Tensor:
    return mask.select(dim, 0) if masks.is_constant(mask, dim) else masks.any(mask, dim)


def _pick_scores(scores: Tensor, chosen: ChosenClasses, classes: Pair | None, ignore_index: int) -> Tensor:
    """The entries of the loss, 0 where a sample does not count: nothing is read there, and nothing flows back."""
    op = torch.ops.aten.nll_loss_nd.default
    result: Tensor = op(scores, chosen.target, None if classes is None else classes.data, NONE, ignore_index)
    return result


def _probability_loss(
    x: Pair, target: Pair, classes: Pair | None, reduction: int, ignore_index: int, smoothing: float, dim: int
) -> Pair:
    """Targets that give each class a probability: a sample counts if a class is valid in it, and in its target."""
    if not target.data.is_floating_point():
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.data.dtype}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if x.data.shape[dim] == 0:  # without classes nothing is masked
        return pair.plain_pair(torch.ops.aten.cross_entropy_loss.default(x.data, target.data, None, reduction))
    named = _usable(target.mask, classes, dim)
    valid = masks.logical_and(named, x.mask)
    some = masks.logical_and(masks.any(named, dim), _any_class(x.mask, dim))
    counted, possible = valid, masks.is_constant(x.mask, dim)
    if not possible:  # a masked class that has a probability counts: its score is -inf
        counted = named & (x.mask | (target.data != 0)) & some.unsqueeze(dim)
    scores = _scores(x, some, dim)
    likely = select(target.data, counted, 0)
    if smoothing:
        likely = likely * (1 - smoothing) + _share(smoothing, masks.count(valid, dim, True), likely.dtype)
    likely = _weight_terms(likely, classes, dim)
    likely = likely if possible else torch.where(x.mask, likely, likely.detach())  # which has no derivative
    terms = select(scores.data, counted, 0) * likely
    return reduce_loss(-terms.sum(dim), some, reduction, kind="cross_entropy")


def _share(smoothing: float, number: Tensor, dtype: torch.dtype) -> Tensor:
    """What label smoothing gives each of ``number`` classes, in ``dtype``; a count may be too large for half of it."""
    exact = torch.promote_types(dtype, torch.float32)
    return (smoothing / number.clamp_min(1).to(exact)).to(dtype)


def _scores(x: Pair, samples: Tensor, dim: int) -> Pair:
    """The logarithms of the probabilities; a sample that does not count sends nothing back, not even NaN."""
    mask = masks.logical_and(x.mask, masks.expand_to(samples.unsqueeze(dim), x.data.shape))
    return softmax(Pair(x.data, mask), dim, log=True)


def _weight_terms(terms: Tensor, classes: Pair | None, dim: int) -> Tensor:
    return terms if classes is None else terms * _along(classes.data, dim, terms)


def _usable(mask: Tensor, classes: Pair | None, dim: int) -> Tensor:
    """``mask`` without the classes whose weight is masked."""
    return mask if classes is None else masks.logical_and(mask, _along(classes.mask, dim, mask).expand(mask.shape))


def _along(classes: Tensor, dim: int, like: Tensor) -> Tensor:
    return classes.reshape([-1 if d == dim else 1 for d in range(like.dim())])


def _class_weights(weight: Operand | None, x: Pair, dim: int) -> Pair | None:
    """The weights of the classes, 0 where they are masked."""
    if weight is None:
        return None
    expect_shape("weight", pair.data_of(weight), (x.data.shape[dim],))
    return Pair(zero_masked(weight), weight.mask, Payload.ZERO) if type(weight) is Pair else pair.as_pair(weight)


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
