"""Functional logic and counting: any, all and count_nonzero over the valid elements."""

from typing import Any

from torch import Tensor

from .. import layouts
from ..pair import Pair
from ..sparse import slice_reductions
from .entrance import Dim, Input, Number, enter_input
from .form import Reduction, aten, over_dims, run_reduction
from .names import as_torch

_ANY = Reduction("any", over_dims(aten.any.dims), slice_reductions.any, False, logical=True)
_ALL = Reduction("all", over_dims(aten.all.dims), slice_reductions.all, True, logical=True)
_COUNT = Reduction("count_nonzero", over_dims(aten.sum.dim_IntList), slice_reductions.sum, 0)


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
    """Whether a valid element is nonzero; False where none is valid.  Arguments as :func:`sum`.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.any(x > 1, 1, mask=m)
    tensor([ True, False])
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
    """Whether every valid element is nonzero; True where none is valid.  Arguments as :func:`sum`.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.all(x > 1, 1, mask=m)
    tensor([False,  True])
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
    """The number of valid elements that are not 0.  Arguments as :func:`sum`.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> m = torch.tensor([[True, False, True], [False, False, False]])
    >>> mt.count_nonzero(x, 1, mask=m)
    tensor([2, 0])
    """
    given = enter_input(input, mask)
    x = given.x
    present: Any = Pair(layouts.nonzero(x.data), x.mask) if type(x) is Pair else layouts.nonzero(given.data)
    return run_reduction(_COUNT, Input(present, given.masked), dim, keepdim, None, None, fill_value, min_count)
