"""Functional moments and norms: var, std, var_mean, std_mean, norm, dist."""

import math
from typing import Any

import torch
from torch import Tensor

from .. import layouts, shapes, sparse
from ..pair import Pair
from ..sparse import slice_reductions
from .entrance import Dim, Input, Number, as_result, enter_input, run_op
from .form import Reduction, aten, over_dims, run_reduction
from .names import as_torch

_NAN = float("nan")


@as_torch
def var(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The variance of the valid elements, ``sum((x - mean)^2) / (n - correction)``; NaN where ``n <= correction``.

    ``unbiased`` is the older spelling of ``correction``: True is 1 (the default), False is 0; giving both is an error.
    Other arguments as :func:`sum`.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.var(x, correction=0, mask=~x.isnan())
        tensor(2.2500)
    """
    return _moment(
        "var", aten.var.correction, input, dim, unbiased, correction, keepdim, dtype, mask, fill_value, min_count
    )


@as_torch
def std(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The square root of :func:`var`; its gradient is 0 where the deviation is 0.

    Arguments as :func:`var`.

    >>> x = torch.tensor([1.0, float("nan"), 4.0])
    >>> mt.std(x, correction=0, mask=~x.isnan())
    tensor(1.5000)
    """
    return _moment(
        "std", aten.std.correction, input, dim, unbiased, correction, keepdim, dtype, mask, fill_value, min_count
    )


@as_torch
def var_mean(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """``(var, mean)`` of the valid elements.  Arguments as :func:`var`.

    >>> x = torch.tensor([1.0, float("nan"), 4.0])
    >>> mt.var_mean(x, correction=0, mask=~x.isnan())
    (tensor(2.2500), tensor(2.5000))
    """
    dim, unbiased = _apart(dim, unbiased)
    options: dict[str, Any] = {"keepdim": keepdim, "dtype": dtype, "mask": mask}
    return var(input, dim, unbiased, correction=correction, **options), _mean(input, dim, **options)


@as_torch
def std_mean(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """``(std, mean)`` of the valid elements.  Arguments as :func:`var`.

    >>> x = torch.tensor([1.0, float("nan"), 4.0])
    >>> mt.std_mean(x, correction=0, mask=~x.isnan())
    (tensor(1.5000), tensor(2.5000))
    """
    dim, unbiased = _apart(dim, unbiased)
    options: dict[str, Any] = {"keepdim": keepdim, "dtype": dtype, "mask": mask}
    return std(input, dim, unbiased, correction=correction, **options), _mean(input, dim, **options)


@as_torch
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The vector norm ``sum(abs(x) ** ord) ** (1 / ord)`` of the valid elements; 0 (``ord < 0``: inf) if none is.

    ``ord`` 0 counts the nonzero elements, inf and -inf take the greatest and least ``abs(x)``.  Other arguments as
    :func:`sum`.

    >>> mt.norm(torch.tensor([3.0, 9.0, 4.0]), mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    ord = 2.0 if ord is None else float(ord)
    form = Reduction(
        "norm",
        lambda x, dims, keepdim: run_op(aten.linalg_vector_norm.default, x, ord, list(dims), keepdim),
        lambda v, s: slice_reductions.norm(v, s, ord),
        0.0 if ord >= 0 else float("inf"),
    )
    return run_reduction(form, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def dist(
    input: Tensor, other: Tensor, p: float = 2, *, mask: Tensor | None = None, fill_value: Number | None = None
) -> Tensor:
    """The ``p``-norm of ``input - other`` over the pairs valid in both; 0, or ``fill_value``, where none is.

    ``input`` and ``other`` broadcast, or have one shape if one of them is sparse (else ValueError); ``mask`` (True =
    valid) is that of ``input``.

    >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 9.0])
    >>> mt.dist(x, y, mask=torch.tensor([True, False]))
    tensor(3.)
    """
    first, second = enter_input(input, mask), enter_input(other, None, "other")
    masked = first.masked or second.masked
    if layouts.is_sparse(first.data) or layouts.is_sparse(second.data):
        if first.data.shape != second.data.shape:
            shapes_of = f"{tuple(first.data.shape)} and {tuple(second.data.shape)}"
            raise ValueError(f"dist with a sparse input does not broadcast: both must have one shape, got {shapes_of}")
        data, valid = sparse.dist(first.data, second.data, sparse.mask_and(first.mask, second.mask), float(p))
        return as_result(Pair(data, valid), masked, 0.0, fill_value)
    result = run_op(aten.dist.default, first.x, second.x, p)
    return as_result(result, masked, 0.0, fill_value)


def _mean(input: Tensor, dim: Dim, **options: Any) -> Tensor:
    form = Reduction("mean", over_dims(aten.mean.dim), slice_reductions.mean, _NAN)
    return run_reduction(form, input, dim, options["keepdim"], options["dtype"], options["mask"], None, None)


def _apart(dim: Dim, unbiased: bool | None) -> tuple[Dim, bool | None]:
    """``dim`` and ``unbiased``: ``var(x, False)`` says the latter, as in torch."""
    return (None, dim) if isinstance(dim, bool) else (dim, unbiased)


def _moment(
    name: str,
    op: Any,
    input: Tensor,
    dim: Dim,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: torch.dtype | None,
    mask: Tensor | None,
    fill_value: Number | None,
    min_count: int | None,
) -> Tensor:
    dim, unbiased = _apart(dim, unbiased)
    if unbiased is not None and correction is not None:
        raise ValueError(f"{name}(): give unbiased or correction, not both")
    correction = (1 if unbiased is None else int(unbiased)) if correction is None else correction
    if fill_value is not None or min_count is not None:
        min_count = max(min_count or 1, math.floor(correction) + 1)
    given = enter_input(input, mask).to(dtype)
    if not (given.data.is_floating_point() or given.data.is_complex()):
        given = given.to(torch.get_default_dtype())  # as torch.masked, where torch.var raises
    if given.masked and layouts.is_sparse(given.data) and min_count is None and given.data.numel():
        min_count = math.floor(correction) + 1
    form = Reduction(
        name,
        lambda x, dims, keepdim: run_op(op, x, list(dims), correction=correction, keepdim=keepdim),
        lambda v, s: getattr(slice_reductions, name)(v, s, correction),
        _NAN,
        everywhere=layouts.is_sparse(given.data) and _may_be_short(given, dim, correction),
    )
    return run_reduction(form, given, dim, keepdim, None, None, fill_value, min_count)


def _may_be_short(given: Input, dim: Dim, correction: float) -> bool:
    """Whether a slice of unspecified zeros may have too few elements for the correction, hence give NaN and not 0."""
    dims = shapes.canonical_dims(dim, given.data.dim())
    size = torch.Size([given.data.shape[d] for d in dims]).numel()
    return correction > 0 and (given.mask is not None or size <= correction)
