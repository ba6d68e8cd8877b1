"""Functional order statistics: median, quantile, mode and the like."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import torch
from torch import Tensor

from ... import masks, shapes, sparse
from ...pair import Pair
from ...rules.quantile import quantile as quantile_between
from ...shared.too_few import TooFew
from ..entrance import Dim, Input, Number, as_pair, as_result, check_ordered, enter_input, restore_dims, run_op, too_few
from ..registry import as_torch, row
from . import weighted_quantile
from .extremes import R, choice, sparse_choice
from .run import aten, sparse_result


def _median(name: str, kind: type[R]) -> Callable[..., Tensor | R]:
    op = getattr(aten, name)

    def median(
        input: Tensor,
        dim: Dim = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
        mask: Tensor | None = None,
        fill_value: Number | None = None,
        min_count: int | None = None,
    ) -> Tensor | R:
        dim = None if isinstance(dim, (tuple, list)) and not dim else dim
        given = check_ordered(name, enter_input(input, mask).to(dtype))
        dims = shapes.canonical_dims(dim, given.data.dim())
        if dim is not None:
            sparse.check_nonempty(name, given.data.shape, dims)
        few = too_few(name, given.data.dtype, given.masked, fill_value, min_count)
        if given.is_sparse:
            options: dict[str, Any] = {"skip_nan": name == "nanmedian", "positions": dim is not None}
            found = sparse.median(given.data, given.mask, dims, keepdim, few=few, **options)
            return sparse_choice(kind, found, given, few)
        if dim is not None:
            x, last = _one_dim(given, dims)
            found = _in_shape(run_op(op.dim, x, last), given, dims, keepdim)
            return choice(kind, found, given, dims, keepdim, few)
        value = run_op(op.default, given.x)
        value = restore_dims(value, [1] * given.data.dim()) if keepdim else value
        return choice(kind, (value, None), given, dims, keepdim, few)

    return median


def _quantile(name: str, op: Any) -> Callable[..., Tensor]:
    skip_nan = name == "nanquantile"

    def quantile(
        input: Tensor,
        q: float | Sequence[float] | Tensor,
        dim: Dim = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        alphap: float = 1.0,
        betap: float = 1.0,
        weights: Tensor | None = None,
        mask: Tensor | None = None,
        fill_value: Number | None = None,
    ) -> Tensor:
        options: dict[str, Any] = {"interpolation": interpolation, "alphap": alphap, "betap": betap}
        given = enter_input(input, mask)
        if weights is not None:
            if list(options.values()) != ["linear", 1, 1]:
                raise ValueError(f"{name}(): with weights= no value lies between two entries; leave interpolation= out")
            return weighted_quantile.quantile(name, given, q, dim, keepdim, weights, fill_value)
        wanted: Any = q
        if isinstance(q, (list, tuple)):
            wanted = torch.tensor(q, dtype=given.data.dtype, device=given.data.device)
        few = too_few(name, given.data.dtype, given.masked, fill_value)
        dims = shapes.canonical_dims(dim, given.data.dim())
        if given.is_sparse:
            found = sparse.quantile(
                given.data, given.mask, wanted, dims, keepdim, skip_nan=skip_nan, few=few, **options
            )
            return sparse_result(*found, given.masked, TooFew(few.empty))
        x, last = _one_dim(given, dims)
        if alphap != 1 or betap != 1:
            flat = x if type(x) is Pair else as_pair(Input(x, False))
            result: Any = quantile_between(flat, wanted, last, False, skip_nan=skip_nan, **options)
        else:
            overload = op.default if isinstance(wanted, Tensor) else op.scalar
            result = run_op(overload, x, wanted, last, False, interpolation=interpolation)
        several = tuple(wanted.shape) if isinstance(wanted, Tensor) else ()
        result = restore_dims(result, (*several, *shapes.reduced_shape(given.data.shape, dims, keepdim)))
        return as_result(result, given.masked, few.empty, fill_value)

    return quantile


@row(_median, torch.return_types.median)
def median() -> Tensor | torch.return_types.median:
    """The lower median of the valid entries, or with ``dim`` the median along it and its position.

    It is NaN if a valid entry is NaN. Where no entry is valid, the value is NaN (0 for integers) at position 0 for a
    plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype, or with ``dim`` a named tuple ``(values, indices)`` of
        ``input``'s shape without it, with int64 indices. If the median occurs several times, the index is that of any
        occurrence. MaskedTensors if ``input`` is one.

    Raises:
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex or bool.

    Example:
        >>> m = torch.tensor([True, True, False, True])
        >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), mask=m)
        tensor(3.)
        >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), 0, mask=m).indices
        tensor(3)

    See also:
        :func:`mean`, :func:`nanmedian`, :func:`quantile`.

    References:
        ``torch.median``, ``torch.masked.median``.
    """


@row(_median, torch.return_types.nanmedian)
def nanmedian() -> Tensor | torch.return_types.nanmedian:
    """The lower median of the valid entries that are not NaN, or with ``dim`` the median along it and its position.

    Where all valid entries are NaN, the result is NaN. Where no entry is valid, it is NaN (0 for integers) for a plain
    ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype, or with ``dim`` a named tuple ``(values, indices)`` of
        ``input``'s shape without it, with int64 indices. If the median occurs several times, the index is that of any
        occurrence. MaskedTensors if ``input`` is one.

    Raises:
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex or bool.

    Example:
        >>> x = torch.tensor([5.0, float("nan"), 9.0])
        >>> mt.nanmedian(x, mask=torch.tensor([True, True, False]))
        tensor(5.)

    See also:
        :func:`median`, :func:`quantile`.

    References:
        ``torch.nanmedian``.
    """


@as_torch
def mode(
    input: Tensor,
    dim: Dim = -1,
    keepdim: bool = False,
    *,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> torch.return_types.mode:
    """The most frequent valid entry along ``dim``, the smallest in a tie, and the position of its last occurrence.

    Where no entry is valid, the value is NaN (0 for integers) at position 0 for a plain ``input`` and masked for a
    MaskedTensor. Entries that a sparse ``input`` does not store count as zeros.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
            Default: -1.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape without ``dim``: values in its dtype and int64
        indices. MaskedTensors if ``input`` is one.

    Raises:
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> m = torch.tensor([True, True, True, False, False])
        >>> mt.mode(torch.tensor([2, 5, 2, 7, 7]), mask=m)
        torch.return_types.mode(
        values=tensor(2),
        indices=tensor(2))

    See also:
        :func:`unique`.

    References:
        ``torch.mode``.
    """
    given, kind = enter_input(input, mask), torch.return_types.mode
    dims = shapes.canonical_dims(dim, given.data.dim())
    if len(dims) != 1 and given.data.dim():
        sparse.check_nonempty("mode", given.data.shape, dims)
    few = too_few("mode", given.data.dtype, given.masked, fill_value, min_count)
    result: Any
    if given.is_sparse:
        sparse.check_nonempty("mode", check_ordered("mode", given, boolean=True).data.shape, dims)
        result = sparse_choice(kind, sparse.mode(given.data, given.mask, dims, keepdim, few), given, few)
    else:
        x, last = _one_dim(given, dims)
        found = _in_shape(run_op(aten.mode.default, x, last), given, dims, keepdim)
        result = choice(kind, found, given, dims, keepdim, few)
    return cast("torch.return_types.mode", result)


@row(_quantile, aten.quantile)
def quantile() -> Tensor:
    """The ``q``-quantile of the valid entries along ``dim``; NaN if a valid entry is NaN.

    Where no entry is valid, the result is NaN for a plain ``input`` and masked for a MaskedTensor. Entries that a
    sparse ``input`` does not store count as zeros; they are not materialized.

    Args:
        input (Tensor): float32 or float64, of any shape and layout; plain or a MaskedTensor.
        q (float or Tensor): A number from 0 to 1, or several: a list, or a 0-d or 1-D tensor of ``input``'s dtype.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
        interpolation (str, optional): How to interpolate between two entries: ``"linear"``, ``"lower"``, ``"higher"``,
            ``"midpoint"`` or ``"nearest"``. Default: ``"linear"``.
        alphap (float, optional): With ``betap``, the plotting position: the k-th of n entries is the ``(k - alphap) /
            (n + 1 - alphap - betap)`` quantile; scipy uses 0.4 for both. Default: 1.0.
        betap (float, optional): The plotting position at the upper end, see ``alphap``. Default: 1.0.
        weights (Tensor, optional): Any real dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor. The result is the smallest entry at which the cumulative weight reaches
            ``q`` of the total; masked weights and weights of 0 exclude their entries.
        fill_value (number, optional): The value of a result with too few valid entries.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype, with a leading dimension for ``q`` if it is 1-D or a
        list. A MaskedTensor if ``input`` is one.

    Raises:
        ValueError: ``weights`` does not broadcast to ``input``, or is on another device.
        ValueError: A weight is negative, on the CPU (elsewhere it counts as 0).
        ValueError: ``weights`` are given with an ``interpolation``.
        ValueError: ``fill_value`` does not fit an integer result.
        RuntimeError: ``input`` is neither float32 nor float64.
        RuntimeError: ``q`` is out of range, or ``interpolation`` is not one of the values above.
        UnsupportedOpError: ``q`` is masked and sparse, or ``input`` is sparse and ``weights`` are given.

    Example:
        >>> x = torch.tensor([1.0, 2.0, 4.0, 99.0])
        >>> m = torch.tensor([True, True, True, False])
        >>> mt.quantile(x, 0.75, mask=m)
        tensor(3.)
        >>> mt.quantile(x, [0.0, 1.0], mask=m)
        tensor([1., 4.])
        >>> mt.quantile(x, 0.5, weights=torch.tensor([1.0, 1.0, 3.0, 9.0]), mask=m)
        tensor(4.)

    See also:
        :func:`median`, :func:`nanmedian`, :func:`nanquantile`, :func:`rankdata`.

    References:
        ``torch.quantile``; with weights ``numpy.quantile(method="inverted_cdf")``.
    """


@row(_quantile, aten.nanquantile)
def nanquantile() -> Tensor:
    """The ``q``-quantile of the valid entries along ``dim`` that are not NaN.

    Where all valid entries are NaN, the result is NaN. Where no entry is valid, it is NaN for a plain ``input`` and
    masked for a MaskedTensor.

    Args:
        input (Tensor): float32 or float64, of any shape and layout; plain or a MaskedTensor.
        q (float or Tensor): A number from 0 to 1, or several: a list, or a 0-d or 1-D tensor of ``input``'s dtype.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
        interpolation (str, optional): How to interpolate between two entries: ``"linear"``, ``"lower"``, ``"higher"``,
            ``"midpoint"`` or ``"nearest"``. Default: ``"linear"``.
        alphap (float, optional): With ``betap``, the plotting position: the k-th of n entries is the ``(k - alphap) /
            (n + 1 - alphap - betap)`` quantile; scipy uses 0.4 for both. Default: 1.0.
        betap (float, optional): The plotting position at the upper end, see ``alphap``. Default: 1.0.
        weights (Tensor, optional): Any real dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor. The result is the smallest entry at which the cumulative weight reaches
            ``q`` of the total; masked weights and weights of 0 exclude their entries.
        fill_value (number, optional): The value of a result with too few valid entries.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype, with a leading dimension for ``q`` if it is 1-D or a
        list. A MaskedTensor if ``input`` is one.

    Raises:
        ValueError: ``weights`` does not broadcast to ``input``, or is on another device.
        ValueError: A weight is negative, on the CPU (elsewhere it counts as 0).
        ValueError: ``weights`` are given with an ``interpolation``.
        ValueError: ``fill_value`` does not fit an integer result.
        RuntimeError: ``input`` is neither float32 nor float64.
        RuntimeError: ``q`` is out of range, or ``interpolation`` is not one of the values above.
        UnsupportedOpError: ``q`` is masked and sparse, or ``input`` is sparse and ``weights`` are given.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0, 99.0])
        >>> m = torch.tensor([True, True, True, False])
        >>> mt.nanquantile(x, 0.5, mask=m)
        tensor(2.)

    See also:
        :func:`quantile`.

    References:
        ``torch.nanquantile``; with weights ``numpy.nanquantile(method="inverted_cdf")``.
    """


def _one_dim(given: Input, dims: Sequence[int]) -> tuple[Any, int]:
    """``given`` with the dimensions to reduce as one, and which one that is; a position along it is row-major."""
    count = given.data.dim()
    if len(dims) == 1 or count == 0:
        return given.x, dims[0] if dims else -1
    kept = [d for d in range(count) if d not in dims]
    shape = [*(given.data.shape[d] for d in kept), prod([given.data.shape[d] for d in dims])]
    data = given.data.permute(*kept, *dims).reshape(shape)
    if type(given.x) is not Pair:
        return data, -1
    return Pair(data, masks.reshape(given.x.mask.permute(*kept, *dims), shape), given.x.payload), -1


def _in_shape(found: Any, given: Input, dims: Sequence[int], keepdim: bool) -> tuple[Any, Any]:
    """Values and positions in the shape of the result."""
    values, where = found
    shape = shapes.reduced_shape(given.data.shape, dims, keepdim)
    return restore_dims(values, shape), restore_dims(where, shape)
