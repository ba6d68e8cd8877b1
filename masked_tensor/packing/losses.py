"""Losses over the stored entries: an elementwise loss of aligned values, cross entropy of class logits."""

from typing import Any

from torch import Tensor

from .. import pair
from ..op import NoRule, Rule, StorageRule, Takes
from ..pair import Pair
from ..settings import in_force
from .operands import align_operands, match_grid, pack_like
from .packed import Frame, Packed, canonicalize, pack_onto, pack_values
from .views import features_last, permute


def _elementwise(rule: Rule, op: Rule) -> Rule:
    """Reduced over everything, the loss is that of the stored values, of which there is at least one."""

    def on_packed(*args: Any, **kwargs: Any) -> Any:
        lead, values = align_operands(args)
        if not lead.values.numel():
            raise NoRule
        values = [_broadcast_values(v, lead) for v in values]
        own = in_force().over is not None or any(type(v) is Pair for v in values)  # which mean is meant, the rule knows
        result = (rule if own else op)(*values, **kwargs)
        data = result.data if isinstance(result, Pair) else result
        return pair.as_pair(result) if data.dim() == 0 else pack_like(result, lead)

    return on_packed


def _broadcast_values(value: Any, lead: Packed) -> Any:
    if isinstance(value, Tensor) and value.dim():
        return value.expand(lead.stored)
    return value


elementwise = StorageRule("loss", _elementwise, None)


def _as_samples(x: Packed, target: Any) -> tuple[Packed, Frame, Pair, Pair]:
    """Rows of classes in dimension 1 and one target for each: features last, a sample, and both as ``(N, ..)``."""
    if len(x.order) < 2 or not x.values.numel():
        raise NoRule
    rest = [d for d in range(len(x.order)) if d != 1]
    shape = target.data.shape if type(target) is Pair else target.shape
    if tuple(shape) != tuple(x.shape[d] for d in rest):
        raise NoRule  # probabilities, or an error
    y = features_last(canonicalize(permute(x, [*rest, 1])), [-1])
    samples = Frame(y.stored[:-1], y.grid, y.order[:-1], None)
    t = match_grid(target, samples) if type(target) is Packed else pack_onto(pair.as_pair(target), samples)
    count = y.values.shape[:-1].numel()
    given, chosen = y.pair(), t.pair()
    flat = pair.moved(given, Tensor.reshape, (count, -1))
    named = Pair(chosen.data.expand(samples.stored).reshape(-1), chosen.mask.expand(samples.stored).reshape(-1))
    return y, samples, flat, named


def _per_sample(result: Pair, y: Packed, samples: Frame) -> Packed:
    """One loss for each sample."""
    entries = pair.moved(result, Tensor.view, samples.stored)
    return pack_values(entries, y, y.order[:-1])


def _class_loss(rule: Rule, op: Rule) -> Rule:
    """Rows of logits and one target for each: all other dimensions are one batch."""

    def on_packed(x: Packed, target: Any, weight: Any = None, reduction: int = 1, *args: Any, **kwargs: Any) -> Any:
        y, samples, flat, named = _as_samples(x, target)
        result = rule(flat, named, weight, reduction, *args, **kwargs)
        return _per_sample(result, y, samples) if reduction == 0 else result

    return on_packed


class_loss = StorageRule("class logits of each token", _class_loss, Takes(free=("target",)))


def _linear_class_loss(rule: Rule, op: Rule) -> Rule:
    """Rows of features, of which a layer makes logits, and one target for each; reduced, or an entry for each."""

    def on_packed(x: Packed, layer: Any, target: Any, *rest: Any) -> Any:
        y, samples, flat, named = _as_samples(x, target)
        result = rule(flat, layer, named, *rest)
        return _per_sample(result, y, samples) if type(result) is Pair else result

    return on_packed


_PARAMETERS = ("linear_weight", "linear_bias", "weight")
linear_class_loss = StorageRule(
    "features of each token", _linear_class_loss, Takes(free=("target",), masked=_PARAMETERS)
)
