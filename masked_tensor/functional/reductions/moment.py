"""Functional moments and norms: var, std, var_mean, std_mean, norm, dist."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ... import shapes, sparse
from ...pair import Pair
from ...shared.too_few import needed_for, of_nothing
from ...sparse import slice_reductions
from ..entrance import Dim, Input, Number, as_result, enter_input, run_op
from ..registry import as_torch, row
from .run import Reduction, as_inexact, aten, over_dims, run_reduction

_MEAN = Reduction("mean", over_dims(aten.mean.dim), slice_reductions.mean)


def _apart(dim: Dim, unbiased: bool | None) -> tuple[Dim, bool | None]:
    """``dim`` and ``unbiased``: ``var(x, False)`` says the latter, as in torch."""
    return (None, dim) if isinstance(dim, bool) else (dim, unbiased)


def _moment(name: str, op: Any) -> Callable[..., Tensor]:
    def moment(
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
        dim, unbiased = _apart(dim, unbiased)
        if unbiased is not None and correction is not None:
            raise ValueError(f"{name}(): give unbiased or correction, not both")
        correction = (1 if unbiased is None else int(unbiased)) if correction is None else correction
        if fill_value is not None or min_count is not None:
            min_count = needed_for(correction, min_count)
        given = as_inexact(name, enter_input(input, mask).to(dtype))  # as torch.masked, where torch.var raises
        if given.masked and given.is_sparse and min_count is None and given.data.numel():
            min_count = needed_for(correction)
        form = Reduction(
            name,
            lambda x, dims, keepdim: run_op(op, x, list(dims), correction=correction, keepdim=keepdim),
            lambda v, s: getattr(slice_reductions, name)(v, s, correction),
            everywhere=given.is_sparse and _may_be_short(given, dim, correction),
        )
        return run_reduction(form, given, dim, keepdim, None, None, fill_value, min_count)

    return moment


def _with_mean(name: str, moment: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    def pair(
        input: Tensor,
        dim: Dim = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        dtype: torch.dtype | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        dim, unbiased = _apart(dim, unbiased)
        spread = moment(input, dim, unbiased, keepdim, correction=correction, dtype=dtype, mask=mask)
        return spread, run_reduction(_MEAN, input, dim, keepdim, dtype, mask, None, None)

    return pair


@row(_moment, aten.var.correction)
def var() -> Tensor:
    """The variance of the valid entries along ``dim``: ``sum((x - mean) ** 2) / (n - correction)``.

    ``n`` is the number of valid entries. Where ``n <= correction``, the result is NaN for a plain ``input`` and masked
    for a MaskedTensor.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        unbiased (bool, optional): torch's older form of ``correction``: True is 1, False is 0.
        correction (float, optional): Subtracted from ``n`` in the divisor. Default: 1.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype: real for complex, the default dtype for integers and
        bools. A MaskedTensor if ``input`` is one.

    Raises:
        ValueError: Both ``unbiased`` and ``correction`` are given.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.var(x, correction=0, mask=~x.isnan())
        tensor(2.2500)

    See also:
        :func:`std`, :func:`var_mean`.

    References:
        ``torch.var``, ``torch.masked.var``.
    """


@row(_moment, aten.std.correction)
def std() -> Tensor:
    """The standard deviation of the valid entries along ``dim``: ``sqrt(var(x))``, see :func:`var`.

    Where ``n <= correction``, the result is NaN for a plain ``input`` and masked for a MaskedTensor. The gradient is 0
    where the standard deviation is 0.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        unbiased (bool, optional): torch's older form of ``correction``: True is 1, False is 0.
        correction (float, optional): Subtracted from ``n`` in the divisor. Default: 1.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype: real for complex, the default dtype for integers and
        bools. A MaskedTensor if ``input`` is one.

    Raises:
        ValueError: Both ``unbiased`` and ``correction`` are given.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.std(x, correction=0, mask=~x.isnan())
        tensor(1.5000)

    See also:
        :func:`var`, :func:`std_mean`.

    References:
        ``torch.std``, ``torch.masked.std``.
    """


@row(_with_mean, var)
def var_mean() -> tuple[Tensor, Tensor]:
    """The variance and the mean of the valid entries along ``dim``.

    Where too few entries are valid, the results are NaN for a plain ``input`` and masked for a MaskedTensor; see
    :func:`var`.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        unbiased (bool, optional): torch's older form of ``correction``: True is 1, False is 0.
        correction (float, optional): Subtracted from ``n`` in the divisor. Default: 1.

    Returns:
        tuple of Tensor: ``(var, mean)``, each of ``input``'s shape without ``dim``, in its dtype; the variance of
        complex numbers is real. MaskedTensors if ``input`` is one.

    Raises:
        ValueError: Both ``unbiased`` and ``correction`` are given.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.var_mean(x, correction=0, mask=~x.isnan())
        (tensor(2.2500), tensor(2.5000))

    See also:
        :func:`var`.

    References:
        ``torch.var_mean``.
    """


@row(_with_mean, std)
def std_mean() -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean of the valid entries along ``dim``.

    Where too few entries are valid, the results are NaN for a plain ``input`` and masked for a MaskedTensor; see
    :func:`var`.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        unbiased (bool, optional): torch's older form of ``correction``: True is 1, False is 0.
        correction (float, optional): Subtracted from ``n`` in the divisor. Default: 1.

    Returns:
        tuple of Tensor: ``(std, mean)``, each of ``input``'s shape without ``dim``, in its dtype; the standard
        deviation of complex numbers is real. MaskedTensors if ``input`` is one.

    Raises:
        ValueError: Both ``unbiased`` and ``correction`` are given.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.std_mean(x, correction=0, mask=~x.isnan())
        (tensor(1.5000), tensor(2.5000))

    See also:
        :func:`std`.

    References:
        ``torch.std_mean``.
    """


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
    """The vector norm of the valid entries along ``dim``: ``sum(abs(x[valid]) ** ord) ** (1 / ord)``.

    Where no entry is valid, the result is 0 (inf for a negative ``ord``) for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        ord (float, optional): The order. 0 counts the nonzero entries; inf and -inf are the largest and the smallest
            ``abs(x)``. Default: 2.0.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; real for complex. A MaskedTensor if ``input`` is one.

    Raises:
        ValueError: ``ord`` is not a number.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> mt.norm(torch.tensor([3.0, 9.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(5.)

    See also:
        :func:`dist`, :func:`normalize`.

    References:
        ``torch.linalg.vector_norm``, ``torch.masked.norm``.
    """
    ord = 2.0 if ord is None else float(ord)
    form = Reduction(
        "norm",
        lambda x, dims, keepdim: run_op(aten.linalg_vector_norm.default, x, ord, list(dims), keepdim),
        lambda v, s: slice_reductions.norm(v, s, ord),
        like="norm" if ord >= 0 else "amin",
    )
    return run_reduction(form, input, dim, keepdim, dtype, mask, fill_value, min_count)


