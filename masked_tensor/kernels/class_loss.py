"""Cross entropy and negative log-likelihood of targets that name classes, some of which may be masked.

The formula and a kernel give the loss of each sample and which samples count; or, to be added up, the sum of those that
count, what a mean divides it by, whether one counts, and the dtype of an entry.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import masks
from ..pair import Pair, plain_pair
from ..select import guard, select
from .losses import NONE, SUM, added, counted, sum_dtype
from .softmax import INFINITY, normalize
from .softmax import formula as softmax
from .table import run


class ChosenClasses(NamedTuple):
    """The classes that the targets name."""

    target: Tensor  #: the class it names, or ``ignore_index`` where the sample does not count
    mask: Tensor  #: the samples that count
    weight: Tensor | None  #: the weight of each sample's class


def formula(
    data: Tensor, mask: Tensor | None, target: Tensor, known: Tensor, weight: Tensor | None, given: Tensor | None,
    dim: int, kind: str, reduction: int, ignored: int, smoothing: float,
) -> Any:  # fmt: skip
    """``mask``, ``known`` and ``given`` are the masks of scores, targets and weights; None: plain scores or weights."""
    samples = known_targets(target, known, ignored)
    if kind == "cross_entropy" and mask is None and given is None and data.shape[dim]:
        return _of_plain_scores(data, samples, weight, dim, reduction, ignored, smoothing)
    x, classes = plain_pair(data) if mask is None else Pair(data, mask), None
    if weight is not None:
        classes = plain_pair(weight) if given is None else Pair(weight, given)
    chosen = choose(x, samples, classes, ignored, dim)
    each = entries(x, chosen, classes, dim, kind, ignored, smoothing)
    return (each, chosen.mask) if reduction == NONE else added(each, chosen.mask, reduction, chosen.weight)


def _of_plain_scores(
    x: Tensor, known: Pair, weight: Tensor | None, dim: int, reduction: int, ignored: int, smoothing: float
) -> tuple[Any, ...]:
    """All classes are valid: torch's kernel leaves out what is ignored, and what does not count is ignored."""
    op = torch.ops.aten.cross_entropy_loss.default
    rows = select(x, masks.expand_to(known.mask.unsqueeze(dim), x.shape), 0)  # nothing flows back there, not even NaN
    each = op(rows, known.data, weight, NONE, ignored, smoothing)
    if reduction == NONE:
        return each, known.mask
    total = each.sum(dtype=sum_dtype(each))
    if weight is None or reduction == SUM:
        return total, *counted(known.mask, None, reduction, total.dtype), each.dtype

    def weights() -> Tensor:
        """The weights of the samples that count: the loss of scores that are all -1."""
        ones = torch.full((), -1, dtype=x.dtype, device=x.device).expand(x.shape)
        heavy = torch.ops.aten.nll_loss_nd.default(ones, known.data, weight, NONE, ignored)
        summed: Tensor = heavy.detach().sum(dtype=total.dtype)  # torch gives the weights no gradient by it
        return summed

    return total, weights, masks.any(known.mask), each.dtype


def known_targets(target: Tensor, mask: Tensor, ignored: int) -> Pair:
    """The targets that count; ``ignored`` where they do not."""
    data = target.long() if target.dtype is torch.uint8 else target
    data = torch.where(mask, data, ignored)
    return Pair(data, data != ignored)


def choose(x: Pair, known: Pair, classes: Pair | None, ignored: int, dim: int) -> ChosenClasses:
    """Which samples count.  Only what a valid target names is looked up."""
    data, mask = known.data, masks.logical_and(known.mask, any_class(x.mask, dim))
    weight = None
    if classes is not None and x.data.shape[dim]:
        index = torch.where(mask, data, 0).long().clamp(0, x.data.shape[dim] - 1)  # torch's op says which is outside
        weight = classes.data.take(index)
        mask = masks.logical_and(mask, classes.mask.take(index))
    return ChosenClasses(torch.where(mask, data, ignored), masks.expand_to(mask, data.shape), weight)


def entries(
    x: Pair, chosen: ChosenClasses, classes: Pair | None, dim: int, kind: str, ignored: int, smoothing: float = 0.0
) -> Tensor:
    """The loss of each sample, 0 where it does not count: nothing is read there, and nothing flows back."""
    if kind == "nll_loss":
        data = x.data if masks.is_constant(x.mask, dim) else select(x.data, x.mask, -INFINITY)
    else:
        data, valid = log_probabilities(x, chosen.mask, dim)
    op = torch.ops.aten.nll_loss_nd.default
    each: Tensor = op(data, chosen.target, None if classes is None else classes.data, NONE, ignored)
    if not smoothing:
        return each
    named = usable(x.mask, classes, dim)
    spread = weigh(select(data, masks.logical_and(valid, named), 0), classes, dim).sum(dim)
    part = share(smoothing, masks.count(named, dim), each.dtype)
    return each * (1 - smoothing) - select(spread, chosen.mask, 0) * part


def any_class(mask: Tensor, dim: int) -> Tensor:
    """Whether a class of a sample is valid."""
    return mask.select(dim, 0) if masks.is_constant(mask, dim) else masks.any(mask, dim)


def share(smoothing: float, number: Tensor, dtype: torch.dtype) -> Tensor:
    """What label smoothing gives each of ``number`` classes, in ``dtype``; a count may be too large for half of it."""
    exact = torch.promote_types(dtype, torch.float32)
    return (smoothing / number.clamp_min(1).to(exact)).to(dtype)


def log_probabilities(x: Pair, samples: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """And where they are valid; a sample that does not count sends nothing back, not even NaN."""
    mask = masks.logical_and(x.mask, masks.expand_to(samples.unsqueeze(dim), x.data.shape))
    if masks.is_constant(mask, dim):  # every sample has all classes or none
        return normalize(guard(x.data, mask, owned=True, inside=True), dim, True), mask
    return run("softmax", softmax, (x.data, mask), dim, True), mask


def weigh(terms: Tensor, classes: Pair | None, dim: int) -> Tensor:
    """``terms`` times the weights of the classes."""
    return terms if classes is None else terms * _along(classes.data, dim, terms)


def usable(mask: Tensor, classes: Pair | None, dim: int) -> Tensor:
    """``mask`` without the classes whose weight is masked."""
    return mask if classes is None else masks.logical_and(mask, _along(classes.mask, dim, mask).expand(mask.shape))


def _along(classes: Tensor, dim: int, like: Tensor) -> Tensor:
    return classes.reshape([-1 if d == dim else 1 for d in range(like.dim())])
