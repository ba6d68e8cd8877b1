"""Functional logic and counting: any, all and count_nonzero over the valid entries."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ... import layouts
from ...pair import Pair
from ...sparse import slice_reductions
from ..entrance import Dim, Input, Number, enter_input
from ..registry import as_torch, row
from .run import Reduction, aten, over_dims, run_reduction

_COUNT = Reduction("count_nonzero", over_dims(aten.sum.dim_IntList), slice_reductions.sum)


def _test(name: str, call: Callable[..., Any], sparse: Callable[..., Tensor]) -> Callable[..., Tensor]:
    form = Reduction(name, call, sparse, logical=True)

    def test(
        input: Tensor,
        dim: Dim = None,
        keepdim: bool = False,
        *,
        mask: Tensor | None = None,
        fill_value: Number | None = None,
        min_count: int | None = None,
    ) -> Tensor:
        return run_reduction(form, input, dim, keepdim, None, mask, fill_value, min_count)

    return test


@row(_test, over_dims(aten.any.dims), slice_reductions.any)
def any() -> Tensor:
    """Whether any valid entry along ``dim`` is nonzero.

    Where no entry is valid, the result is False for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, bool. A MaskedTensor if ``input`` is one.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.any(x > 1, 1, mask=m)
        tensor([ True, False])

    See also:
        :func:`all`, :func:`count_nonzero`.

    References:
        ``torch.any``.
    """


@row(_test, over_dims(aten.all.dims), slice_reductions.all)
def all() -> Tensor:
    """Whether all valid entries along ``dim`` are nonzero.

    Where no entry is valid, the result is True for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, bool. A MaskedTensor if ``input`` is one.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.all(x > 1, 1, mask=m)
        tensor([False,  True])

    See also:
        :func:`any`.

    References:
        ``torch.all``.
    """


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
    """The number of nonzero valid entries along ``dim``: ``sum(x[valid] != 0)``.

    Where no entry is valid, the count is 0, and it is valid in a MaskedTensor as well.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.count_nonzero(x, 1, mask=m)
        tensor([2, 0])

    See also:
        :func:`count`, :func:`any`.

    References:
        ``torch.count_nonzero``.
    """
    given = enter_input(input, mask)
    if given.masked and fill_value is None and min_count is None:
        min_count = 0
    x = given.x
    present: Any = Pair(layouts.nonzero(x.data), x.mask) if type(x) is Pair else layouts.nonzero(given.data)
    return run_reduction(_COUNT, Input(present, given.masked), dim, keepdim, None, None, fill_value, min_count)
