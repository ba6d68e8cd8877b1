"""Functional order statistics: median, quantile, mode and their sisters."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import layouts, shapes, sparse
from .entrance import Number, as_result, check_ordered, enter_input, for_too_few, has_min_count, restore_dims, run_op
from .extremes import one_dim
from .form import aten, sparse_result
from .names import as_torch

_NAN = float("nan")


@as_torch
def median(
    input: Tensor,
    dim: int | None = -1,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The lower median of the valid elements along one ``dim`` (None: of all of them), NaN if one of them is NaN.

    Where none is valid: NaN, or 0 for integers.  Other arguments as :func:`sum`.

    >>> m = torch.tensor([True, True, False, True])
    >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), mask=m)
    tensor(3.)
    """
    return _median("median", aten.median, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def nanmedian(
    input: Tensor,
    dim: int | None = -1,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The lower median of the valid elements that are not NaN.  Arguments as :func:`median`.

    >>> x = torch.tensor([5.0, float("nan"), 9.0])
    >>> mt.nanmedian(x, mask=torch.tensor([True, True, False]))
    tensor(5.)
    """
    return _median("nanmedian", aten.nanmedian, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, mask: Tensor | None = None) -> Any:
    """The most frequent valid element along ``dim``, the least of several; a named tuple ``(values, indices)``.

    The index is that of its last occurrence, among unspecified elements of a sparse input too.  Where none is valid:
    NaN (0 for integers) and index 0.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = torch.tensor([[0.0, 2.0, 2.0, 5.0], [0.0, 0.0, 7.0, 0.0]]).to_sparse_coo()
        >>> mt.mode(x, 1).values.to_dense()
        tensor([2., 0.])
    """
    given = enter_input(input, mask)
    if layouts.is_sparse(given.data):
        dims = shapes.canonical_dims(dim, check_ordered("mode", given, boolean=True).data.dim())
        sparse.check_nonempty("mode", given.data.shape, dims)
        values, indices = sparse.mode(given.data, given.mask, dims, keepdim)
        results = sparse_result(*values, given.masked, _NAN), sparse_result(*indices, given.masked, 0)
        return torch.return_types.mode(results)
    values, indices = run_op(aten.mode.default, given.x, dim, keepdim)
    return torch.return_types.mode((as_result(values, given.masked, _NAN), as_result(indices, given.masked, 0)))


@as_torch
def quantile(
    input: Tensor,
    q: float | Sequence[float] | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The ``q``-quantile of the valid elements, NaN if one is NaN or none is valid.  Arguments as torch.quantile.

    The unspecified valid elements of a sparse input are zeros, and only counted.  With a 1-D ``q``, or a list of
    numbers, the first dimension of the result is that of ``q``.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = torch.tensor([[0.0, -2.0, 4.0], [0.0, 0.0, 3.0]]).to_sparse_coo()
        >>> mt.quantile(x, 0.75, 1, keepdim=True).to_dense()
        tensor([[2.0000],
                [1.5000]])
    """
    return _quantile("quantile", aten.quantile, input, q, dim, keepdim, interpolation, mask, fill_value)


@as_torch
def nanquantile(
    input: Tensor,
    q: float | Sequence[float] | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The ``q``-quantile of the valid elements that are not NaN.  Arguments as :func:`quantile`.

    >>> x = torch.tensor([1.0, float("nan"), 3.0, 99.0])
    >>> m = torch.tensor([True, True, True, False])
    >>> mt.nanquantile(x, 0.5, mask=m)
    tensor(2.)
    """
    return _quantile("nanquantile", aten.nanquantile, input, q, dim, keepdim, interpolation, mask, fill_value)


def _median(
    name: str, op: Any, input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any, fill_value: Any, min_count: Any
) -> Tensor:
    one_dim(name, dim)
    given = check_ordered(name, enter_input(input, mask).to(dtype))
    dims = shapes.canonical_dims(dim, given.data.dim())
    if dim is not None:
        sparse.check_nonempty(name, given.data.shape, dims)
    fill_value = for_too_few(name, given.data.dtype, given.masked, fill_value, min_count)
    if layouts.is_sparse(given.data):
        data, valid = sparse.median(
            given.data,
            given.mask,
            dims,
            keepdim,
            skip_nan=name == "nanmedian",
            fill_value=fill_value,
            min_count=min_count,
        )
        return sparse_result(data, valid, given.masked, _NAN, fill_value)
    if dim is None:
        result = run_op(op.default, given.x)
        if keepdim:
            shape = [1] * given.data.dim()
            result = restore_dims(result, shape)
    else:
        result = run_op(op.dim, given.x, dim, keepdim)[0]
    return as_result(result, given.masked, _NAN, fill_value, has_min_count(given, dims, keepdim, min_count, fill_value))


def _quantile(
    name: str, op: Any, input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, mask: Any, fill_value: Any
) -> Tensor:
    one_dim(name, dim)
    given = enter_input(input, mask)
    if isinstance(q, (list, tuple)):
        q = torch.tensor(q, dtype=given.data.dtype, device=given.data.device)
    if layouts.is_sparse(given.data):
        dims = shapes.canonical_dims(dim, given.data.dim())
        data, valid = sparse.quantile(
            given.data,
            given.mask,
            q,
            dims,
            keepdim,
            interpolation=interpolation,
            skip_nan=name == "nanquantile",
            fill_value=fill_value,
        )
        return sparse_result(data, valid, given.masked, _NAN)
    overload = op.default if isinstance(q, Tensor) else op.scalar
    result = run_op(overload, given.x, q, dim, keepdim, interpolation=interpolation)
    return as_result(result, given.masked, _NAN, fill_value)
