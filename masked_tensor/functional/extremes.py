"""Functional extremes: argmax, argmin, max and min with their positions."""

from typing import Any

import torch
from torch import Tensor

from .. import layouts, shapes, sparse
from .entrance import Number, as_result, check_ordered, enter_input, for_too_few, has_min_count, run_op
from .form import aten, sparse_result
from .names import as_torch


@as_torch
def argmax(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The position (int64) of the greatest valid element along ``dim``, or in the flattened input for None.

    Never the position of a masked-out element; 0 where nothing is valid.  Other arguments as :func:`sum`, without a
    ``dtype``, as in torch.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = torch.tensor([5.0, -float("inf")])
        >>> mt.argmax(x, 0, mask=torch.tensor([False, True]))
        tensor(1)
    """
    return _position("argmax", aten.argmax.default, input, dim, keepdim, mask, fill_value, min_count)


@as_torch
def argmin(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The position (int64) of the least valid element.  Arguments as :func:`argmax`.

    >>> mt.argmin(torch.tensor([1, 5, 3]), 0, mask=torch.tensor([False, True, True]))
    tensor(2)
    """
    return _position("argmin", aten.argmin.default, input, dim, keepdim, mask, fill_value, min_count)


@as_torch
def max(input: Tensor, dim: int | None = None, keepdim: bool = False, *, mask: Tensor | None = None) -> Any:
    """The greatest valid element of the whole input, or along ``dim`` as a named tuple ``(values, indices)``.

    Where none is valid: -inf (or the least integer), at position 0.  Raises TypeError for a tuple of dims, and for
    ``keepdim`` without a dim.  Other arguments as :func:`sum`.

    >>> x, m = torch.tensor([[9.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
    >>> mt.max(x, 1, mask=m)
    torch.return_types.max(
    values=tensor([3.]),
    indices=tensor([2]))
    """
    return _run_extreme("max", aten.max, input, dim, keepdim, mask, -float("inf"))


@as_torch
def min(input: Tensor, dim: int | None = None, keepdim: bool = False, *, mask: Tensor | None = None) -> Any:
    """The least valid element of the whole input, or along ``dim`` as a named tuple ``(values, indices)``.

    Where none is valid: inf (or the greatest integer), at position 0.  Arguments and errors as :func:`max`.

    >>> x, m = torch.tensor([[0.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
    >>> mt.min(x, 1, mask=m)
    torch.return_types.min(
    values=tensor([2.]),
    indices=tensor([1]))
    """
    return _run_extreme("min", aten.min, input, dim, keepdim, mask, float("inf"))


def one_dim(name: str, dim: Any) -> None:
    if dim is not None and not isinstance(dim, int):
        raise TypeError(f"{name}(): dim must be an int or None, got {dim!r}")


def _position(
    name: str, op: Any, input: Any, dim: Any, keepdim: bool, mask: Any, fill_value: Any, min_count: Any
) -> Tensor:
    one_dim(name, dim)
    given = check_ordered(name, enter_input(input, mask))
    dims = shapes.canonical_dims(dim, given.data.dim())
    fill_value = for_too_few(name, torch.int64, given.masked, fill_value, min_count)
    if layouts.is_sparse(given.data):
        data, valid = sparse.position(
            given.data, given.mask, dims, keepdim, largest=name == "argmax", fill_value=fill_value, min_count=min_count
        )
        return sparse_result(data, valid, given.masked, 0, fill_value)
    result = run_op(op, given.x, dim, keepdim)
    return as_result(result, given.masked, 0, fill_value, has_min_count(given, dims, keepdim, min_count, fill_value))


def _run_extreme(name: str, op: Any, input: Any, dim: Any, keepdim: bool, mask: Any, empty: float) -> Any:
    one_dim(name, dim)
    given = check_ordered(name, enter_input(input, mask), boolean=True)
    if dim is None and keepdim:
        raise TypeError(f"{name}(): keepdim needs a dim")
    kind = getattr(torch.return_types, name)
    if layouts.is_sparse(given.data):
        dims = shapes.canonical_dims(dim, given.data.dim())
        results = sparse.extreme(given.data, given.mask, dims, keepdim, largest=name == "max")
        values, indices = (sparse_result(*r, given.masked, e) for r, e in zip(results, (empty, 0), strict=True))
        return values if dim is None else kind((values, indices))
    if dim is None:
        return as_result(run_op(op.default, given.x), given.masked, empty)
    values, indices = run_op(op.dim, given.x, dim, keepdim)
    return kind((as_result(values, given.masked, empty), as_result(indices, given.masked, 0)))
