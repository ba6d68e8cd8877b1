"""Reductions, softmax and scans of pairs with sparse data, with the signatures of the operators: what rows name."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import shapes
from ..layouts.elements import to
from ..layouts.validity import valid_outputs
from ..op import NoForm
from ..pair import Pair
from . import along, distinct, laws, order, ranks
from .reduction import reduce

Dim = int | Sequence[int] | None


def _dims(x: Pair, dim: Dim) -> tuple[int, ...]:
    return shapes.canonical_dims(dim, x.data.dim())


def _axis(x: Pair, dim: int) -> int:
    return shapes.canonical_dims(dim, x.data.dim() or 1)[0]


def _cast(x: Pair, dtype: torch.dtype | None) -> Tensor:
    return x.data if dtype is None else to(x.data, dtype)


def _reduction(law: Callable[..., Tensor]) -> Callable[..., Pair]:
    def rule(x: Pair, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
        data = _cast(x, dtype)
        return valid_outputs(*reduce(law, data, x.mask, _dims(x, dim), keepdim))

    return rule


def _moment(law: Callable[..., Tensor], keepdim_default: bool = False) -> Callable[..., Pair]:
    def rule(
        x: Pair, dim: Any = None, unbiased: Any = True, keepdim: bool = keepdim_default, *, correction: Any = None
    ) -> Pair:
        if isinstance(dim, bool):  # var(x, unbiased)
            dim, unbiased = None, dim
        n = (1 if unbiased else 0) if correction is None else correction
        data, valid = reduce(law, x.data, x.mask, _dims(x, dim), keepdim, correction=n, min_count=math.floor(n) + 1)
        return valid_outputs(data, valid)

    return rule


def _with_mean(law: Callable[..., Tensor]) -> Callable[..., tuple[Pair, Pair]]:
    moment, average = _moment(law), _reduction(laws.mean)

    def rule(x: Pair, dim: Any = None, *rest: Any, **keywords: Any) -> tuple[Pair, Pair]:
        keepdim = keywords.get("keepdim", rest[1] if len(rest) > 1 else False)
        return moment(x, dim, *rest, **keywords), average(x, None if isinstance(dim, bool) else dim, keepdim)

    return rule


def aminmax(x: Pair, *, dim: int | None = None, keepdim: bool = False) -> tuple[Pair, Pair]:
    least, greatest = (_reduction(law)(x, dim, keepdim) for law in (laws.amin, laws.amax))
    return least, greatest


def mode(x: Pair, dim: int = -1, keepdim: bool = False) -> tuple[Pair, Pair]:
    best, where = distinct.mode(x.data, x.mask, _dims(x, dim), keepdim)
    return valid_outputs(*best), valid_outputs(*where)


def norm(
    x: Pair, ord: float | None = 2, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Pair:
    data = _cast(x, dtype)
    return valid_outputs(*reduce(laws.norm, data, x.mask, _dims(x, dim), keepdim, ord=2 if ord is None else ord))


def _arg(largest: bool) -> Callable[..., Pair]:
    def rule(x: Pair, dim: int | None = None, keepdim: bool = False) -> Pair:
        return valid_outputs(*order.position(x.data, x.mask, _dims(x, dim), keepdim, largest=largest))

    return rule


def _extreme(largest: bool) -> Callable[..., Any]:
    def rule(x: Pair, dim: Any = None, keepdim: bool = False) -> Any:
        best, where = order.extreme(x.data, x.mask, _dims(x, dim), keepdim, largest=largest)
        return valid_outputs(*best) if dim is None else (valid_outputs(*best), valid_outputs(*where))

    return rule


def _softmax(log: bool) -> Callable[..., Pair]:
    def rule(x: Pair, dim: int, dtype: torch.dtype | bool | None = None) -> Pair:
        data = _cast(x, dtype if isinstance(dtype, torch.dtype) else None)
        return Pair(along.softmax(data, x.mask, _axis(x, dim), log=log, mode="safe"), x.mask)

    return rule


def scan(rule: Callable[..., Pair], x: Pair, dim: int, *, dtype: torch.dtype | None = None) -> Pair:
    data = _cast(x, dtype)
    (result,) = along.scan(lambda row, _: [rule(row, 1)], data, x.mask, _axis(x, dim))
    return Pair(result, x.mask)


def scan_extreme(rule: Callable[..., tuple[Pair, Pair]], x: Pair, dim: int) -> tuple[Pair, Pair]:
    best, where = along.scan_extreme(rule, x.data, x.mask, _axis(x, dim))
    return Pair(best, x.mask), Pair(where, x.mask)


def _quantile(skip_nan: bool) -> Callable[..., Pair]:
    def rule(
        x: Pair,
        q: float | Tensor | Pair,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Pair:
        if isinstance(q, Pair):
            raise NoForm("the quantiles asked for must be plain")
        dims = _dims(x, dim)
        return valid_outputs(
            *ranks.quantile(x.data, x.mask, q, dims, keepdim, interpolation=interpolation, skip_nan=skip_nan)
        )

    return rule


sum, mean, prod, nansum = (_reduction(law) for law in (laws.sum, laws.mean, laws.prod, laws.nansum))
amax, amin, any, all = (_reduction(law) for law in (laws.amax, laws.amin, laws.any, laws.all))
logsumexp, count_nonzero = _reduction(laws.logsumexp), _reduction(laws.count_nonzero)
var, std = _moment(laws.var), _moment(laws.std)
var_mean, std_mean = _with_mean(laws.var), _with_mean(laws.std)
argmax, argmin = _arg(True), _arg(False)
max, min = _extreme(True), _extreme(False)
softmax, log_softmax = _softmax(False), _softmax(True)
quantile, nanquantile = _quantile(False), _quantile(True)
