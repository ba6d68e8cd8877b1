"""Ops along features: the tokens form a batch, so the plain op runs on the stored values."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import pair
from ..op import NoRule, Rule, StorageRule, Takes
from ..pair import Pair
from . import dim_order as orders
from .grid import same_places
from .packed import Packed, canonicalize, pack_values
from .views import feature_axis, feature_dim, features_last


def run_on_values(x: Packed, rule: Rule, op: Rule) -> Rule:
    """The plain op, or the family's own rule where entries of a stored token are masked."""
    return op if x.inner is None else rule


def along_feature(at: int = 1, default: int | None = -1) -> StorageRule:
    """An op of one tensor along one dimension, which is argument ``at``: softmax, cumsum, glu, topk, max ..."""

    def make(rule: Rule, op: Rule) -> Rule:
        def on_packed(x: Packed, *args: Any, **kwargs: Any) -> Any:
            dim = kwargs["dim"] if "dim" in kwargs else args[at - 1] if len(args) >= at else default
            if not isinstance(dim, int):
                raise NoRule
            y, d = feature_axis(x, dim)
            if len(args) > at:
                args = (*args[: at - 1], d, *args[at:])
            else:
                args, kwargs = args[: at - 1], {**kwargs, "dim": d}
            return with_feature_axis(
                run_on_values(y, rule, op)(y.operand(), *args, **kwargs), y, feature_dim(dim, x), d
            )

        return on_packed

    return StorageRule("along features", make)


def with_feature_axis(result: Any, y: Packed, dim: int, at: int) -> Any:
    """Results that kept their dimension ``at``, in whatever size, or lost it."""
    if isinstance(result, (tuple, list)):
        return tuple(with_feature_axis(r, y, dim, at) for r in result)
    data = result.data if isinstance(result, Pair) else result
    if data.dim() == y.values.dim():
        return pack_values(result, y)
    order = orders.drop_atoms(y.order, [at + y.first - 1])
    return pack_values(result, y, (*order[:dim], *order[dim + 1 :]))


def over_last_dims(dims: Any, at: int = 0) -> StorageRule:
    """An op of one packed tensor, argument ``at``, that works on its last dimensions (``dims`` of the arguments)."""

    def make(rule: Rule, op: Rule) -> Rule:
        def on_packed(*args: Any, **kwargs: Any) -> Any:
            x = args[at]
            n = dims(*args)
            if not 0 < n <= len(x.order):
                raise NoRule
            y = features_last(x, range(len(x.order) - n, len(x.order)))
            result = run_on_values(y, rule, op)(*args[:at], y.operand(), *args[at + 1 :], **kwargs)
            several = isinstance(result, (tuple, list))
            parts = tuple(pack_values(r, y) for r in (result if several else (result,)))
            return parts if several else parts[0]

        return on_packed

    return StorageRule("on the last features", make, Takes(stored=(at,)))


def _linear(x: Packed, weight: Tensor, *rest: Any) -> int:
    return 1 if weight.dim() == 2 and x.shape[-1:] == weight.shape[-1:] else 0


def _product(x: Packed, other: Tensor, *rest: Any) -> int:
    return 1 if other.dim() == 2 and x.shape[-1:] == other.shape[:1] and len(x.order) > 1 else 0


def _affine(summand: Tensor, x: Packed, other: Tensor, *rest: Any) -> int:
    return 1 if summand.dim() <= 1 and other.dim() == 2 and x.shape[-1:] == other.shape[:1] else 0


def _normalize(x: Packed, shape: Sequence[int], *rest: Any) -> int:
    return len(shape) if tuple(x.shape[-len(shape) :]) == tuple(shape) else 0


linear = over_last_dims(_linear)  #: ``x @ weight.T + bias``
product = over_last_dims(_product)  #: ``x @ matrix``
affine = over_last_dims(_affine, 1)  #: ``bias + x @ matrix``
normalize = over_last_dims(_normalize)  #: layer and rms norm


def append_feature(at: int) -> StorageRule:
    """One more feature: what a token holds, argument ``at``, is looked up (embedding, one_hot)."""

    def make(rule: Rule, op: Rule) -> Rule:
        def on_packed(*args: Any, **kwargs: Any) -> Any:
            x = args[at]
            if not x.values.numel():
                raise NoRule  # how many classes there are is seen in what is stored
            result = run_on_values(x, rule, op)(*args[:at], x.operand(), *args[at + 1 :], **kwargs)
            return pack_values(result, x, (*x.order, (x.first + x.values.dim() - 1,)))

        return on_packed

    return StorageRule("one more feature", make, Takes(stored=(at,)))


def gather(x: Packed, dim: int, index: Packed, **kwargs: Any) -> Packed:
    """``x.gather(dim, index)`` of two packed tensors along a feature."""
    if not same_places(x.grid, index.grid) or len(x.order) != len(index.order):
        raise NoRule
    d = feature_dim(dim, x)
    y, at = (features_last(canonicalize(v), [d]) for v in (x, index))
    if y.order != at.order or y.stored[:-1] != at.stored[:-1]:
        raise NoRule
    return pack_values(torch.gather(y.values, -1, at.values, **kwargs), y)


def _batch_norm(rule: Rule, op: Rule) -> Rule:
    def on_packed(x: Packed, *args: Any, **kwargs: Any) -> Any:
        y = features_last(x, [1])
        flat = y.values.flatten(0, -2)
        if flat.shape[0] < 2:
            raise NoRule
        result = op(flat, *args, **kwargs)
        several = isinstance(result, (tuple, list))
        first = pack_values((result[0] if several else result).view(y.stored), y)
        return (first, *map(pair.as_pair, result[1:])) if several else first

    return on_packed


#: all tokens are one batch: channels, the second dimension, are a feature
batch_norm = StorageRule("one batch", _batch_norm, Takes(whole=(0,), within=0))
