"""Functional logic and counting: any, all and count_nonzero over the valid elements."""

from typing import Any

from torch import Tensor

from ... import layouts
from ...pair import Pair
from ...sparse import slice_reductions
from ..entrance import Dim, Input, Number, enter_input
from ..registry import as_torch
from .run import Reduction, aten, over_dims, run_reduction

_ANY = Reduction("any", over_dims(aten.any.dims), slice_reductions.any, logical=True)
_ALL = Reduction("all", over_dims(aten.all.dims), slice_reductions.all, logical=True)
_COUNT = Reduction("count_nonzero", over_dims(aten.sum.dim_IntList), slice_reductions.sum)


@as_torch
def any(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """Whether a valid entry along ``dim`` is not 0.

    A plain result is False where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, bool. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.any(x > 1, 1, mask=m)
        tensor([ True, False])

    References:
        ``torch.any``.
    """
    return run_reduction(_ANY, input, dim, keepdim, None, mask, fill_value, min_count)


@as_torch
def all(
    input: Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """Whether every valid entry along ``dim`` is not 0.

    A plain result is True where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, bool. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.all(x > 1, 1, mask=m)
        tensor([False,  True])

    References:
        ``torch.all``.
    """
    return run_reduction(_ALL, input, dim, keepdim, None, mask, fill_value, min_count)


@as_torch
def count_nonzero(
    input: Tensor,
    dim: Dim = None,
    *,
    keepdim: bool = False,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The number of valid entries along ``dim`` that are not 0.

    It is a count: where no entry is valid it is 0, and valid.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Other dtypes are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is neither None nor a plain tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.count_nonzero(x, 1, mask=m)
        tensor([2, 0])

    References:
        ``torch.count_nonzero``.
    """
    given = enter_input(input, mask)
    if given.masked and fill_value is None and min_count is None:
        min_count = 0
    x = given.x
    present: Any = Pair(layouts.nonzero(x.data), x.mask) if type(x) is Pair else layouts.nonzero(given.data)
    return run_reduction(_COUNT, Input(present, given.masked), dim, keepdim, None, None, fill_value, min_count)
