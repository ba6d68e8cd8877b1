"""Cross entropy: a masked class has the logit -inf; an ignored target and a masked one mean the same.

A sample counts where its target is valid and not ``ignore_index``, and one of its logits is valid; the data of a
masked target is never used.  A target that names a masked class has loss inf; a probability of 0 there adds nothing.  A
mean divides by the summed weights of the samples that count (class indices) or by their number (class probabilities).
Label smoothing covers only the valid classes.
"""

from typing import Any

import torch
from torch import Tensor

from .. import kernels, masks, pair
from ..errors import dtype_name, expect_positions, expect_shape
from ..kernels.class_loss import (
    any_class,
    choose,
    entries,
    formula,
    known_targets,
    log_probabilities,
    share,
    usable,
    weigh,
)
from ..op import Op, ops
from ..packing import losses as packed
from ..pair import Pair, Payload
from ..select import select, zero_masked
from ..shared.averaging import MEAN, NONE, finish_average, reduce_loss
from ..sparse import operators
from ..sparse.rules import sparse_rule

Operand = Pair | Tensor
IGNORED = -100


def cross_entropy(
    x: Operand,
    target: Operand,
    weight: Operand | None = None,
    reduction: int = MEAN,
    ignore_index: int = IGNORED,
    label_smoothing: float = 0.0,
) -> Pair:
    """``-log_softmax(x)[target]``, or ``-(target * log_softmax(x)).sum()``, weighted and smoothed."""
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if pair.data_of(target).shape == pair.data_of(x).shape:
        return _probability_loss(x, target, weight, reduction, ignore_index, label_smoothing)
    return _class_loss("cross_entropy", x, target, weight, reduction, ignore_index, label_smoothing)


def nll_loss(
    scores: Operand,
    target: Operand,
    weight: Operand | None = None,
    reduction: int = MEAN,
    ignore_index: int = IGNORED,
) -> Pair:
    """``-weight[target] * scores[target]``; the same operator for samples, images and inputs of more dimensions."""
    return _class_loss("nll_loss", scores, target, weight, reduction, ignore_index)


def _class_loss(
    kind: str, x: Operand, target: Operand, weight: Operand | None, reduction: int, ignored: int, smoothing: float = 0.0
) -> Pair:
    """The loss of labels."""
    data, dim = pair.data_of(x), _classes_of(x)
    classes = _class_weights(weight, data, dim)
    labels = _per_sample(data, pair.as_pair(target), dim)
    weights = (None, None) if classes is None else (classes.data, classes.mask if type(weight) is Pair else None)
    operands = data, x.mask if type(x) is Pair else None, labels.data, labels.mask, *weights
    try:
        found = kernels.run("class_loss", formula, operands, dim, kind, reduction, ignored, smoothing)
    except IndexError as error:  # on the CPU
        raise class_outside(error, labels, data.shape[dim]) from None
    if reduction == NONE:
        return Pair(found[0], found[1], Payload.ZERO)
    return finish_average(*found, empty=labels.mask.numel() == 0, reduction=reduction, kind=kind)


def nll_loss_forward(
    scores: Operand, target: Operand, weight: Operand | None, reduction: int, ignore_index: int
) -> tuple[Pair, Pair]:
    """The form that also returns the total weight."""
    x, dim = pair.as_pair(scores), _classes_of(scores)
    classes, labels = _class_weights(weight, x.data, dim), _per_sample(x.data, pair.as_pair(target), dim)
    chosen = choose(x, known_targets(labels.data, labels.mask, ignore_index), classes, ignore_index, dim)
    try:
        each = entries(x, chosen, classes, dim, "nll_loss", ignore_index)
    except IndexError as error:
        raise class_outside(error, labels, x.data.shape[dim]) from None
    loss = reduce_loss(each, chosen.mask, reduction, chosen.weight, "nll_loss")
    if reduction == NONE and x.data.dim() != 1:
        total = torch.zeros((), dtype=loss.data.dtype, device=loss.data.device)
    elif chosen.weight is None:
        total = masks.count(chosen.mask).to(loss.data.dtype)
    else:
        total = select(chosen.weight, chosen.mask, 0).sum()
    return loss, pair.plain_pair(total)


def class_outside(error: IndexError, labels: Pair, size: int) -> IndexError:
    """The error for a valid label that names no class, with the ways out."""
    if not str(error).startswith("Target "):
        return error
    number = str(error).split()[1].rstrip(".")
    inverted = "" if bool(labels.mask.all()) else "; or the mask is inverted (True means valid): use ~mask"
    return IndexError(
        f"Target {number} is out of bounds: there are {size} classes; if it stands for a missing label, mask it: "
        f"masked_equal(target, {number}){inverted}"
    )


def _classes_of(scores: Operand) -> int:
    """The dimension of the classes."""
    return 0 if pair.data_of(scores).dim() == 1 else 1


def _per_sample(x: Tensor, target: Pair, dim: int) -> Pair:
    """The targets in the shape of the samples."""
    shape = x.shape[:dim] + x.shape[dim + 1 :]
    expect_positions("target", target.data)
    if x.dim() > 2 and target.data.shape != shape and target.data.shape == x.shape[:-1]:
        raise RuntimeError(
            f"target must have shape {tuple(shape)}, got {tuple(target.data.shape)}; classes belong in dimension 1: "
            f"use {'logits.transpose(1, 2)' if x.dim() == 3 else 'logits.movedim(-1, 1)'}"
        )
    expect_shape("target", target.data, shape, *(() if shape else ((1,),)))
    if target.data.is_floating_point():
        raise RuntimeError(
            f"class labels must be integers, got {dtype_name(target.data.dtype)}: use target.long(); probabilities of "
            f"classes have the shape {tuple(x.shape)}"
        )
    return Pair(target.data.reshape(shape), target.mask.reshape(shape))


def _probability_loss(
    scores: Operand, given: Operand, weight: Operand | None, reduction: int, ignore_index: int, smoothing: float
) -> Pair:
    """Targets that give each class a probability: a sample counts if a class is valid in it, and in its target."""
    x, target, dim = pair.as_pair(scores), pair.as_pair(given), _classes_of(scores)
    classes = _class_weights(weight, x.data, dim)
    if not target.data.is_floating_point():
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.data.dtype}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if x.data.shape[dim] == 0:  # without classes nothing is masked
        return pair.plain_pair(torch.ops.aten.cross_entropy_loss.default(x.data, target.data, None, reduction))
    named = usable(target.mask, classes, dim)
    valid = masks.logical_and(named, x.mask)
    some = masks.logical_and(masks.any(named, dim), any_class(x.mask, dim))
    counted, possible = valid, masks.is_constant(x.mask, dim)
    if not possible:  # a masked class that has a probability counts: its score is -inf
        counted = named & (x.mask | (target.data != 0)) & some.unsqueeze(dim)
    logarithms, _ = log_probabilities(x, some, dim)
    likely = select(target.data, counted, 0)
    if smoothing:
        likely = likely * (1 - smoothing) + share(smoothing, masks.count(valid, dim, True), likely.dtype)
    likely = weigh(likely, classes, dim)
    likely = likely if possible else torch.where(x.mask, likely, likely.detach())  # which has no derivative
    terms = select(logarithms, counted, 0) * likely
    return reduce_loss(-terms.sum(dim), some, reduction, kind="cross_entropy")


def _class_weights(weight: Operand | None, x: Tensor, dim: int) -> Pair | None:
    """The weights of the classes, 0 where they are masked."""
    if weight is None:
        return None
    expect_shape("weight", pair.data_of(weight), (x.shape[dim],))
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
