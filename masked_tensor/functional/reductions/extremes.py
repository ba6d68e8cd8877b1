"""Functional extremes with their positions: argmax, argmin, max and min."""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, TypeVar

import torch
from torch import Tensor

from ... import shapes, sparse
from ...shared.too_few import TooFew
from ..entrance import Input, Number, as_reduced, as_result, check_ordered, enter_input, refuse_sparse, run_op, too_few
from ..registry import row
from .run import aten, sparse_result

R = TypeVar("R", bound=tuple[Tensor, ...])


def one_dim(name: str, dim: Any) -> int | None:
    """``dim`` as Python's int, or None: there is not a list of them."""
    if dim is not None and not (hasattr(dim, "__index__") and not getattr(dim, "ndim", 0)):
        raise TypeError(f"{name}(): dim must be an int or None, got {dim!r}")
    return None if dim is None else index(dim)


def _position(name: str, op: Any) -> Callable[..., Tensor]:
    def position(
        input: Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        mask: Tensor | None = None,
        fill_value: Number | None = None,
        min_count: int | None = None,
    ) -> Tensor:
        dim = one_dim(name, dim)
        given = check_ordered(name, enter_input(input, mask))
        dims = shapes.canonical_dims(dim, given.data.dim())
        few = too_few(name, torch.int64, given.masked, fill_value, min_count)
        if given.is_sparse:
            found = sparse.position(given.data, given.mask, dims, keepdim, largest=name == "argmax", few=few)
            return sparse_result(*found, given.masked, few)
        return as_reduced(run_op(op, given.x, dim, keepdim), given, dims, keepdim, few)

    return position


def _extreme(name: str, kind: type[R]) -> Callable[..., Tensor | R]:
    op = getattr(aten, name)

    def extreme(
        input: Tensor,
        dim: int | Tensor | None = None,
        keepdim: bool = False,
        *,
        other: Tensor | None = None,
        mask: Tensor | None = None,
        fill_value: Number | None = None,
        min_count: int | None = None,
    ) -> Tensor | R:
        if isinstance(dim, Tensor) or other is not None:
            return _pairwise(name, input, dim if other is None else other, mask)
        dim = one_dim(name, dim)
        given = check_ordered(name, enter_input(input, mask), boolean=True)
        if dim is None and keepdim:
            raise TypeError(f"{name}(): keepdim needs a dim")
        dims = shapes.canonical_dims(dim, given.data.dim())
        few = too_few(name, given.data.dtype, given.masked, fill_value, min_count)
        if given.is_sparse:
            if dim is None and given.data.numel() == 0:
                op.default(torch.empty(0))  # raises
            values, indices = sparse.extreme(given.data, given.mask, dims, keepdim, largest=name == "max", few=few)
            return sparse_choice(kind, (values, None if dim is None else indices), given, few)
        results = (run_op(op.default, given.x), None) if dim is None else run_op(op.dim, given.x, dim, keepdim)
        return choice(kind, results, given, dims, keepdim, few)

    return extreme


@row(_position, aten.argmax.default)
def argmax() -> Tensor:
    """The position of the largest valid entry along ``dim``, or in the flattened input.

    A masked entry is never selected. Where no entry is valid, the result is 0 for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int, optional): The dimension to reduce; None reduces all. ``axis`` is accepted as well.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``dim`` is not an int.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex or bool.

    Example:
        >>> x = torch.tensor([5.0, -float("inf")])
        >>> mt.argmax(x, 0, mask=torch.tensor([False, True]))
        tensor(1)

    See also:
        :func:`max`, :func:`amax`, :func:`argmin`.

    References:
        ``torch.argmax``, ``torch.masked.argmax``.
    """


@row(_position, aten.argmin.default)
def argmin() -> Tensor:
    """The position of the smallest valid entry along ``dim``, or in the flattened input.

    A masked entry is never selected. Where no entry is valid, the result is 0 for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int, optional): The dimension to reduce; None reduces all. ``axis`` is accepted as well.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``dim`` is not an int.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex or bool.

    Example:
        >>> mt.argmin(torch.tensor([1, 5, 3]), 0, mask=torch.tensor([False, True, True]))
        tensor(2)

    See also:
        :func:`min`, :func:`amin`, :func:`argmax`.

    References:
        ``torch.argmin``, ``torch.masked.argmin``.
    """


