"""Functional cumulative sums and products over the valid elements."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import layouts, shapes, sparse
from ..sparse import slice_reductions
from .entrance import Input, as_result, enter_input, result_in_pattern, run_op
from .form import aten
from .names import as_torch


@as_torch
def cumsum(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The running sum of the valid elements along ``dim``; a masked-out element adds nothing and gives 0.

    ``mask`` (True = valid) has any layout and broadcasts to ``input``; the result has the shape of ``input``, and
    integers promote as in torch.  A sparse input keeps its pattern: unspecified elements never take part.

    >>> mt.cumsum(torch.tensor([1, 2, 3]), 0, mask=torch.tensor([True, False, True]))
    tensor([1, 0, 4])
    """
    return _scan(aten.cumsum.default, input, dim, dtype, mask)


@as_torch
def cumprod(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The running product of the valid elements along ``dim``.  Arguments as :func:`cumsum`.

    >>> mt.cumprod(torch.tensor([2, 9, 3]), 0, mask=torch.tensor([True, False, True]))
    tensor([2, 0, 6])
    """
    return _scan(aten.cumprod.default, input, dim, dtype, mask)


@as_torch
def logcumsumexp(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """``log(cumsum(exp(x)))`` over the valid elements along ``dim``.  Arguments as :func:`cumsum`.

    >>> mt.logcumsumexp(torch.zeros(3), 0, mask=torch.tensor([True, False, True]))
    tensor([0.0000, 0.0000, 0.6931])
    """
    given = enter_input(input, mask).to(dtype)
    slice_reductions.check_inexact("logcumsumexp", given.data)
    return _scan(aten.logcumsumexp.default, given, dim, None, None)


@as_torch
def cummax(input: Tensor, dim: int, *, mask: Tensor | None = None) -> Any:
    """The running maximum of the valid elements along ``dim``, a named tuple ``(values, indices)``.

    Arguments as :func:`cumsum`; an index is the position along ``dim`` of the last element that attained the maximum.
    The results of a sparse input keep its pattern: unspecified elements never take part.

    >>> mt.cummax(torch.tensor([1, 9, 3]), 0, mask=torch.tensor([True, False, True]))
    torch.return_types.cummax(
    values=tensor([1, 0, 3]),
    indices=tensor([0, 0, 2]))
    """
    return _scan_extreme("cummax", aten.cummax.default, input, dim, mask)


@as_torch
def cummin(input: Tensor, dim: int, *, mask: Tensor | None = None) -> Any:
    """The running minimum of the valid elements along ``dim``, a named tuple ``(values, indices)``.

    Arguments as :func:`cummax`.

    >>> mt.cummin(torch.tensor([3, 0, 1]), 0, mask=torch.tensor([True, False, True]))
    torch.return_types.cummin(
    values=tensor([3, 0, 1]),
    indices=tensor([0, 0, 2]))
    """
    return _scan_extreme("cummin", aten.cummin.default, input, dim, mask)


def _scan(op: Any, input: Any, dim: int, dtype: Any, mask: Any) -> Tensor:
    given = input if type(input) is Input else enter_input(input, mask).to(dtype)
    if layouts.is_sparse(given.data):
        return _sparse(sparse.scan, lambda row, _: [run_op(op, row, 1)], given, dim)[0]
    return as_result(run_op(op, given.x, dim), given.masked, 0)


def _scan_extreme(name: str, op: Any, input: Any, dim: int, mask: Any) -> Any:
    given = enter_input(input, mask)
    kind = getattr(torch.return_types, name)
    if layouts.is_sparse(given.data):
        return kind(_sparse(sparse.scan_extreme, partial(run_op, op), given, dim))
    values, indices = run_op(op, given.x, dim)
    return kind((as_result(values, given.masked, 0), as_result(indices, given.masked, 0)))


def _sparse(scan: Callable[..., Any], rule: Callable[..., Any], x: Input, dim: int) -> list[Tensor]:
    (dim,) = shapes.canonical_dims(int(dim), max(x.data.dim(), 1))
    return [result_in_pattern(x, data) for data in scan(rule, x.data, x.mask, dim)]