@as_torch
def dist(
    input: Tensor, other: Tensor, p: float = 2, *, mask: Tensor | None = None, fill_value: Number | None = None
) -> Tensor:
    """The ``p``-norm of the difference over the entries that are valid in both: ``norm(input - other, p)``.

    Where no entry is valid, the result is 0 for plain tensors and masked for a MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        other (Tensor): Floating point or complex, broadcastable to ``input``, or of its shape if one of them is sparse;
            plain or a MaskedTensor.
        p (float, optional): The order of the norm. Default: 2.
        fill_value (number, optional): The value of a result without a valid entry.

    Returns:
        Tensor: A 0-d tensor in the dtype of ``input - other``; real for complex. A MaskedTensor if an operand is one.

    Raises:
        TypeError: ``other`` is not a tensor.
        ValueError: An operand is sparse and the shapes differ.
        RuntimeError: The shapes do not broadcast.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 9.0])
        >>> mt.dist(x, y, mask=torch.tensor([True, False]))
        tensor(3.)

    See also:
        :func:`norm`.

    References:
        ``torch.dist``.
    """
    first, second = enter_input(input, mask), enter_input(other, None, "other")
    masked = first.masked or second.masked
    if first.is_sparse or second.is_sparse:
        if first.data.shape != second.data.shape:
            shapes_of = f"{tuple(first.data.shape)} and {tuple(second.data.shape)}"
            raise ValueError(f"dist with a sparse input does not broadcast: both must have one shape, got {shapes_of}")
        data, valid = sparse.dist(first.data, second.data, sparse.mask_and(first.mask, second.mask), float(p))
        return as_result(Pair(data, valid), masked, of_nothing("dist"), fill_value)
    result = run_op(aten.dist.default, first.x, second.x, p)
    return as_result(result, masked, of_nothing("dist"), fill_value)


def _may_be_short(given: Input, dim: Dim, correction: float) -> bool:
    """Whether a slice of unspecified zeros may have too few elements for the correction, hence give NaN and not 0."""
    dims = shapes.canonical_dims(dim, given.data.dim())
    size = torch.Size([given.data.shape[d] for d in dims]).numel()
    return correction > 0 and (given.mask is not None or size <= correction)
