"""Functional reductions: ``sum(input, dim, mask=...)`` and its sisters, for tensors and masks of any layout."""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..pair import Pair
from ..select import select
from ..sparse import slice_reductions
from .entrance import Dim, Number, check_ordered, enter_input, run_op
from .form import Reduction, aten, dim_by_dim, over_dims, run_reduction
from .names import as_torch

_INF = float("inf")


def _nanmean(x: Pair | Tensor, dims: tuple[int, ...], keepdim: bool) -> Pair:
    x = pair.as_pair(x)
    slice_reductions.check_inexact("nanmean", x.data)
    present = Pair(x.data, masks.logical_and(x.mask, ~x.data.isnan()))
    number = masks.count(present.mask, dims, keepdim)
    total = run_op(aten.sum.dim_IntList, present, list(dims), keepdim).data
    return Pair(
        select(total / number.clamp_min(1), number > 0, float("nan")), masks.reduce_validity(x.mask, dims, keepdim)
    )


_SUM = Reduction("sum", over_dims(aten.sum.dim_IntList), slice_reductions.sum, 0)
_PROD = Reduction("prod", dim_by_dim(aten.prod.dim_int), slice_reductions.prod, 1)
_MEAN = Reduction("mean", over_dims(aten.mean.dim), slice_reductions.mean, float("nan"))
_AMAX = Reduction("amax", over_dims(aten.amax.default), slice_reductions.amax, -_INF)
_AMIN = Reduction("amin", over_dims(aten.amin.default), slice_reductions.amin, _INF)
_NANSUM = Reduction("nansum", over_dims(aten.nansum.default), slice_reductions.nansum, 0)
_NANMEAN = Reduction("nanmean", _nanmean, slice_reductions.nanmean, float("nan"))
_LOGSUMEXP = Reduction(
    "logsumexp", over_dims(aten.logsumexp.default), slice_reductions.logsumexp, -_INF, everywhere=True
)


@as_torch
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
    """The sum of the valid elements along ``dim``; 0 where none is valid.

    Args:
        input: a tensor of any layout, or a MaskedTensor (then the result is one, and its own mask counts too).
        dim: int, tuple, or None (also ``()``) for all.
        keepdim: keeps reduced dimensions at size 1.
        dtype: converts the input first.
        mask: True = valid; any layout, broadcastable to ``input``; other dtypes are read as ``mask != 0``.
        fill_value: the value where too few elements are valid.
        min_count: how many elements must be valid.  Where fewer are, a MaskedTensor's result is masked, and a plain one
            is ``fill_value``, else NaN.  By default one, without which a plain result is the identity.

    A sparse input gives a sparse result that stores the outputs with something to say: in the input's layout if that
    can hold it, else COO; a 0-d result is strided.

    Raises TypeError and ValueError for a mask that is no tensor, on another device or not broadcastable; ValueError for
    ``min_count`` without ``fill_value`` if the input is plain and the result's dtype has no NaN.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = torch.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.sum(x, 1, mask=m)
        tensor([-4.,  0.])
        >>> mt.sum(x, 1, mask=m, fill_value=9.0)
        tensor([-4.,  9.])
        >>> mt.sum(x, 1, mask=m, min_count=3)
        tensor([nan, nan])
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
    """The product of the valid elements; 1 where none is valid.  Arguments as :func:`sum`.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.prod(x, 1, mask=m)
    tensor([3., 1.])
    """
    return run_reduction(_PROD, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
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
    """The sum of the valid elements divided by their number; NaN where none is valid.  Arguments as :func:`sum`.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.mean(x, 1, mask=m)
    tensor([2., nan])
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
    """The greatest valid element; -inf (or the least integer) where none is valid.  Arguments as :func:`sum`.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.amax(x, 1, mask=m)
    tensor([3., -inf])
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
    """The least valid element; inf (or the greatest integer) where none is valid.  Arguments as :func:`sum`.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.amin(x, 1, mask=m, fill_value=0)
    tensor([1., 0.])
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
    """``log(sum(exp(x)))`` over the valid elements, integers in the default dtype; -inf where none is valid.

    Arguments as :func:`sum`.  The result of a sparse input stores every output that has a valid element, because a
    slice of ``n`` zeros gives ``log(n)``.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.logsumexp(x, 1, mask=m)
    tensor([3.1269,   -inf])
    """
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        dtype = torch.get_default_dtype()
    return run_reduction(_LOGSUMEXP, input, dim, keepdim, dtype, mask, fill_value, min_count)


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
    """The sum of the valid elements that are not NaN.  Arguments as :func:`sum`.

    >>> x = torch.tensor([1.0, float("nan"), 3.0])
    >>> mt.nansum(x, mask=torch.tensor([True, True, False]))
    tensor(1.)
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
    """The mean of the valid elements that are not NaN; NaN where all of them are.  Arguments as :func:`sum`.

    >>> x = torch.tensor([1.0, float("nan"), 3.0, 8.0])
    >>> mt.nanmean(x, mask=torch.tensor([True, True, True, False]))
    tensor(2.)
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
) -> Any:
    """``(amin, amax)`` of the valid elements, a named tuple.  Arguments as :func:`sum`.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.aminmax(x, mask=m)
    torch.return_types.aminmax(
    min=tensor(1.),
    max=tensor(3.))
    """
    options = {"keepdim": keepdim, "mask": mask, "fill_value": fill_value, "min_count": min_count}
    return torch.return_types.aminmax((amin(input, dim, **options), amax(input, dim, **options)))  # type: ignore[arg-type]  # the stub wants a list
