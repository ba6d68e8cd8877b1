"""Functional extremes: argmax, argmin, max and min with their positions."""

from typing import Any, TypeVar

import torch
from torch import Tensor

from .. import layouts, shapes, sparse
from .entrance import (
    Input,
    Number,
    as_result,
    check_ordered,
    enter_input,
    for_too_few,
    has_min_count,
    refuse_sparse,
    run_op,
)
from .form import aten, sparse_result
from .names import as_torch

R = TypeVar("R", bound=tuple[Tensor, ...])


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
def max(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor | torch.return_types.max:
    """The greatest valid element of the whole input, or along ``dim`` with its position.

    Where none is valid: -inf (or the least integer), at position 0.  ``max(input, other)`` is ``torch.maximum``: the
    greater element of each pair.

    Args:
        input: a real or bool tensor of any shape and layout, or a MaskedTensor.
        dim: an int, or None for all; a tensor in its place is ``other``.
        keepdim: keeps the reduced dimension at size 1; needs a ``dim``.
        other: a tensor that broadcasts against ``input``; strided.
        mask: True = valid, of ``input``; any layout, broadcastable to it.
        fill_value: the value where too few elements are valid; the index there is 0 (of a MaskedTensor: masked).
        min_count: how many elements must be valid, as in :func:`sum`.

    Returns:
        A tensor without ``dim``; with it a named tuple ``(values, indices)`` of ``input``'s dtype and int64.

    Raises:
        TypeError: ``dim`` is no int, or ``keepdim`` is given without it.
        RuntimeError: ``input`` is complex.
        ValueError: ``min_count`` without ``fill_value``, for a plain input of integers or bool.

    Example:
        >>> x, m = torch.tensor([[9.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
        >>> mt.max(x, 1, mask=m)
        torch.return_types.max(
        values=tensor([3.]),
        indices=tensor([2]))
    """
    return _run_extreme(torch.return_types.max, input, dim, keepdim, other, mask, -float("inf"), fill_value, min_count)


@as_torch
def min(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor | torch.return_types.min:
    """The least valid element of the whole input, or along ``dim`` with its position.

    Where none is valid: inf (or the greatest integer), at position 0.  ``min(input, other)`` is ``torch.minimum``.

    Args:
        input: a real or bool tensor of any shape and layout, or a MaskedTensor.
        dim: an int, or None for all; a tensor in its place is ``other``.
        keepdim: keeps the reduced dimension at size 1; needs a ``dim``.
        other: a tensor that broadcasts against ``input``; strided.
        mask: True = valid, of ``input``; any layout, broadcastable to it.
        fill_value: the value where too few elements are valid; the index there is 0 (of a MaskedTensor: masked).
        min_count: how many elements must be valid, as in :func:`sum`.

    Returns:
        A tensor without ``dim``; with it a named tuple ``(values, indices)`` of ``input``'s dtype and int64.

    Raises:
        TypeError, RuntimeError, ValueError: as :func:`max`.

    Example:
        >>> x, m = torch.tensor([[0.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
        >>> mt.min(x, 1, mask=m)
        torch.return_types.min(
        values=tensor([2.]),
        indices=tensor([1]))
    """
    return _run_extreme(torch.return_types.min, input, dim, keepdim, other, mask, float("inf"), fill_value, min_count)


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


def _run_extreme(
    kind: type[R],
    input: Any,
    dim: Any,
    keepdim: bool,
    other: Any,
    mask: Any,
    empty: float,
    fill_value: Number | None,
    min_count: int | None,
) -> Tensor | R:
    name = kind.__name__
    if isinstance(dim, Tensor) or other is not None:
        return _pairwise(name, input, dim if other is None else other, mask)
    one_dim(name, dim)
    given = check_ordered(name, enter_input(input, mask), boolean=True)
    if dim is None and keepdim:
        raise TypeError(f"{name}(): keepdim needs a dim")
    dims = shapes.canonical_dims(dim, given.data.dim())
    fill_value = for_too_few(name, given.data.dtype, given.masked, fill_value, min_count)
    options: dict[str, Any] = {"fill_value": fill_value, "min_count": min_count}
    op = getattr(aten, name)
    if layouts.is_sparse(given.data):
        if dim is None and given.data.numel() == 0:
            op.default(torch.empty(0))  # raises
        values, indices = sparse.extreme(given.data, given.mask, dims, keepdim, largest=name == "max", **options)
        return sparse_choice(kind, (values, None if dim is None else indices), given, empty, fill_value)
    results = (run_op(op.default, given.x), None) if dim is None else run_op(op.dim, given.x, dim, keepdim)
    valid = has_min_count(given, dims, keepdim, min_count, fill_value)
    return choice(kind, results, given, empty, fill_value, valid)


def choice(
    kind: type[R],
    results: Any,
    x: Input,
    empty: float,
    fill_value: Number | None = None,
    valid: Tensor | None = None,
) -> Tensor | R:
    """What the caller gets of ``(values, indices)``: a named tuple, or the values alone where the indices are None."""
    values, indices = results
    values = as_result(values, x.masked, empty, fill_value, valid)
    return values if indices is None else kind((values, as_result(indices, x.masked, 0, None, valid)))


def sparse_choice(kind: type[R], results: Any, x: Input, empty: float, fill_value: Number | None) -> Tensor | R:
    """The same of the sparse form's results, each with its validity."""
    (values, valid), second = results
    values = sparse_result(values, valid, x.masked, empty, fill_value)
    if second is None:
        return values
    indices, valid = second
    return kind((values, sparse_result(indices, valid, x.masked, 0)))


def _pairwise(name: str, input: Any, other: Any, mask: Any) -> Tensor:
    """``torch.maximum`` or ``torch.minimum``."""
    first, second = enter_input(input, mask), enter_input(other, None, "other")
    for x in (first, second):
        refuse_sparse(name, check_ordered(name, x, boolean=True))
    result = run_op(getattr(aten, f"{name}imum").default, first.x, second.x)
    return as_result(result, first.masked or second.masked, 0)
