"""Functional softmax, log_softmax, softmin and logaddexp, with three options for slices without a valid entry."""

from typing import Any

import torch
from torch import Tensor

from .. import layouts, masks, shapes, sparse
from ..engine.boundary.enter_leave import leave
from ..pair import Pair
from ..rules import softmax as rules
from ..sparse import slice_reductions
from .entrance import Input, Mode, as_pair, as_result, enter_input, refuse_sparse, result_in_pattern
from .registry import as_torch


@as_torch(packed=torch.softmax)
def softmax(
    input: Tensor, dim: int, dtype: torch.dtype | None = None, *, mask: Tensor | None = None, mode: Mode = "safe"
) -> Tensor:
    """The softmax of the valid entries along ``dim``: ``exp(x) / sum(exp(x[valid]))``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        mode (str, optional): The result of a slice without a finite valid entry. ``"safe"``: 0 with gradient 0 if no
            entry is valid, NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: 0 in both cases, as in
            torch's ``_safe_softmax``. ``"none"``: NaN in both cases. Default: ``"safe"``.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        ValueError: ``mode`` is not one of the values above.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.softmax(x, 1, mask=m)
        tensor([[0.1192, 0.0000, 0.8808],
                [0.0000, 0.0000, 0.0000]])

    See also:
        :func:`log_softmax`, :func:`softmin`.

    References:
        ``torch.softmax``, ``torch.masked.softmax``; ``mode`` as oneDNN's ``inf_as_zero``.
    """
    return _normalize(input, dim, dtype, mask, mode, log=False)


@as_torch(packed=torch.log_softmax)
def log_softmax(
    input: Tensor, dim: int, dtype: torch.dtype | None = None, *, mask: Tensor | None = None, mode: Mode = "safe"
) -> Tensor:
    """The logarithm of the softmax of the valid entries along ``dim``: ``x - logsumexp(x[valid])``.

    Masked entries are -inf in a plain result, so that their exponential is 0, and stay masked in a MaskedTensor. A
    sparse ``input`` keeps its pattern.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        mode (str, optional): The result of a slice without a finite valid entry. ``"safe"``: 0 with gradient 0 if no
            entry is valid, NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: 0 in both cases, as in
            torch's ``_safe_softmax``. ``"none"``: NaN in both cases. Default: ``"safe"``.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, -inf where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        ValueError: ``mode`` is not one of the values above.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x, m = torch.zeros(3), torch.tensor([True, False, True])
        >>> mt.log_softmax(x, 0, mask=m)
        tensor([-0.6931,    -inf, -0.6931])

    See also:
        :func:`logsumexp`, :func:`softmax`, :func:`softmin`.

    References:
        ``torch.log_softmax``, ``torch.masked.log_softmax``.
    """
    return _normalize(input, dim, dtype, mask, mode, log=True)


@as_torch
def softmin(
    input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None, mode: Mode = "safe"
) -> Tensor:
    """The softmax of ``-input`` over the valid entries along ``dim``: ``exp(-x) / sum(exp(-x[valid]))``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        mode (str, optional): The result of a slice without a finite valid entry. ``"safe"``: 0 with gradient 0 if no
            entry is valid, NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: 0 in both cases, as in
            torch's ``_safe_softmax``. ``"none"``: NaN in both cases. Default: ``"safe"``.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        ValueError: ``mode`` is not one of the values above.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x, m = torch.tensor([1.0, -9.0, 1.0]), torch.tensor([True, False, True])
        >>> mt.softmin(x, 0, mask=m)
        tensor([0.5000, 0.0000, 0.5000])

    See also:
        :func:`softmax`, :func:`log_softmax`.

    References:
        ``torch.nn.functional.softmin``, ``torch.masked.softmin``.
    """
    given = enter_input(input, mask).to(dtype)
    flipped = layouts.with_values(given.data, -layouts.values(given.data)) if given.is_sparse else -given.data
    x = Pair(flipped, given.x.mask) if type(given.x) is Pair else flipped
    return _normalize(Input(x, given.masked), dim, None, None, mode, log=False)


@as_torch
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: torch.dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of exponentials of two tensors: ``log(exp(input) + exp(other))``.

    Where one side is masked, the result is the other. Where both are, it is -inf for plain tensors and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape, strided; plain or a MaskedTensor.
        other (Tensor): In ``input``'s dtype, broadcastable to it, strided; plain or a MaskedTensor.
        dtype (torch.dtype, optional): Convert both to this dtype first.
        input_mask (Tensor, optional): True = valid entry of ``input``; bool, broadcastable to it.
        other_mask (Tensor, optional): True = valid entry of ``other``; bool, broadcastable to it.

    Returns:
        Tensor: The broadcast shape, in ``input``'s dtype. A MaskedTensor if an operand is one.

    Raises:
        TypeError: ``input`` or ``other`` is not a tensor.
        TypeError: ``input_mask`` or ``other_mask`` is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        RuntimeError: The shapes do not broadcast.
        UnsupportedOpError: An operand is sparse.

    Example:
        >>> x, m = torch.zeros(2), torch.tensor([True, False])
        >>> mt.logaddexp(x, x, input_mask=m)
        tensor([0.6931, 0.0000])

    See also:
        :func:`logsumexp`, :func:`logcumsumexp`.

    References:
        ``torch.logaddexp``, ``torch.masked.logaddexp``.
    """
    sides = [enter_input(input, input_mask).to(dtype), enter_input(other, other_mask, "other").to(dtype)]
    for side in sides:
        refuse_sparse("logaddexp", side)
    x, y = (side.data for side in sides)
    if all(side.mask is None for side in sides):
        return torch.logaddexp(x, y)
    first, second = (s.mask if s.mask is not None else masks.full(s.data.shape, s.data.device) for s in sides)
    both = masks.logical_and(first, second)
    # Not by filling with -inf: derivatives of logaddexp(x, -inf) are inf times 0.
    sums = torch.logaddexp(torch.where(both, x, 0), torch.where(both, y, 0))
    alone = torch.where(first, x, torch.where(second, y, -float("inf")))
    data = torch.where(both, sums, alone)
    return leave(Pair(data, first | second)) if any(side.masked for side in sides) else data


def _normalize(input: Any, dim: int, dtype: Any, mask: Any, mode: Mode, log: bool) -> Tensor:
    if mode not in ("safe", "inf_as_zero", "none"):
        raise ValueError(f"mode must be 'safe', 'inf_as_zero' or 'none', got {mode!r}")
    given = input if type(input) is Input else enter_input(input, mask).to(dtype)
    slice_reductions.check_inexact("log_softmax" if log else "softmax", given.data)
    (dim,) = shapes.canonical_dims(int(dim), max(given.data.dim(), 1))
    empty = -float("inf") if log else 0.0
    if given.is_sparse:
        data = sparse.softmax(given.data, given.mask, dim, log=log, mode=mode)
        return result_in_pattern(given, data)
    if mode != "inf_as_zero" and type(given.x) is not Pair:
        return torch.log_softmax(given.data, dim) if log else torch.softmax(given.data, dim)
    result = rules.softmax(as_pair(given), dim, log=log, mode=mode)
    if mode == "none" and not given.masked:
        return result.data  # NaN where nothing is valid
    return as_result(result, given.masked, empty)
