"""Functional softmax, log_softmax, softmin and logaddexp, with three ways to treat slices that hold nothing."""

from typing import Any, Literal

import torch
from torch import Tensor

from .. import layouts, masks, shapes, sparse
from ..engine.boundary.enter_leave import leave
from ..pair import Pair
from ..rules import softmax as rules
from ..sparse import slice_reductions
from .entrance import Input, as_pair, as_result, enter_input, refuse_sparse, result_in_pattern
from .names import as_torch

Mode = Literal["safe", "inf_as_zero", "none"]


@as_torch
def softmax(
    input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None, mode: Mode = "safe"
) -> Tensor:
    """``exp(x) / sum(exp(x))`` over the valid elements along ``dim``; 0 at masked-out ones.

    Args:
        input: a tensor of any layout, or a MaskedTensor.
        dim: the dimension along which the result sums to 1.
        dtype: converts the input first.
        mask: True = valid; any layout, broadcastable.  None on a sparse input: the stored elements.
        mode: ``"safe"``: a slice with nothing valid gives zeros and zero gradients, because of its *mask*; a valid
            slice of only -inf gives NaN, as torch.softmax does.  ``"inf_as_zero"``: a slice of only -inf gives zeros
            wherever the -inf came from (oneDNN's attribute of that name, torch's ``_safe_softmax``).  ``"none"``: the
            plain formula, NaN where nothing is valid.

    A sparse input keeps its pattern: unspecified elements never take part.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = torch.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.softmax(x, 1, mask=m)
        tensor([[0.1192, 0.0000, 0.8808],
                [0.0000, 0.0000, 0.0000]])
    """
    return _normalize(input, dim, dtype, mask, mode, log=False)


@as_torch
def log_softmax(
    input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None, mode: Mode = "safe"
) -> Tensor:
    """``x - logsumexp(x)`` over the valid elements along ``dim``; -inf at masked-out ones, whose exp is softmax's 0.

    Arguments as :func:`softmax`.

    >>> x, m = torch.zeros(3), torch.tensor([True, False, True])
    >>> mt.log_softmax(x, 0, mask=m)
    tensor([-0.6931,    -inf, -0.6931])
    """
    return _normalize(input, dim, dtype, mask, mode, log=True)


@as_torch
def softmin(
    input: Tensor, dim: int, *, dtype: torch.dtype | None = None, mask: Tensor | None = None, mode: Mode = "safe"
) -> Tensor:
    """``softmax(-x)`` over the valid elements along ``dim``.  Arguments as :func:`softmax`.

    >>> x, m = torch.tensor([1.0, -9.0, 1.0]), torch.tensor([True, False, True])
    >>> mt.softmin(x, 0, mask=m)
    tensor([0.5000, 0.0000, 0.5000])
    """
    given = enter_input(input, mask).to(dtype)
    if layouts.is_sparse(given.data):
        flipped = layouts.with_values(given.data, -layouts.values(given.data))
    else:
        flipped = -given.data
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
    """``log(exp(input) + exp(other))`` where the masked-out side does not take part; -inf where neither is valid.

    Strided inputs only.  A MaskedTensor result is valid where at least one side is.

    >>> x, m = torch.zeros(2), torch.tensor([True, False])
    >>> mt.logaddexp(x, x, input_mask=m)
    tensor([0.6931, 0.0000])
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
    if layouts.is_sparse(given.data):
        data = sparse.softmax(given.data, given.mask, dim, log=log, mode=mode)
        return result_in_pattern(given, data)
    if mode != "inf_as_zero" and type(given.x) is not Pair:
        return torch.log_softmax(given.data, dim) if log else torch.softmax(given.data, dim)
    result = rules.softmax(as_pair(given), dim, log=log, mode=mode)
    if mode == "none" and not given.masked:
        return result.data  # NaN where nothing is valid
    return as_result(result, given.masked, empty)
