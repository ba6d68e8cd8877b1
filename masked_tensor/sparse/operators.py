"""Reductions, softmax and scans of pairs with sparse data, with the signatures of the operators."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import pair, shapes
from ..layouts.elements import to
from ..layouts.validity import valid_outputs
from ..op import NoRule
from ..pair import Pair
from ..shared.averaging import MEAN
from ..shared.too_few import TooFew, needed_for, of_nothing
from . import along, classes, distinct, order, ranks, slice_reductions, two_operands
from .reduction import reduce

Dim = int | Sequence[int] | None


def _dims(x: Pair, dim: Dim) -> tuple[int, ...]:
    return shapes.canonical_dims(dim, x.data.dim())


def _axis(x: Pair, dim: int) -> int:
    return shapes.canonical_dims(dim, x.data.dim() or 1)[0]


def _cast(x: Pair, dtype: torch.dtype | None) -> Tensor:
    return x.data if dtype is None else to(x.data, dtype)


def _reduction(name: str) -> Callable[..., Pair]:
    law, few = getattr(slice_reductions, name), TooFew(of_nothing(name))

    def rule(x: Pair, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
        data = _cast(x, dtype)
        return valid_outputs(*reduce(law, data, x.mask, _dims(x, dim), keepdim, few=few))

    return rule


def _moment(name: str) -> Callable[..., Pair]:
    law = getattr(slice_reductions, name)

    def rule(x: Pair, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False) -> Pair:
        n = 1 if correction is None else correction
        few = TooFew(of_nothing(name), None, needed_for(n) if x.data.numel() else None)
        return valid_outputs(*reduce(law, x.data, x.mask, _dims(x, dim), keepdim, correction=n, few=few))

    return rule


def _with_mean(name: str) -> Callable[..., tuple[Pair, Pair]]:
    moment, average = _moment(name), _reduction("mean")

    def rule(x: Pair, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False) -> tuple[Pair, Pair]:
        return moment(x, dim, correction=correction, keepdim=keepdim), average(x, dim, keepdim)

    return rule


def aminmax(x: Pair, *, dim: int | None = None, keepdim: bool = False) -> tuple[Pair, Pair]:
    least, greatest = (_reduction(name)(x, dim, keepdim) for name in ("amin", "amax"))
    return least, greatest


def count_nonzero(x: Pair, dim: Dim = None) -> Pair:
    few = TooFew(of_nothing("count_nonzero"), min_count=0)
    return valid_outputs(*reduce(slice_reductions.count_nonzero, x.data, x.mask, _dims(x, dim), few=few))


def mode(x: Pair, dim: int = -1, keepdim: bool = False) -> tuple[Pair, Pair]:
    best, where = distinct.mode(x.data, x.mask, _dims(x, dim), keepdim, TooFew(of_nothing("mode")))
    return valid_outputs(*best), valid_outputs(*where)


def norm(
    x: Pair, ord: float | None = 2, dim: Dim = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Pair:
    ord, few = 2 if ord is None else ord, TooFew(of_nothing("norm" if ord is None or ord >= 0 else "amin"))
    return valid_outputs(
        *reduce(slice_reductions.norm, _cast(x, dtype), x.mask, _dims(x, dim), keepdim, ord=ord, few=few)
    )


def dist(x: Pair | Tensor, y: Pair | Tensor, p: float = 2) -> Pair:
    first, second = pair.as_pair(x), pair.as_pair(y)
    if first.data.shape != second.data.shape:
        raise NoRule("both operands must have one shape")
    return Pair(*two_operands.dist(first.data, second.data, two_operands.mask_and(first.mask, second.mask), p))


def _arg(largest: bool) -> Callable[..., Pair]:
    def rule(x: Pair, dim: int | None = None, keepdim: bool = False) -> Pair:
        return valid_outputs(*order.position(x.data, x.mask, _dims(x, dim), keepdim, largest=largest))

    return rule


def _extreme(largest: bool) -> Callable[..., Any]:
    def rule(x: Pair, dim: Any = None, keepdim: bool = False) -> Any:
        few = TooFew(of_nothing("max" if largest else "min"))
        best, where = order.extreme(x.data, x.mask, _dims(x, dim), keepdim, largest=largest, few=few)
        return valid_outputs(*best) if dim is None else (valid_outputs(*best), valid_outputs(*where))

    return rule


def _softmax(log: bool, mode: str = "safe") -> Callable[..., Pair]:
    def rule(x: Pair, dim: int, dtype: torch.dtype | bool | None = None) -> Pair:
        data = _cast(x, dtype if isinstance(dtype, torch.dtype) else None)
        return Pair(along.softmax(data, x.mask, _axis(x, dim), log=log, mode=mode), x.mask)

    return rule


def scan(rule: Callable[..., Pair], x: Pair, dim: int, *, dtype: torch.dtype | None = None) -> Pair:
    data = _cast(x, dtype)
    (result,) = along.scan(lambda row, _: [rule(row, 1)], data, x.mask, _axis(x, dim))
    return Pair(result, x.mask)


def scan_extreme(rule: Callable[..., tuple[Pair, Pair]], x: Pair, dim: int) -> tuple[Pair, Pair]:
    best, where = along.scan_extreme(rule, x.data, x.mask, _axis(x, dim))
    return Pair(best, x.mask), Pair(where, x.mask)


def _classes(logits: bool) -> Callable[..., Pair]:
    def rule(
        x: Pair,
        target: Pair | Tensor,
        weight: Tensor | None = None,
        reduction: int = MEAN,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
    ) -> Pair:
        t = pair.as_pair(target)
        if not classes.plain_classes(t.data, weight, label_smoothing):
            raise NoRule("the target must be class indices, and nothing smoothed")
        return classes.cross_entropy(x.data, x.mask, t.data, t.mask, weight, reduction, ignore_index, logits=logits)

    return rule


def _quantile(skip_nan: bool) -> Callable[..., Pair]:
    def rule(
        x: Pair,
        q: float | Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Pair:
        dims = _dims(x, dim)
        return valid_outputs(
            *ranks.quantile(x.data, x.mask, q, dims, keepdim, interpolation=interpolation, skip_nan=skip_nan)
        )

    return rule


sum, mean, prod, nansum = map(_reduction, ("sum", "mean", "prod", "nansum"))
amax, amin, any, all = map(_reduction, ("amax", "amin", "any", "all"))
logsumexp = _reduction("logsumexp")
var, std, var_mean, std_mean = _moment("var"), _moment("std"), _with_mean("var"), _with_mean("std")
cross_entropy, nll_loss = _classes(True), _classes(False)
argmax, argmin = _arg(True), _arg(False)
max, min = _extreme(True), _extreme(False)
softmax, log_softmax, safe_softmax = _softmax(False), _softmax(True), _softmax(False, "inf_as_zero")
quantile, nanquantile = _quantile(False), _quantile(True)
