"""Ops along features: the rows are a batch of their own, so the plain op runs on what is stored."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import pair
from ..op import Form, NoForm, Rule, Takes
from ..pair import Pair
from . import dim_order as orders
from .grid import same
from .packed import Packed, canonical, made
from .views import arranged, faced, position


def run(x: Packed, rule: Rule, op: Rule) -> Rule:
    """The plain op, or the family's own rule where a stored row has holes."""
    return op if x.inner is None else rule


def along(at: int = 1, default: int | None = -1) -> Form:
    """An op of one tensor along one dimension, which is argument ``at``: softmax, cumsum, glu, topk, max ..."""

    def make(rule: Rule, op: Rule) -> Rule:
        def form(x: Packed, *args: Any, **kwargs: Any) -> Any:
            dim = kwargs["dim"] if "dim" in kwargs else args[at - 1] if len(args) >= at else default
            if not isinstance(dim, int):
                raise NoForm
            y, d = faced(x, dim)
            if len(args) > at:
                args = (*args[: at - 1], d, *args[at:])
            else:
                args, kwargs = args[: at - 1], {**kwargs, "dim": d}
            return each(run(y, rule, op)(y.operand(), *args, **kwargs), y, position(dim, x), d)

        return form

    return Form("along features", make)


def each(result: Any, y: Packed, dim: int, at: int) -> Any:
    """Results that kept their dimension ``at``, in whatever size, or lost it."""
    if isinstance(result, (tuple, list)):
        return tuple(each(r, y, dim, at) for r in result)
    data = result.data if isinstance(result, Pair) else result
    if data.dim() == y.values.dim():
        return made(result, y)
    order = orders.dropped(y.order, [at + y.first - 1])
    return made(result, y, (*order[:dim], *order[dim + 1 :]))


def _trailing(dims: Any, at: int = 0) -> Form:
    """An op of one packed tensor, argument ``at``, that works on its last dimensions (``dims`` of the arguments)."""

    def make(rule: Rule, op: Rule) -> Rule:
        def form(*args: Any, **kwargs: Any) -> Any:
            x = args[at]
            n = dims(*args)
            if not 0 < n <= len(x.order):
                raise NoForm
            y = arranged(x, range(len(x.order) - n, len(x.order)))
            result = run(y, rule, op)(*args[:at], y.operand(), *args[at + 1 :], **kwargs)
            several = isinstance(result, (tuple, list))
            parts = tuple(made(r, y) for r in (result if several else (result,)))
            return parts if several else parts[0]

        return form

    return Form("on the last features", make, Takes(stored=(at,)))


def _contracted(x: Packed, weight: Tensor, *rest: Any) -> int:
    return 1 if weight.dim() == 2 and x.shape[-1:] == weight.shape[-1:] else 0


def _multiplied(x: Packed, other: Tensor, *rest: Any) -> int:
    return 1 if other.dim() == 2 and x.shape[-1:] == other.shape[:1] and len(x.order) > 1 else 0


def _added(summand: Tensor, x: Packed, other: Tensor, *rest: Any) -> int:
    return 1 if summand.dim() <= 1 and other.dim() == 2 and x.shape[-1:] == other.shape[:1] else 0


def _normalized(x: Packed, shape: Sequence[int], *rest: Any) -> int:
    return len(shape) if tuple(x.shape[-len(shape) :]) == tuple(shape) else 0


linear = _trailing(_contracted)  #: ``x @ weight.T + bias``
product = _trailing(_multiplied)  #: ``x @ matrix``
affine = _trailing(_added, 1)  #: ``bias + x @ matrix``
normalized = _trailing(_normalized)  #: layer and rms norm


def appended(at: int) -> Form:
    """One more feature: what a row holds, argument ``at``, is looked up (embedding, one_hot)."""

    def make(rule: Rule, op: Rule) -> Rule:
        def form(*args: Any, **kwargs: Any) -> Any:
            x = args[at]
            if not x.values.numel():
                raise NoForm  # how many classes there are is seen in what is stored
            result = run(x, rule, op)(*args[:at], x.operand(), *args[at + 1 :], **kwargs)
            return made(result, x, (*x.order, (x.first + x.values.dim() - 1,)))

        return form

    return Form("one more feature", make, Takes(stored=(at,)))


def gather(x: Packed, dim: int, index: Packed, **kwargs: Any) -> Packed:
    """``x.gather(dim, index)`` of two packed tensors along a feature."""
    if not same(x.rows, index.rows) or len(x.order) != len(index.order):
        raise NoForm
    d = position(dim, x)
    y, at = (arranged(canonical(v), [d]) for v in (x, index))
    if y.order != at.order or y.stored[:-1] != at.stored[:-1]:
        raise NoForm
    return made(torch.gather(y.values, -1, at.values, **kwargs), y)


def _batch_norm(rule: Rule, op: Rule) -> Rule:
    def form(x: Packed, *args: Any, **kwargs: Any) -> Any:
        y = arranged(x, [1])
        flat = y.values.flatten(0, -2)
        if flat.shape[0] < 2:
            raise NoForm
        result = op(flat, *args, **kwargs)
        several = isinstance(result, (tuple, list))
        first = made((result[0] if several else result).view(y.stored), y)
        return (first, *map(pair.of, result[1:])) if several else first

    return form


#: all rows are one batch: channels, the second dimension, are a feature
batch_norm = Form("one batch", _batch_norm, Takes(whole=(0,)))
