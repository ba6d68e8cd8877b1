"""Functional elementwise losses over the valid entries: ``mask`` masks the input, ``target_mask`` the target.

``reduction="mean"`` divides by the number (or summed weights) of elements valid in both; nothing valid gives NaN for
a plain input unless ``fill_value`` is given, and a masked scalar for a MaskedTensor.  ``"none"`` gives 0 at
masked-out elements.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import kernels, layouts, masks, shapes, sparse
from ...engine import table
from ...engine.boundary.enter_leave import leave
from ...kernels.losses import in_python
from ...pair import Pair
from ...select import select
from ...shared.averaging import NONE, finish_average, reduce_loss
from ...shared.too_few import of_nothing
from ...sparse.rules import on_values
from ..entrance import Input, Number, as_result, enter_input, refuse_sparse, run_op
from ..reductions.run import aten
from ..registry import form, row

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}  # as the aten ops number them


class Masking(NamedTuple):
    """What every loss takes besides torch's own arguments."""

    mask: Tensor | None  #: of the input
    target_mask: Tensor | None
    fill_value: Number | None  #: of a loss of which nothing is valid


def _weighted(name: str, op: Any) -> Callable[..., Tensor]:
    def loss_of_entries(
        input: Tensor,
        target: Tensor,
        *,
        weight: Tensor | None = None,
        reduction: str = "mean",
        mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        fill_value: Number | None = None,
    ) -> Tensor:
        return weighted_loss(op, input, target, weight, reduction, Masking(mask, target_mask, fill_value))

    return loss_of_entries


def of_two(name: str, op: Any) -> Callable[..., Tensor]:
    """A loss of an input and a target that takes nothing else."""

    def loss_of_two(
        input: Tensor,
        target: Tensor,
        *,
        reduction: str = "mean",
        mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        fill_value: Number | None = None,
    ) -> Tensor:
        return loss(op, input, target, reduction, Masking(mask, target_mask, fill_value))

    return loss_of_two


@row(_weighted, aten.mse_loss.default, numpy=False)
def mse_loss() -> Tensor:
    """The squared error of the valid entries: ``(input - target) ** 2``.

    An entry counts if ``input`` and ``target`` are both valid. Sparse operands must have the same shape; entries that
    they do not store are 0.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the sum of the weights of valid entries.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> target = torch.tensor([1.0, float("nan")])
        >>> mt.mse_loss(torch.zeros(2), target, target_mask=~target.isnan())
        tensor(1.)
        >>> mt.mse_loss(torch.zeros(2), mt.masked_tensor([1.0, None]), reduction="none")
        masked_tensor([1.0000, --], valid=1/2)

    See also:
        :func:`l1_loss`, :func:`huber_loss`, :func:`smooth_l1_loss`, :func:`gaussian_nll_loss`.

    References:
        ``torch.nn.functional.mse_loss``.
    """


@row(_weighted, aten.l1_loss.default, numpy=False)
def l1_loss() -> Tensor:
    """The absolute error of the valid entries: ``abs(input - target)``.

    An entry counts if ``input`` and ``target`` are both valid. Sparse operands must have the same shape; entries that
    they do not store are 0.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the sum of the weights of valid entries.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.l1_loss(torch.zeros(2), y, target_mask=m)
        tensor(1.)

    See also:
        :func:`mse_loss`, :func:`huber_loss`, :func:`smooth_l1_loss`.

    References:
        ``torch.nn.functional.l1_loss``.
    """


@form
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
    """The smooth L1 loss of the valid entries: quadratic below ``beta``, linear above.

    With ``d = abs(input - target)``, the loss is ``0.5 * d ** 2 / beta`` if ``d < beta``, otherwise ``d - 0.5 * beta``.
    An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        beta (float, optional): The error at which the loss becomes linear. Default: 1.0.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.smooth_l1_loss(torch.zeros(2), y, target_mask=m)
        tensor(0.5000)

    See also:
        :func:`mse_loss`, :func:`l1_loss`, :func:`huber_loss`.

    References:
        ``torch.nn.functional.smooth_l1_loss``.
    """
    masking = Masking(mask, target_mask, fill_value)
    if beta == 0:  # as torch.nn.functional: the op's derivative is -1 at an error of 0
        return loss(aten.l1_loss.default, input, target, reduction, masking)
    return loss(aten.smooth_l1_loss.default, input, target, reduction, masking, after=(beta,))


@form
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
    """The Huber loss of the valid entries: quadratic below ``delta``, linear above.

    With ``d = abs(input - target)``, the loss is ``0.5 * d ** 2`` if ``d < delta``, otherwise ``delta * (d - 0.5 *
    delta)``. An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        delta (float, optional): Where the squared part ends. Default: 1.0.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the sum of the weights of valid entries.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.huber_loss(torch.zeros(2), y, delta=0.5, target_mask=m)
        tensor(0.3750)

    See also:
        :func:`mse_loss`, :func:`l1_loss`, :func:`smooth_l1_loss`.

    References:
        ``torch.nn.functional.huber_loss``.
    """
    masking = Masking(mask, target_mask, fill_value)
    return weighted_loss(aten.huber_loss.default, input, target, weight, reduction, masking, (delta,))


