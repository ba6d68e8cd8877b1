"""Functional losses over valid elements: ``mask`` masks the input, ``target_mask`` the target.

``reduction="mean"`` divides by the number (or summed weights) of elements valid in both; nothing valid gives NaN for
a plain input unless ``fill_value`` is given, and a masked scalar for a MaskedTensor.  ``"none"`` gives 0 at
masked-out elements.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import layouts, masks, sparse
from ..engine import table
from ..engine.boundary.enter_leave import leave
from ..pair import Pair
from ..select import select
from ..shared.averaging import NONE, reduce_loss
from ..sparse.rules import on_values
from .entrance import Input, Number, as_result, enter_input, refuse_sparse, run_op
from .form import aten

NAN = float("nan")
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}  # as the aten ops number them


class Masking(NamedTuple):
    """What every loss takes besides torch's own arguments."""

    mask: Tensor | None  #: of the input
    target_mask: Tensor | None
    fill_value: Number | None  #: of a loss of which nothing is valid


def mse_loss(
    input: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``(input - target) ** 2`` over the valid elements.

    Args:
        input, target: floating tensors of one shape, plain or masked.
        weight: one for each element; it multiplies, and a mean divides by the sum of those of the valid elements.
        reduction: ``"mean"`` divides by the number of valid elements, ``"sum"`` does not, ``"none"`` keeps the shape.
        mask, target_mask: of the input and of the target; bool, True = valid, any layout, broadcastable.
        fill_value: the value of a loss of which nothing is valid (else NaN for ``"mean"`` and 0 for ``"sum"``).

    Every loss here takes these but the weight; a MaskedTensor gives a masked loss, which is masked out if nothing is
    valid.  Sparse operands have one shape, to which strided ones broadcast: what nobody stores counts as zero, and is
    only counted; a weight needs strided ones.

    Raises TypeError for another keyword, ValueError for another ``reduction``, and UnsupportedOpError for a
    sparse result that would be dense.

    >>> target = torch.tensor([1.0, float("nan")])
    >>> mt.mse_loss(torch.zeros(2), target, target_mask=~target.isnan())
    tensor(1.)
    """
    masking = Masking(mask, target_mask, fill_value)
    return weighted_loss(aten.mse_loss.default, input, target, weight, reduction, masking)


def l1_loss(
    input: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``abs(input - target)`` over the valid elements.

    Arguments as :func:`mse_loss`.

    >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
    >>> mt.l1_loss(torch.zeros(2), y, target_mask=m)
    tensor(1.)
    """
    masking = Masking(mask, target_mask, fill_value)
    return weighted_loss(aten.l1_loss.default, input, target, weight, reduction, masking)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    *,
    beta: float = 1.0,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``0.5 * d ** 2 / beta`` where ``d = abs(input - target) < beta``, else ``d - 0.5 * beta``; over valid elements.

    Arguments as :func:`mse_loss`.

    >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
    >>> mt.smooth_l1_loss(torch.zeros(2), y, target_mask=m)
    tensor(0.5000)
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.smooth_l1_loss.default, input, target, reduction, masking, after=(beta,))


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``0.5 * d ** 2`` where ``d = abs(input - target) < delta``, else ``delta * (d - 0.5 * delta)``.

    Over the valid elements; arguments as :func:`mse_loss`.

    >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
    >>> mt.huber_loss(torch.zeros(2), y, delta=0.5, target_mask=m)
    tensor(0.3750)
    """
    masking = Masking(mask, target_mask, fill_value)
    return weighted_loss(aten.huber_loss.default, input, target, weight, reduction, masking, (delta,))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    *,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``input`` where ``target`` is 1, ``max(0, margin - input)`` where it is -1, over the valid elements.

    Arguments as :func:`mse_loss`.

    >>> x, y = torch.tensor([0.5, 0.2, 9.0]), torch.tensor([1, -1, 1])
    >>> mt.hinge_embedding_loss(x, y, mask=torch.tensor([True, True, False]))
    tensor(0.6500)
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.hinge_embedding_loss.default, input, target, reduction, masking, (margin,))


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    *,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``log(1 + exp(-target * input))`` over the valid elements.

    Arguments as :func:`mse_loss`.

    >>> x, y = torch.tensor([0.0, 9.0]), torch.tensor([1.0, -1.0])
    >>> mt.soft_margin_loss(x, y, mask=torch.tensor([True, False]))
    tensor(0.6931)
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.soft_margin_loss.default, input, target, reduction, masking)


def enter_sides(input: Tensor, target: Tensor, masking: Masking) -> tuple[Input, Input, Number | None]:
    """Both sides with their masks, and the fill value."""
    return enter_input(input, masking.mask), enter_input(target, masking.target_mask, "target"), masking.fill_value


def reduction_number(name: str) -> int:
    if name not in _REDUCTIONS:
        raise ValueError(f"reduction must be one of {sorted(_REDUCTIONS)}, got {name!r}")
    return _REDUCTIONS[name]


def loss(
    op: Any,
    input: Tensor,
    target: Tensor,
    reduction: str,
    masking: Masking,
    before: tuple[Any, ...] = (),
    after: tuple[Any, ...] = (),
    **keywords: Any,
) -> Tensor:
    """``op(input, target, *before, reduction, *after)`` on pairs."""
    first, second, fill_value = enter_sides(input, target, masking)
    arguments = [first, second, *(enter_input(b, None, "weight") if isinstance(b, Tensor) else b for b in before)]
    return run_loss(op, arguments, reduction, fill_value, after, **keywords)


def weighted_loss(
    op: Any,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    masking: Masking,
    after: tuple[Any, ...] = (),
) -> Tensor:
    """``op(input, target) * weight``; a mean divides by the weights that count."""
    if weight is None:
        return loss(op, input, target, reduction, masking, after=after)
    first, second, fill_value = enter_sides(input, target, masking)
    operands = [first, second, enter_input(weight, None, "weight")]
    for x in operands:
        refuse_sparse(f"{op.name().removeprefix('aten::')}(weight=)", x)

    def entries(mask: Tensor, x: Tensor, y: Tensor, w: Tensor) -> Pair:
        return Pair(op(x, y, NONE, *after) * w, mask)

    return python_loss(entries, operands, fill_value, reduction, weighs=True)


def run_loss(
    op: Any,
    arguments: Sequence[Any],
    reduction: str,
    fill_value: Number | None,
    after: tuple[Any, ...] = (),
    name: str = "",
    **keywords: Any,
) -> Tensor:
    """``op(*arguments, reduction, *after)``; of sparse operands by the element, if the op is such a loss.

    ``name`` is what the caller is called, if not as the op.
    """
    number = reduction_number(reduction)
    operands = [g for g in arguments if type(g) is Input]
    if any(layouts.is_sparse(x.data) for x in operands):
        if table.ENTRIES[op].op.sparse is not on_values:
            for x in operands:
                refuse_sparse(name or op.name().removeprefix("aten::"), x)

        def entries(*tensors: Tensor) -> Tensor:
            found = iter(tensors)
            result: Tensor = op(*(next(found) if type(g) is Input else g for g in arguments), NONE, *after, **keywords)
            return result

        return sparse_loss(entries, operands, reduction, fill_value)
    result = run_op(op, *(g.x if type(g) is Input else g for g in arguments), number, *after, **keywords)
    return as_result(result, any(x.masked for x in operands), NAN if reduction == "mean" else 0.0, fill_value)


def sparse_loss(
    function: Callable[..., Tensor], operands: Sequence[Input], reduction: str, fill_value: Number | None
) -> Tensor:
    """A loss by the element with sparse operands; unspecified valid elements are counted, not written out."""
    mask: Tensor | None = None
    for x in operands:
        mask = sparse.mask_and(mask, x.mask)
    data, valid = sparse.loss(function, [x.data for x in operands], mask, reduction_number(reduction))
    masked = any(x.masked for x in operands)
    if valid is None:
        return leave(layouts.valid_outputs(data, valid)) if masked else data
    return as_result(Pair(data, valid), masked, NAN if reduction == "mean" else 0.0, fill_value)


def python_loss(
    function: Callable[..., Pair],
    operands: Sequence[Input],
    fill_value: Number | None,
    reduction: str,
    weighs: bool = False,
) -> Tensor:
    """A loss that torch writes in Python: ``function(mask, *data)`` is what is averaged.

    The operands, broadcast to the mask, hold 1 under it: a number that every logarithm and quotient can take.
    ``weighs``: the last is what a mean divides by the sum of.
    """
    number = reduction_number(reduction)
    shape = torch.broadcast_shapes(*(x.data.shape for x in operands))
    mask = masks.full(shape, operands[0].data.device)
    for x in operands:
        mask = mask if x.mask is None else masks.logical_and(mask, x.mask)
    data = [select(x.data.expand(shape), mask, 1) for x in operands]
    entries = function(mask, *data)
    result = reduce_loss(entries.data, entries.mask, number, data[-1] if weighs else None)
    return as_result(result, any(x.masked for x in operands), NAN if reduction == "mean" else 0.0, fill_value)
