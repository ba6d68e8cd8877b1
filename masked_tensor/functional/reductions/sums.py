"""Functional sums, means and extremes: sum, prod, mean, amax, amin, logsumexp, nansum, nanmean and aminmax."""

import torch
from torch import Tensor

from ... import masks, pair
from ...pair import Pair
from ...select import select
from ...shared.too_few import of_nothing
from ...sparse import slice_reductions
from ..entrance import Dim, Input, Number, check_ordered, run_op
from ..registry import as_torch, row
from .run import as_inexact, aten, dim_by_dim, over_dims, reduction


def _ordered(name: str, x: Input) -> Input:
    return check_ordered(name, x, boolean=True)


def _nanmean(x: Pair | Tensor, dims: tuple[int, ...], keepdim: bool) -> Pair:
    x = pair.as_pair(x)
    slice_reductions.check_inexact("nanmean", x.data)
    present = Pair(x.data, masks.logical_and(x.mask, ~x.data.isnan()))
    number = masks.count(present.mask, dims, keepdim)
    total = run_op(aten.sum.dim_IntList, present, list(dims), keepdim).data
    data = select(total / number.clamp_min(1), number > 0, of_nothing("nanmean"))
    return Pair(data, masks.reduce_validity(x.mask, dims, keepdim))


@row(reduction, over_dims(aten.sum.dim_IntList), slice_reductions.sum, packed=torch.sum)
def sum() -> Tensor:
    """The sum of the valid entries along ``dim``: ``sum(x[valid])``.

    Where no entry is valid, the result is 0 for a plain ``input`` and masked for a MaskedTensor.

    The result of a sparse ``input`` is sparse in the same layout, or in COO if that layout cannot hold it; a 0-d result
    is strided.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

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

    See also:
        :func:`nansum`, :func:`cumsum`, :func:`mean`.

    References:
        ``torch.sum``, ``torch.masked.sum``; ``min_count`` as in ``pandas.DataFrame.sum``.
    """


@row(reduction, dim_by_dim(aten.prod.dim_int), slice_reductions.prod)
def prod() -> Tensor:
    """The product of the valid entries along ``dim``: ``prod(x[valid])``.

    Where no entry is valid, the result is 1 for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.prod(x, 1, mask=m)
        tensor([3., 1.])

    See also:
        :func:`cumprod`.

    References:
        ``torch.prod``, ``torch.masked.prod``; ``min_count`` as in ``pandas.DataFrame.prod``.
    """


@row(reduction, over_dims(aten.mean.dim), slice_reductions.mean, packed=torch.mean)
def mean() -> Tensor:
    """The mean of the valid entries along ``dim``: ``sum(x[valid]) / n`` with ``n`` the number of valid entries.

    Where no entry is valid, the result is NaN for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        RuntimeError: ``input`` is neither floating point nor complex: pass a ``dtype`` that is.

    Example:
        >>> mt.masked_tensor([[1.0, None, 3.0], [None, None, None]]).mean(1)
        masked_tensor([2.0000, --], valid=1/2)
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.mean(x, 1, mask=m)
        tensor([2., nan])

    See also:
        :func:`sum`, :func:`nanmean`, :func:`average`, :func:`median`.

    References:
        ``torch.mean``, ``torch.masked.mean``.
    """


@row(reduction, over_dims(aten.amax.default), slice_reductions.amax, enter=_ordered)
def amax() -> Tensor:
    """The largest valid entry along ``dim``: ``max(x[valid])``.

    Where no entry is valid, the result is -inf (the smallest integer, False) for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.amax(x, 1, mask=m)
        tensor([3., -inf])

    See also:
        :func:`amin`, :func:`aminmax`, :func:`max`, :func:`argmax`.

    References:
        ``torch.amax``, ``torch.masked.amax``.
    """


@row(reduction, over_dims(aten.amin.default), slice_reductions.amin, enter=_ordered)
def amin() -> Tensor:
    """The smallest valid entry along ``dim``: ``min(x[valid])``.

    Where no entry is valid, the result is inf (the largest integer, True) for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.amin(x, 1, mask=m, fill_value=0)
        tensor([1., 0.])

    See also:
        :func:`amax`, :func:`aminmax`, :func:`min`, :func:`argmin`.

    References:
        ``torch.amin``, ``torch.masked.amin``.
    """


@row(reduction, over_dims(aten.logsumexp.default), slice_reductions.logsumexp, everywhere=True, enter=as_inexact)
def logsumexp() -> Tensor:
    """The logarithm of the sum of exponentials of the valid entries along ``dim``: ``log(sum(exp(x[valid])))``.

    Where no entry is valid, the result is -inf for a plain ``input`` and masked for a MaskedTensor. The result of a
    sparse ``input`` stores every slice with a valid entry, since ``n`` zeros result in ``log(n)``.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; the default dtype for integers and bools. A
        MaskedTensor if ``input`` is one.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.logsumexp(x, 1, mask=m)
        tensor([3.1269,   -inf])

    See also:
        :func:`logcumsumexp`, :func:`logaddexp`, :func:`log_softmax`.

    References:
        ``torch.logsumexp``, ``torch.masked.logsumexp``.
    """


@row(reduction, over_dims(aten.nansum.default), slice_reductions.nansum)
def nansum() -> Tensor:
    """The sum of the valid entries along ``dim`` that are not NaN.

    Where no entry is valid, the result is 0 for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        RuntimeError: ``input`` is complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0])
        >>> mt.nansum(x, mask=torch.tensor([True, True, False]))
        tensor(1.)

    See also:
        :func:`sum`.

    References:
        ``torch.nansum``.
    """


@row(reduction, _nanmean, slice_reductions.nanmean)
def nanmean() -> Tensor:
    """The mean of the valid entries along ``dim`` that are not NaN.

    Where all valid entries are NaN, the result is NaN. Where no entry is valid, it is NaN for a plain ``input`` and
    masked for a MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0, 8.0])
        >>> mt.nanmean(x, mask=torch.tensor([True, True, True, False]))
        tensor(2.)

    See also:
        :func:`mean`, :func:`average`.

    References:
        ``torch.nanmean``.
    """


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
    """The smallest and the largest valid entry along ``dim``: ``min(x[valid]), max(x[valid])``.

    Where no entry is valid, the results are those of :func:`amin` and :func:`amax` for a plain ``input`` and masked for
    a MaskedTensor.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.

    Returns:
        tuple: A named tuple ``(min, max)``, each of ``input``'s shape without ``dim``, in its dtype. MaskedTensors if
        ``input`` is one.

    Raises:
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.aminmax(x, mask=m)
        torch.return_types.aminmax(
        min=tensor(1.),
        max=tensor(3.))

    See also:
        :func:`amax`, :func:`amin`.

    References:
        ``torch.aminmax``.
    """
    options = {"keepdim": keepdim, "mask": mask, "fill_value": fill_value, "min_count": min_count}
    return torch.return_types.aminmax((amin(input, dim, **options), amax(input, dim, **options)))