@row(_extreme, torch.return_types.max)
def max() -> Tensor | torch.return_types.max:
    """The largest valid entry, or with ``dim`` the largest along it and its position.

    Where no entry is valid, the value is -inf (the smallest integer, False) at position 0 for a plain ``input`` and
    masked for a MaskedTensor. ``max(input, other)`` is ``torch.maximum``: the larger of each pair, valid where both
    are.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or Tensor, optional): The dimension to reduce; None reduces all. A tensor of any shape and dtype in its
            place is ``other``. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimension with size 1; requires ``dim``. ``keepdims`` is accepted as
            well. Default: False.
        other (Tensor, optional): Any dtype but complex, strided, broadcastable to ``input``; plain or a MaskedTensor.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype; with ``other``, a tensor of the broadcast shape; with
        ``dim``, a named tuple ``(values, indices)`` of ``input``'s shape without it, with int64 indices. MaskedTensors
        if ``input`` is one.

    Raises:
        TypeError: ``dim`` is not an int, or ``keepdim`` is given without it.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.
        UnsupportedOpError: ``other`` is given and an operand is sparse.

    Example:
        >>> x, m = torch.tensor([[9.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
        >>> mt.max(x, 1, mask=m)
        torch.return_types.max(
        values=tensor([3.]),
        indices=tensor([2]))

    See also:
        :func:`amax`, :func:`argmax`, :func:`min`, :func:`cummax`.

    References:
        ``torch.max``.
    """


@row(_extreme, torch.return_types.min)
def min() -> Tensor | torch.return_types.min:
    """The smallest valid entry, or with ``dim`` the smallest along it and its position.

    Where no entry is valid, the value is inf (the largest integer, True) at position 0 for a plain ``input`` and masked
    for a MaskedTensor. ``min(input, other)`` is ``torch.minimum``: the smaller of each pair, valid where both are.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or Tensor, optional): The dimension to reduce; None reduces all. A tensor of any shape and dtype in its
            place is ``other``. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimension with size 1; requires ``dim``. ``keepdims`` is accepted as
            well. Default: False.
        other (Tensor, optional): Any dtype but complex, strided, broadcastable to ``input``; plain or a MaskedTensor.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype; with ``other``, a tensor of the broadcast shape; with
        ``dim``, a named tuple ``(values, indices)`` of ``input``'s shape without it, with int64 indices. MaskedTensors
        if ``input`` is one.

    Raises:
        TypeError: ``dim`` is not an int, or ``keepdim`` is given without it.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.
        UnsupportedOpError: ``other`` is given and an operand is sparse.

    Example:
        >>> x, m = torch.tensor([[0.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
        >>> mt.min(x, 1, mask=m)
        torch.return_types.min(
        values=tensor([2.]),
        indices=tensor([1]))

    See also:
        :func:`amin`, :func:`argmin`, :func:`max`, :func:`cummin`.

    References:
        ``torch.min``.
    """


def choice(kind: type[R], results: Any, x: Input, dims: Sequence[int], keepdim: bool, few: TooFew) -> Tensor | R:
    """What the caller gets of ``(values, indices)``: a named tuple, or the values alone where the indices are None."""
    values, indices = results
    values = as_reduced(values, x, dims, keepdim, few)
    return values if indices is None else kind((values, as_reduced(indices, x, dims, keepdim, few.positions())))


def sparse_choice(kind: type[R], results: Any, x: Input, few: TooFew) -> Tensor | R:
    """The same of the sparse rule's results, each with its validity."""
    (data, valid), second = results
    values = sparse_result(data, valid, x.masked, few)
    if second is None:
        return values
    data, valid = second
    return kind((values, sparse_result(data, valid, x.masked, few.positions())))


def _pairwise(name: str, input: Any, other: Any, mask: Any) -> Tensor:
    """``torch.maximum`` or ``torch.minimum``."""
    first, second = enter_input(input, mask), enter_input(other, None, "other")
    for x in (first, second):
        refuse_sparse(name, check_ordered(name, x, boolean=True))
    result = run_op(getattr(aten, f"{name}imum").default, first.x, second.x)
    return as_result(result, first.masked or second.masked, 0)
