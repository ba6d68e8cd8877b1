"""Functional cumulative sums, products, maxima and minima over the valid entries."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import shapes, sparse
from ..sparse import slice_reductions
from .entrance import Input, as_result, enter_input, result_in_pattern, run_op
from .reductions.extremes import R
from .reductions.run import aten, in_dtype
from .registry import as_torch


@as_torch(packed=torch.cumsum)
def cumsum(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The running sum of the valid entries along ``dim``: ``y[t] = sum(x[s] for s <= t if valid[s])``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.

    Returns:
        Tensor: ``input``'s shape and layout, in ``dtype`` if it is given, else in ``input``'s dtype; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Example:
        >>> mt.cumsum(torch.tensor([1, 2, 3]), 0, mask=torch.tensor([True, False, True]))
        tensor([1, 0, 4])

    See also:
        :func:`sum`.

    References:
        ``torch.cumsum``, ``torch.masked.cumsum``.
    """
    return _scan(aten.cumsum.default, input, dim, dtype, mask)


@as_torch(packed=torch.cumprod)
def cumprod(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The running product of the valid entries along ``dim``: ``y[t] = prod(x[s] for s <= t if valid[s])``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.

    Returns:
        Tensor: ``input``'s shape and layout, in ``dtype`` if it is given, else in ``input``'s dtype; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Example:
        >>> mt.cumprod(torch.tensor([2, 9, 3]), 0, mask=torch.tensor([True, False, True]))
        tensor([2, 0, 6])

    See also:
        :func:`prod`.

    References:
        ``torch.cumprod``, ``torch.masked.cumprod``.
    """
    return _scan(aten.cumprod.default, input, dim, dtype, mask)


@as_torch
def logcumsumexp(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of exponentials of the valid entries: ``log(cumsum(exp(x)))``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.

    Returns:
        Tensor: ``input``'s shape, layout and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> mt.logcumsumexp(torch.zeros(3), 0, mask=torch.tensor([True, False, True]))
        tensor([0.0000, 0.0000, 0.6931])

    See also:
        :func:`logsumexp`, :func:`logaddexp`.

    References:
        ``torch.logcumsumexp``.
    """
    given = enter_input(input, mask).to(dtype)
    slice_reductions.check_inexact("logcumsumexp", given.data)
    return _scan(aten.logcumsumexp.default, given, dim, None, None)


@as_torch
def cummax(input: Tensor, dim: int, *, mask: Tensor | None = None) -> torch.return_types.cummax:
    """The running maximum of the valid entries along ``dim``, and its position: ``max(x[s] for s <= t if valid[s])``.

    Masked entries are 0 in plain results and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape: values in its dtype, and the int64 position
        along ``dim`` of the last entry that is the maximum. MaskedTensors if ``input`` is one.

    Raises:
        NotImplementedError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> mt.cummax(torch.tensor([1, 9, 3]), 0, mask=torch.tensor([True, False, True]))
        torch.return_types.cummax(
        values=tensor([1, 0, 3]),
        indices=tensor([0, 0, 2]))

    See also:
        :func:`cummin`, :func:`max`.

    References:
        ``torch.cummax``.
    """
    return _scan_extreme(torch.return_types.cummax, aten.cummax.default, input, dim, mask)


@as_torch
def cummin(input: Tensor, dim: int, *, mask: Tensor | None = None) -> torch.return_types.cummin:
    """The running minimum of the valid entries along ``dim``, and its position: ``min(x[s] for s <= t if valid[s])``.

    Masked entries are 0 in plain results and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape: values in its dtype, and the int64 position
        along ``dim`` of the last entry that is the minimum. MaskedTensors if ``input`` is one.

    Raises:
        NotImplementedError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> mt.cummin(torch.tensor([3, 0, 1]), 0, mask=torch.tensor([True, False, True]))
        torch.return_types.cummin(
        values=tensor([3, 0, 1]),
        indices=tensor([0, 0, 2]))

    See also:
        :func:`cummax`, :func:`min`.

    References:
        ``torch.cummin``.
    """
    return _scan_extreme(torch.return_types.cummin, aten.cummin.default, input, dim, mask)


def _scan(op: Any, input: Any, dim: int, dtype: Any, mask: Any) -> Tensor:
    given = input if type(input) is Input else enter_input(input, mask).to(dtype)
    if given.is_sparse:
        return in_dtype(_sparse(sparse.scan, lambda row, _: [run_op(op, row, 1)], given, dim)[0], dtype)
    return in_dtype(as_result(run_op(op, given.x, dim), given.masked, 0), dtype)


def _scan_extreme(kind: type[R], op: Any, input: Any, dim: int, mask: Any) -> R:
    given = enter_input(input, mask)
    if given.is_sparse:
        return kind(_sparse(sparse.scan_extreme, partial(run_op, op), given, dim))
    values, indices = run_op(op, given.x, dim)
    return kind((as_result(values, given.masked, 0), as_result(indices, given.masked, 0)))


def _sparse(scan: Callable[..., Any], rule: Callable[..., Any], x: Input, dim: int) -> list[Tensor]:
    (dim,) = shapes.canonical_dims(int(dim), max(x.data.dim(), 1))
    return [result_in_pattern(x, data) for data in scan(rule, x.data, x.mask, dim)]
