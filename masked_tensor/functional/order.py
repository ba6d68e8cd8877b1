"""Functional order statistics: median, quantile, mode and their sisters."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from .. import layouts, shapes, sparse
from .entrance import Number, as_result, check_ordered, enter_input, for_too_few, has_min_count, restore_dims, run_op
from .extremes import R, choice, one_dim, sparse_choice
from .form import aten, sparse_result
from .names import as_torch

_NAN = float("nan")


@as_torch
def median(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor | torch.return_types.median:
    """The lower median of the valid elements, of all of them or along ``dim`` with its position.

    NaN if one of them is NaN.  Where none is valid: NaN, or 0 for integers, at position 0.

    Args:
        input: a real tensor of any shape and layout, or a MaskedTensor.
        dim: an int, or None for all.
        keepdim: keeps reduced dimensions at size 1.
        dtype: converts the input first.
        mask: True = valid; any layout, broadcastable to ``input``.
        fill_value: the value where too few elements are valid; the index there is 0 (of a MaskedTensor: masked).
        min_count: how many elements must be valid, as in :func:`sum`.

    Returns:
        A tensor without ``dim``; with it a named tuple ``(values, indices)``, as of ``torch.median``.  Of several
        positions of the median, any one may be given, as by torch.

    Raises:
        TypeError: ``dim`` is no int.
        RuntimeError: ``input`` is complex or bool.
        IndexError: the dimension has size 0.
        ValueError: ``min_count`` without ``fill_value``, for a plain input of integers.

    Example:
        >>> m = torch.tensor([True, True, False, True])
        >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), mask=m)
        tensor(3.)
        >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), 0, mask=m).indices
        tensor(3)
    """
    return _median(torch.return_types.median, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def nanmedian(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor | torch.return_types.nanmedian:
    """The lower median of the valid elements that are not NaN; NaN where all of them are.

    Args:
        input: a real tensor of any shape and layout, or a MaskedTensor.
        dim: an int, or None for all.
        keepdim: keeps reduced dimensions at size 1.
        dtype: converts the input first.
        mask: True = valid; any layout, broadcastable to ``input``.
        fill_value: the value where too few elements are valid; the index there is 0 (of a MaskedTensor: masked).
        min_count: how many elements must be valid, NaN among them, as in :func:`sum`.

    Returns:
        A tensor without ``dim``; with it a named tuple ``(values, indices)``, as of ``torch.nanmedian``.

    Raises:
        TypeError, RuntimeError, IndexError, ValueError: as :func:`median`.

    Example:
        >>> x = torch.tensor([5.0, float("nan"), 9.0])
        >>> mt.nanmedian(x, mask=torch.tensor([True, True, False]))
        tensor(5.)
    """
    return _median(torch.return_types.nanmedian, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def mode(
    input: Tensor,
    dim: int = -1,
    keepdim: bool = False,
    *,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> torch.return_types.mode:
    """The most frequent valid element along ``dim``, the least of several, and its last position.

    The position may be that of an unspecified element of a sparse input.  Where none is valid: NaN (0 for integers) and
    index 0.

    Args:
        input: a tensor of any shape and layout, or a MaskedTensor.
        dim: an int.
        keepdim: keeps the reduced dimension at size 1.
        mask: True = valid; any layout, broadcastable to ``input``.
        fill_value: the value where too few elements are valid; the index there is 0 (of a MaskedTensor: masked).
        min_count: how many elements must be valid, as in :func:`sum`.

    Returns:
        A named tuple ``(values, indices)``.

    Raises:
        RuntimeError: ``input`` is complex.
        IndexError: the dimension has size 0.
        ValueError: ``min_count`` without ``fill_value``, for a plain input of integers or bool.

    Example:
        >>> x = torch.tensor([[0.0, 2.0, 2.0, 5.0], [0.0, 0.0, 7.0, 0.0]]).to_sparse_coo()
        >>> mt.mode(x, 1).values.to_dense()
        tensor([2., 0.])
    """
    if not isinstance(dim, int):
        raise TypeError(f"mode(): dim must be an int, got {dim!r}")
    given, kind = enter_input(input, mask), torch.return_types.mode
    dims = shapes.canonical_dims(dim, given.data.dim())
    fill_value = for_too_few("mode", given.data.dtype, given.masked, fill_value, min_count)
    result: Any
    if layouts.is_sparse(given.data):
        sparse.check_nonempty("mode", check_ordered("mode", given, boolean=True).data.shape, dims)
        found = sparse.mode(given.data, given.mask, dims, keepdim, fill_value, min_count)
        result = sparse_choice(kind, found, given, _NAN, fill_value)
    else:
        valid = has_min_count(given, dims, keepdim, min_count, fill_value)
        result = choice(kind, run_op(aten.mode.default, given.x, dim, keepdim), given, _NAN, fill_value, valid)
    return cast("torch.return_types.mode", result)


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
    kind: type[R], input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any, fill_value: Any, min_count: Any
) -> Tensor | R:
    name = kind.__name__
    one_dim(name, dim)
    given = check_ordered(name, enter_input(input, mask).to(dtype))
    dims = shapes.canonical_dims(dim, given.data.dim())
    if dim is not None:
        sparse.check_nonempty(name, given.data.shape, dims)
    fill_value = for_too_few(name, given.data.dtype, given.masked, fill_value, min_count)
    options: dict[str, Any] = {"fill_value": fill_value, "min_count": min_count}
    if layouts.is_sparse(given.data):
        options |= {"skip_nan": name == "nanmedian", "positions": dim is not None}
        found = sparse.median(given.data, given.mask, dims, keepdim, **options)
        return sparse_choice(kind, found, given, _NAN, fill_value)
    valid = has_min_count(given, dims, keepdim, min_count, fill_value)
    if dim is not None:
        return choice(kind, run_op(getattr(aten, name).dim, given.x, dim, keepdim), given, _NAN, fill_value, valid)
    value = run_op(getattr(aten, name).default, given.x)
    value = restore_dims(value, [1] * given.data.dim()) if keepdim else value
    return choice(kind, (value, None), given, _NAN, fill_value, valid)


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
