"""Functional covariance and correlation: each pair of variables over the observations in which both are valid."""

from typing import Any

from torch import Tensor

from ... import masks
from ...pair import Pair
from ...rules.covariance import count_common
from ...shared.too_few import is_enough, of_nothing
from ..entrance import Input, Number, as_pair, as_result, enter_input, refuse_sparse, run_op
from ..registry import form
from .run import aten


@form
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The covariance matrix, each entry over the observations in which both variables are valid.

    Over the ``n`` observations of a pair, the entry is ``sum((x - mean(x)) * (y - mean(y))) / (n - correction)``. With
    ``correction`` or fewer observations, the result is NaN for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): ``(V, N)``, one row per variable, or ``(N,)``; any dtype; plain or a MaskedTensor.
        correction (int, optional): Subtracted from the number of observations in the divisor: 1 or 0. Default: 1.
        fweights (Tensor, optional): How often each observation was made: integers ``(N,)``; plain or a MaskedTensor.
            Observations with a masked weight are left out.
        aweights (Tensor, optional): The importance of each observation: floating point ``(N,)``; plain or a
            MaskedTensor.
        fill_value (number, optional): The value of an entry with too few observations.
        min_count (int, optional): The number of common observations that an entry requires, as ``min_periods`` in
            pandas.

    Returns:
        Tensor: ``(V, V)``, or 0-d for one variable; in ``input``'s dtype, or the default dtype for integers. A
        MaskedTensor if ``input`` is one.

    Raises:
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: ``input`` has more than two dimensions.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = mt.masked_tensor([[1.0, 2.0, 3.0], [2.0, None, 6.0]])
        >>> mt.cov(x, min_count=3)
        masked_tensor([[1.0000,     --],
                       [    --,     --]], valid=1/4)

    See also:
        :func:`corrcoef`.

    References:
        ``torch.cov``; ``pandas.DataFrame.cov(min_periods)``, where variables are columns.
    """
    weights = {"fweights": fweights, "aweights": aweights}
    return _run("cov", aten.cov.default, input, mask, weights, fill_value, min_count, correction=correction)


@form
def corrcoef(
    input: Tensor, *, mask: Tensor | None = None, fill_value: Number | None = None, min_count: int | None = None
) -> Tensor:
    """The correlation matrix, each entry over the observations in which both variables are valid.

    Over the observations of a pair, the entry is ``cov(x, y) / (std(x) * std(y))``. With fewer than two observations,
    the result is NaN for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): ``(V, N)``, one row per variable, or ``(N,)``; any dtype; plain or a MaskedTensor.
        fill_value (number, optional): The value of an entry with too few observations.
        min_count (int, optional): The number of common observations that an entry requires, as ``min_periods`` in
            pandas.

    Returns:
        Tensor: ``(V, V)``, or 0-d for one variable; in ``input``'s dtype, or the default dtype for integers. A
        MaskedTensor if ``input`` is one.

    Raises:
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: ``input`` has more than two dimensions.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0, 9.0], [2.0, 4.0, 6.0, 0.0]])
        >>> mt.corrcoef(x, mask=torch.tensor([True, True, True, False]))
        tensor([[1., 1.],
                [1., 1.]])

    See also:
        :func:`cov`.

    References:
        ``torch.corrcoef``; ``pandas.DataFrame.corr(min_periods)``, where variables are columns.
    """
    return _run("corrcoef", aten.corrcoef.default, input, mask, {}, fill_value, min_count)


def _run(
    name: str,
    op: Any,
    input: Any,
    mask: Any,
    weights: dict[str, Tensor | None],
    fill_value: Number | None,
    min_count: int | None,
    **options: Any,
) -> Tensor:
    given = enter_input(input, mask)
    refuse_sparse(name, given)
    heavy = {n: None if w is None else enter_input(w, name=n) for n, w in weights.items()}
    masked = given.masked or any(w is not None and w.masked for w in heavy.values())
    if min_count is not None or fill_value is not None:
        given = Input(as_pair(given), given.masked)
    result = run_op(op, given.x, **options, **{n: None if w is None else w.x for n, w in heavy.items()})
    if min_count is not None:
        seen = as_pair(given)
        for w in heavy.values():
            seen = Pair(seen.data, seen.mask if w is None else masks.logical_and(seen.mask, as_pair(w).mask))
        result = Pair(result.data, masks.logical_and(result.mask, is_enough(count_common(seen), min_count)))
    return as_result(result, masked, of_nothing(name), fill_value)