@form
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
    """The hinge embedding loss of the valid entries, for distances of similar and dissimilar pairs.

    The loss is ``input`` where ``target`` is 1, and ``max(0, margin - input)`` where it is -1. An entry counts if
    ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): 1 or -1, of any dtype, broadcastable to ``input``; plain or a MaskedTensor.
        margin (float, optional): The smallest distance of dissimilar pairs that is not penalized. Default: 1.0.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.tensor([0.5, 0.2, 9.0]), torch.tensor([1, -1, 1])
        >>> mt.hinge_embedding_loss(x, y, mask=torch.tensor([True, True, False]))
        tensor(0.6500)

    See also:
        :func:`cosine_embedding_loss`, :func:`soft_margin_loss`.

    References:
        ``torch.nn.functional.hinge_embedding_loss``.
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.hinge_embedding_loss.default, input, target, reduction, masking, (margin,))


@row(of_two, aten.soft_margin_loss.default, numpy=False)
def soft_margin_loss() -> Tensor:
    """The logistic loss of the valid entries: ``log(1 + exp(-target * input))``.

    An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): 1 or -1, of any dtype, broadcastable to ``input``; plain or a MaskedTensor.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.tensor([0.0, 9.0]), torch.tensor([1.0, -1.0])
        >>> mt.soft_margin_loss(x, y, mask=torch.tensor([True, False]))
        tensor(0.6931)

    See also:
        :func:`hinge_embedding_loss`, :func:`binary_cross_entropy_with_logits`.

    References:
        ``torch.nn.functional.soft_margin_loss``.
    """


def enter_sides(input: Tensor, target: Tensor, masking: Masking) -> tuple[Input, Input, Number | None]:
    """Both sides with their masks, and the fill value."""
    if masking.mask is not None:
        refuse_target_mask(input, target, masking.mask)
    return enter_input(input, masking.mask), enter_input(target, masking.target_mask, "target"), masking.fill_value


def refuse_target_mask(input: Any, target: Any, mask: Any) -> None:
    """Raises for ``mask=`` of the labels: of the input it would be one of the scores of all classes."""
    if not (isinstance(mask, Tensor) and isinstance(input, Tensor) and isinstance(target, Tensor)):
        return  # which is told by its type
    if mask.shape != target.shape:
        return
    labels = 0 < mask.dim() == input.dim() - 1 and not target.is_floating_point()  # even for as many samples as classes
    if labels or not shapes.can_broadcast(mask.shape, input.shape):
        way_out = ", one of classes as mask[None]" if labels and shapes.can_expand(mask.shape, input.shape) else ""
        raise ValueError(
            f"mask= masks input, of shape {tuple(input.shape)}; give a mask of target's shape {tuple(target.shape)} as "
            f"target_mask={way_out}"
        )


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

    return python_loss(entries, operands, fill_value, reduction, op)


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
    if any(x.is_sparse for x in operands):
        if table.ENTRIES[op].op.sparse is not on_values:
            for x in operands:
                refuse_sparse(name or op.name().removeprefix("aten::"), x)

        def entries(*tensors: Tensor) -> Tensor:
            found = iter(tensors)
            result: Tensor = op(*(next(found) if type(g) is Input else g for g in arguments), NONE, *after, **keywords)
            return result

        return sparse_loss(entries, operands, reduction, fill_value)
    result = run_op(op, *(g.x if type(g) is Input else g for g in arguments), number, *after, **keywords)
    return as_result(result, any(x.masked for x in operands), of_nothing(reduction), fill_value)


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
    return as_result(Pair(data, valid), masked, of_nothing(reduction), fill_value)


def python_loss(
    function: Callable[..., Pair],
    operands: Sequence[Input],
    fill_value: Number | None,
    reduction: str,
    weighs: object = None,
) -> Tensor:
    """A loss that torch writes in Python: ``function(mask, *data)`` is what is averaged.

    The operands, broadcast to the mask, hold 1 under it: a number that every logarithm and quotient can take.
    ``weighs``: the last is what a mean divides by the sum of, and this the op whose entries are weighted.
    """
    mask, number = common_mask(operands), reduction_number(reduction)
    data = [select(x.data.expand(mask.shape), mask, 1) for x in operands]
    entries = function(mask, *data)
    result = reduce_loss(
        entries.data, entries.mask, number, data[-1] if weighs else None, weighs or function.__qualname__
    )
    return as_result(result, any(x.masked for x in operands), of_nothing(reduction), fill_value)


def common_mask(operands: Sequence[Input]) -> Tensor:
    """Where all are valid, in the shape that they broadcast to."""
    mask = masks.full(torch.broadcast_shapes(*(x.data.shape for x in operands)), operands[0].data.device)
    for x in operands:
        mask = mask if x.mask is None else masks.logical_and(mask, x.mask)
    return mask


def asked_loss(
    op: Callable[..., Tensor],
    names: tuple[str, ...],
    operands: Sequence[Input],
    parameters: dict[str, Any],
    fill_value: Number | None,
    reduction: str,
) -> Tensor:
    """A loss that torch writes in Python, and kernels in one pass; ``names``: of the operands."""
    mask, number = common_mask(operands), reduction_number(reduction)
    data = (*(x.data.expand(mask.shape) for x in operands), mask)
    found = kernels.run("loss", in_python, data, op, names, None, parameters, number)
    if number == NONE:
        result = Pair(found, mask)
    else:
        result = finish_average(*found, empty=mask.numel() == 0, reduction=number, kind=op.__name__)
    return as_result(result, any(x.masked for x in operands), of_nothing(reduction), fill_value)
