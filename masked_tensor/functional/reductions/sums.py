"""Functional reductions: ``sum(input, dim, mask=...)`` and the like, for tensors and masks of any layout."""

import torch
from torch import Tensor

from ... import masks, pair
from ...pair import Pair
from ...select import select
from ...shared.too_few import of_nothing
from ...sparse import slice_reductions
from ..entrance import Dim, Number, check_ordered, enter_input, run_op
from ..registry import as_torch
from .run import Reduction, aten, dim_by_dim, over_dims, run_reduction


def _nanmean(x: Pair | Tensor, dims: tuple[int, ...], keepdim: bool) -> Pair:
    x = pair.as_pair(x)
    slice_reductions.check_inexact("nanmean", x.data)
    present = Pair(x.data, masks.logical_and(x.mask, ~x.data.isnan()))
    number = masks.count(present.mask, dims, keepdim)
    total = run_op(aten.sum.dim_IntList, present, list(dims), keepdim).data
    data = select(total / number.clamp_min(1), number > 0, of_nothing("nanmean"))
    return Pair(data, masks.reduce_validity(x.mask, dims, keepdim))


_SUM = Reduction("sum", over_dims(aten.sum.dim_IntList), slice_reductions.sum)
_PROD = Reduction("prod", dim_by_dim(aten.prod.dim_int), slice_reductions.prod)
_MEAN = Reduction("mean", over_dims(aten.mean.dim), slice_reductions.mean)
_AMAX = Reduction("amax", over_dims(aten.amax.default), slice_reductions.amax)
_AMIN = Reduction("amin", over_dims(aten.amin.default), slice_reductions.amin)
_NANSUM = Reduction("nansum", over_dims(aten.nansum.default), slice_reductions.nansum)
_NANMEAN = Reduction("nanmean", _nanmean, slice_reductions.nanmean)
_LOGSUMEXP = Reduction("logsumexp", over_dims(aten.logsumexp.default), slice_reductions.logsumexp, everywhere=True)


@as_torch(packed=torch.sum)
def sum(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The sum of the valid entries along ``dim``: ``sum(x[valid])``.

    A plain result is 0 where no entry is valid; that of a MaskedTensor is masked there.

    A sparse ``input`` gives a sparse result in the same layout, or in COO where that layout cannot hold it. A 0-d
    result is strided.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.sum(x, 1, mask=m)
        tensor([-4.,  0.])
        >>> mt.sum(x, 1, mask=m, fill_value=9.0)
        tensor([-4.,  9.])
        >>> mt.sum(x, 1, mask=m, min_count=3)
        tensor([nan, nan])
        >>> mt.sum(mt.masked_tensor(x, m), 1)
        masked_tensor([-4.0000, --], valid=1/2)

    References:
        ``torch.sum``, ``torch.masked.sum``; ``min_count`` as in ``pandas.DataFrame.sum``.
    """
    return run_reduction(_SUM, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def prod(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The product of the valid entries along ``dim``: ``prod(x[valid])``.

    A plain result is 1 where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.prod(x, 1, mask=m)
        tensor([3., 1.])

    References:
        ``torch.prod``, ``torch.masked.prod``; ``min_count`` as in ``pandas.DataFrame.prod``.
    """
    return run_reduction(_PROD, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch(packed=torch.mean)
def mean(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The mean of the valid entries along ``dim``: ``sum(x[valid]) / n`` with ``n`` the number of valid entries.

    A plain result is NaN where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex; give it such a ``dtype``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.mean(x, 1, mask=m)
        tensor([2., nan])

    References:
        ``torch.mean``, ``torch.masked.mean``.
    """
    return run_reduction(_MEAN, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def amax(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The largest valid entry along ``dim``: ``max(x[valid])``.

    A plain result is -inf (the smallest integer, False) where no entry is valid; that of a MaskedTensor is masked
    there.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.amax(x, 1, mask=m)
        tensor([3., -inf])

    References:
        ``torch.amax``, ``torch.masked.amax``.
    """
    given = check_ordered("amax", enter_input(input, mask).to(dtype), boolean=True)
    return run_reduction(_AMAX, given, dim, keepdim, None, None, fill_value, min_count)


@as_torch
def amin(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The smallest valid entry along ``dim``: ``min(x[valid])``.

    A plain result is inf (the largest integer, True) where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.amin(x, 1, mask=m, fill_value=0)
        tensor([1., 0.])

    References:
        ``torch.amin``, ``torch.masked.amin``.
    """
    given = check_ordered("amin", enter_input(input, mask).to(dtype), boolean=True)
    return run_reduction(_AMIN, given, dim, keepdim, None, None, fill_value, min_count)


@as_torch
def logsumexp(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The logarithm of the sum of exponentials of the valid entries along ``dim``: ``log(sum(exp(x[valid])))``.

    A plain result is -inf where no entry is valid; that of a MaskedTensor is masked there. The result of a sparse
    ``input`` stores every output with a valid entry, because a slice of ``n`` zeros gives ``log(n)``.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; the default dtype for integers and bools. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.logsumexp(x, 1, mask=m)
        tensor([3.1269,   -inf])

    References:
        ``torch.logsumexp``, ``torch.masked.logsumexp``.
    """
    given = enter_input(input, mask)
    if dtype is None and not (given.data.is_floating_point() or given.data.is_complex()):
        dtype = torch.get_default_dtype()
    return run_reduction(_LOGSUMEXP, given, dim, keepdim, dtype, None, fill_value, min_count)


@as_torch
def nansum(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The sum of the valid entries along ``dim`` that are not NaN.

    A plain result is 0 where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0])
        >>> mt.nansum(x, mask=torch.tensor([True, True, False]))
        tensor(1.)

    References:
        ``torch.nansum``.
    """
    return run_reduction(_NANSUM, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def nanmean(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The mean of the valid entries along ``dim`` that are not NaN.

    The result is NaN where all valid entries are NaN. Where no entry is valid, a plain result is NaN and that of a
    MaskedTensor is masked.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0, 8.0])
        >>> mt.nanmean(x, mask=torch.tensor([True, True, True, False]))
        tensor(2.)

    References:
        ``torch.nanmean``.
    """
    return run_reduction(_NANMEAN, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def aminmax(
    input: Tensor,
    dim: Dim = None,
    *,
    keepdim: bool = False,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> torch.return_types.aminmax:
    """The smallest and the largest valid entry along ``dim``.

    Where no entry is valid, plain results are those of :func:`amin` and :func:`amax`; those of a MaskedTensor are
    masked.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        tuple: A named tuple ``(min, max)``, each of ``input``'s shape without ``dim``, in its dtype. MaskedTensors if
        ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.aminmax(x, mask=m)
        torch.return_types.aminmax(
        min=tensor(1.),
        max=tensor(3.))

    References:
        ``torch.aminmax``.
    """
    options = {"keepdim": keepdim, "mask": mask, "fill_value": fill_value, "min_count": min_count}
    return torch.return_types.aminmax((amin(input, dim, **options), amax(input, dim, **options)))  # type: ignore[arg-type]  # the stub wants a list
