"""Functional ranks of the valid entries, with all methods for ties."""

from typing import Literal, get_args

from torch import Tensor

from ... import shapes, sparse
from ...rules.order import rank
from ..entrance import as_pair, as_result, check_ordered, enter_input, refuse_sparse, result_in_pattern
from ..registry import as_torch
from .extremes import one_dim

Ties = Literal["average", "min", "max", "dense", "ordinal"]


@as_torch
def rankdata(input: Tensor, method: Ties = "average", *, dim: int | None = None, mask: Tensor | None = None) -> Tensor:
    """The rank of each valid entry among the valid entries along ``dim``, 1 for the smallest.

    Masked entries have no rank: they are 0 in a plain result and stay masked in a MaskedTensor. NaN ranks last, and NaN
    entries are tied. Ranks have no gradient. ``argsort().argsort()`` is not the rank if entries are masked.

    A sparse ``input`` keeps its pattern: its stored entries are ranked along one ``dim``.

    Args:
        input (Tensor): Any shape and layout, real or bool; plain or a MaskedTensor.
        method (str, optional): The rank of equal entries: ``"average"``, ``"min"`` or ``"max"`` of the ranks that they
            occupy, ``"dense"`` (as ``"min"``, without gaps between ranks) or ``"ordinal"`` (distinct ranks in order of
            position). Default: ``"average"``.
        dim (int, optional): The dimension to rank along; None ranks all entries together. ``axis`` is accepted as well.

    Returns:
        Tensor: ``input``'s shape; int64, or for ``"average"`` float64 for float64 and float32 for other dtypes. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``dim`` is neither None nor an int.
        ValueError: ``method`` is not one of the values above.
        RuntimeError: ``input`` is complex.
        UnsupportedOpError: ``input`` is sparse and ``dim`` is None.

    Example:
        >>> mt.rankdata(mt.masked_tensor([30.0, None, 10.0, 30.0]))
        masked_tensor([2.5000, --, 1.0000, 2.5000], valid=3/4)
        >>> mt.rankdata(torch.tensor([30, 20, 10, 30]), "min")
        tensor([3, 2, 1, 3])

    See also:
        :func:`quantile`.

    References:
        ``scipy.stats.rankdata``, ``scipy.stats.mstats.rankdata``; unlike there, ranks of all entries keep ``input``'s
        shape.
    """
    if method not in get_args(Ties):
        raise ValueError(f"method must be one of {get_args(Ties)}, got {method!r}")
    one_dim("rankdata", dim)
    given = check_ordered("rankdata", enter_input(input, mask), boolean=True)
    if given.is_sparse:
        if dim is None:
            refuse_sparse("rankdata(dim=None)", given)
        (axis,) = shapes.canonical_dims(dim, max(given.data.dim(), 1))
        (data,) = sparse.scan(lambda row, _: [rank(row, 1, method)], given.data, given.mask, axis)
        return result_in_pattern(given, data)
    x = as_pair(given)
    shapes.canonical_dims(dim, x.data.dim())
    return as_result(rank(x, dim, method), given.masked, 0)
