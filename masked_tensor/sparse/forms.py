"""Reductions, softmax, scans and products of pairs with sparse data: the verbs of the functional forms, by op name."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import shapes
from ..layouts.elements import values, with_values
from ..layouts.validity import valid_outputs
from ..pair import Pair
from . import along, distinct, laws, order, ranks, sorting
from .product import affine, linear, matmul
from .reduction import reduce

Dim = int | Sequence[int] | None


def _dims(x: Pair, dim: Dim) -> tuple[int, ...]:
    return shapes.canonical_dims(dim, x.data.dim())


def _axis(x: Pair, dim: int) -> int:
    return shapes.canonical_dims(dim, max(x.data.dim(), 1))[0]


def _reduction(law: Callable[..., Tensor]) -> Callable[..., Pair]:
    def rule(x: Pair, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
        data = x.data if dtype is None else with_values(x.data, values(x.data).to(dtype))
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
    return valid_outputs(*reduce(laws.norm, x.data, x.mask, _dims(x, dim), keepdim, ord=2 if ord is None else ord))


def _arg(largest: bool) -> Callable[..., Pair]:
    def rule(x: Pair, dim: int | None = None, keepdim: bool = False) -> Pair:
        return valid_outputs(*order.position(x.data, x.mask, _dims(x, dim), keepdim, largest=largest))

    return rule


def _extreme(largest: bool) -> Callable[..., Any]:
    def rule(x: Pair, dim: Any = None, keepdim: bool = False) -> Any:
        if type(dim) is Pair or isinstance(dim, Tensor):
            raise NotImplementedError("use torch.maximum or torch.minimum for two sparse masked tensors")
        best, where = order.extreme(x.data, x.mask, _dims(x, dim), keepdim, largest=largest)
        return valid_outputs(*best) if dim is None else (valid_outputs(*best), valid_outputs(*where))

    return rule


def _softmax(log: bool) -> Callable[..., Pair]:
    def rule(x: Pair, dim: int, dtype: torch.dtype | bool | None = None) -> Pair:
        data = x.data if not isinstance(dtype, torch.dtype) else with_values(x.data, values(x.data).to(dtype))
        return Pair(along.softmax(data, x.mask, _axis(x, dim), log=log, mode="safe"), x.mask)

    return rule


def scan(rule: Callable[..., Pair], x: Pair, dim: int, *, dtype: torch.dtype | None = None) -> Pair:
    data = x.data if dtype is None else with_values(x.data, values(x.data).to(dtype))
    (result,) = along.scan(lambda row, _: [rule(row, 1)], data, x.mask, _axis(x, dim))
    return Pair(result, x.mask)


def scan_extreme(rule: Callable[..., tuple[Pair, Pair]], x: Pair, dim: int) -> tuple[Pair, Pair]:
    best, where = along.scan_extreme(rule, x.data, x.mask, _axis(x, dim))
    return Pair(best, x.mask), Pair(where, x.mask)


def _quantile(skip_nan: bool) -> Callable[..., Pair]:
    def rule(
        x: Pair, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Pair:
        dims = _dims(x, dim)
        return valid_outputs(
            *ranks.quantile(x.data, x.mask, q, dims, keepdim, interpolation=interpolation, skip_nan=skip_nan)
        )

    return rule


SCANS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp"), scan),
    **dict.fromkeys(("cummax", "cummin"), scan_extreme),
}
OPS: dict[str, Callable[..., Any]] = {
    **{name: _reduction(getattr(laws, name)) for name in ("sum", "mean", "prod", "amax", "amin", "any", "all")},
    **{name: _reduction(getattr(laws, name)) for name in ("nansum", "logsumexp", "count_nonzero")},
    "var": _moment(laws.var),
    "std": _moment(laws.std),
    "linalg_vector_norm": norm,
    "norm": norm,
    "argmax": _arg(True),
    "argmin": _arg(False),
    "max": _extreme(True),
    "min": _extreme(False),
    **{name: _softmax(False) for name in ("softmax", "_softmax", "_sparse_softmax")},
    **{name: _softmax(True) for name in ("log_softmax", "_log_softmax", "_sparse_log_softmax")},
    **dict.fromkeys(("matmul", "mm", "mv", "_sparse_mm"), matmul),
    **dict.fromkeys(("addmm", "addmv"), affine),
    "linear": linear,
    "median": sorting.median,
    "nanmedian": partial(sorting.median, skip_nan=True),
    "sort": sorting.sort,
    "topk": sorting.topk,
    "kthvalue": sorting.kthvalue,
    "mode": mode,
    "quantile": _quantile(False),
    "nanquantile": _quantile(True),
    "aminmax": aminmax,
    **{name: _with_mean(law) for name, law in (("var_mean", laws.var), ("std_mean", laws.std))},
}
