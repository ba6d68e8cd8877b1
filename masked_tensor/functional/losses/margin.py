"""Functional margin and distance losses, with the keywords of the elementwise losses."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ...engine.tensor import MaskedTensor
from ...pair import Pair
from ...rules.reduction import mean
from ..entrance import Number, enter_input, refuse_sparse
from ..reductions.run import aten
from ..registry import form, row
from .elementwise import Masking, enter_sides, loss, of_two, python_loss, run_loss


def _of_three(name: str, op: Any) -> Callable[..., Tensor]:
    def loss_of_three(
        input1: Tensor,
        input2: Tensor,
        target: Tensor,
        margin: float = 0.0,
        *,
        reduction: str = "mean",
        mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        fill_value: Number | None = None,
    ) -> Tensor:
        masking = Masking(mask, target_mask, fill_value)
        return _three(op, (input1, input2, target), reduction, masking, (margin,))

    return loss_of_three


@row(_of_three, aten.margin_ranking_loss.default, numpy=False)
def margin_ranking_loss() -> Tensor:
    """The ranking loss of the valid entries: ``max(0, -target * (input1 - input2) + margin)``.

    An entry counts if all three operands are valid.

    Args:
        input1 (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        input2 (Tensor): Floating point, broadcastable to ``input1``; plain or a MaskedTensor.
        target (Tensor): 1 where ``input1`` should be larger, -1 where ``input2`` should, of any dtype, broadcastable to
            ``input1``; plain or a MaskedTensor.
        margin (float, optional): The smallest difference that is not penalized. Default: 0.0.
        mask (Tensor, optional): True = valid entry of ``input1``; bool, of any layout, broadcastable to it.

    Returns:
        Tensor: A 0-d loss in ``input1``'s dtype; with ``reduction="none"`` of ``input1``'s shape, 0 at masked entries.
        A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input1`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> a, b = torch.tensor([1.0, 9.0]), torch.tensor([3.0, 0.0])
        >>> y = torch.tensor([1.0, 1.0])
        >>> mt.margin_ranking_loss(a, b, y, mask=torch.tensor([True, False]))
        tensor(2.)

    See also:
        :func:`triplet_margin_loss`.

    References:
        ``torch.nn.functional.margin_ranking_loss``.
    """


@row(_of_three, aten.cosine_embedding_loss.default, numpy=False)
def cosine_embedding_loss() -> Tensor:
    """The cosine embedding loss of pairs of vectors, over the features that are valid in both.

    The loss is ``1 - cos(input1, input2)`` where ``target`` is 1, and ``max(0, cos(input1, input2) - margin)`` where it
    is -1.

    Args:
        input1 (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        input2 (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        target (Tensor): 1 for similar vectors, -1 for dissimilar ones: ``(N,)`` or 0-d, of any dtype; plain or a
            MaskedTensor.
        margin (float, optional): The largest cosine of dissimilar vectors that is not penalized. Default: 0.0.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid pairs, ``"sum"`` does not,
            ``"none"`` returns the loss of each pair. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input1``; bool, of any layout, broadcastable to it.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input1`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> a, b = torch.tensor([[1.0, 0.0, 9.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> m = torch.tensor([True, True, False])
        >>> mt.cosine_embedding_loss(a, b, torch.tensor([1.0]), mask=m)
        tensor(0.)

    See also:
        :func:`hinge_embedding_loss`.

    References:
        ``torch.nn.functional.cosine_embedding_loss``.
    """


@form
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The triplet loss: ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``.

    ``d`` is the ``p``-norm of the difference along the last dimension, over the features that are valid in both.

    Args:
        anchor (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        positive (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor. It should be near
            ``anchor``.
        negative (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor. It should be far from
            ``anchor``.
        margin (float, optional): The margin by which the negative should be farther away. Default: 1.0.
        p (float, optional): The order of the norm. Default: 2.0.
        eps (float, optional): Added to the difference, for a finite gradient. Default: 1e-6.
        swap (bool, optional): Use the distance of ``positive`` and ``negative`` if it is smaller than that of
            ``anchor`` and ``negative``. Default: False.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid triplets, ``"sum"`` does not,
            ``"none"`` returns the loss of each triplet. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``anchor``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``negative``; bool, of any layout, broadcastable to it.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``anchor`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> a, p = torch.tensor([[0.0, 9.0]]), torch.tensor([[1.0, 0.0]])
        >>> n = torch.tensor([[3.0, 0.0]])
        >>> m = torch.tensor([True, False])
        >>> mt.triplet_margin_loss(a, p, n, margin=4.0, mask=m)
        tensor(2.)

    See also:
        :func:`margin_ranking_loss`.

    References:
        ``torch.nn.functional.triplet_margin_loss``; Balntas et al., Learning shallow convolutional feature descriptors
        with triplet losses, 2016 (``swap``).
    """
    masking = Masking(mask, target_mask, fill_value)
    arguments = (margin, p, eps, swap)
    return _three(aten.triplet_margin_loss.default, (anchor, positive, negative), reduction, masking, arguments)


@form
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The multi-class hinge loss over the valid classes and samples.

    The loss of a sample is ``sum(max(0, margin - input[target] + input[c]) ** p) / C`` over the other classes ``c``,
    with ``C`` the number of its valid classes.

    Args:
        input (Tensor): Scores ``(N, C)`` or ``(C,)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64: ``(N,)`` or 0-d; plain or a MaskedTensor.
        p (int, optional): The exponent, 1 or 2. Default: 1.
        margin (float, optional): The margin by which the score of the target should be larger. Default: 1.0.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the terms of each target class.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` returns the loss of each sample. Default: ``"mean"``.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: A valid target is out of range, or the shapes do not fit.
        RuntimeError: ``p`` is neither 1 nor 2.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.tensor([[0.5, 1.0], [9.0, 9.0]]), torch.tensor([1, 0])
        >>> mt.multi_margin_loss(x, y, target_mask=torch.tensor([True, False]))
        tensor(0.2500)

    See also:
        :func:`multilabel_margin_loss`.

    References:
        ``torch.nn.functional.multi_margin_loss``.
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.multi_margin_loss.default, input, target, reduction, masking, (p, margin, weight))


@row(of_two, aten.multilabel_margin_loss.default, numpy=False)
def multilabel_margin_loss() -> Tensor:
    """The multi-label hinge loss over the valid classes: ``sum(max(0, 1 - input[t] + input[c])) / C``.

    The sum is over the target classes ``t`` and the other classes ``c``, and ``C`` is the number of valid classes.

    Args:
        input (Tensor): Scores ``(N, C)`` or ``(C,)``, floating point; plain or a MaskedTensor.
        target (Tensor): Lists of classes, int64, of ``input``'s shape, each ended by -1; plain or a MaskedTensor.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` returns the loss of each sample. Default: ``"mean"``.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: A valid target is out of range, or the shapes do not fit.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.tensor([0.5, 1.0, 9.0]), torch.tensor([1, -1, -1])
        >>> mt.multilabel_margin_loss(x, y, mask=torch.tensor([True, True, False]))
        tensor(0.2500)

    See also:
        :func:`multi_margin_loss`, :func:`multilabel_soft_margin_loss`.

    References:
        ``torch.nn.functional.multilabel_margin_loss``.
    """


@form
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The multi-label logistic loss: binary cross entropy of logits, averaged over the valid classes.

    The loss of a sample is the mean over its valid classes of ``-(target * log(s) + (1 - target) * log(1 - s))``, with
    ``s = sigmoid(input)``.

    Args:
        input (Tensor): Logits ``(N, C)``, floating point; plain or a MaskedTensor.
        target (Tensor): 0 or 1 for each class: ``(N, C)``, floating point; plain or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each class.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` returns the loss of each sample. Default: ``"mean"``.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.zeros(1, 2), torch.tensor([[1.0, 9.0]])
        >>> m = torch.tensor([[True, False]])
        >>> mt.multilabel_soft_margin_loss(x, y, target_mask=m)
        tensor(0.6931)

    See also:
        :func:`multilabel_margin_loss`, :func:`binary_cross_entropy_with_logits`.

    References:
        ``torch.nn.functional.multilabel_soft_margin_loss``.
    """
    masking = Masking(mask, target_mask, fill_value)

    def rows(mask: Tensor, x: Tensor, y: Tensor, w: Tensor | None = None) -> Pair:  # torch's own counts all classes
        common = torch.promote_types(x.dtype, y.dtype)  # the loss of torch would have the dtype of the target
        x, y = x.to(common), y.to(common)
        loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        return mean(Pair(loss if w is None else loss * w, mask), -1)

    first, second, fill_value = enter_sides(input, target, masking)
    for side in (first, second):
        refuse_sparse("multilabel_soft_margin_loss", side)
    if not any(type(x) is Pair for x in (first.x, second.x)) and type(weight) is not MaskedTensor:
        return F.multilabel_soft_margin_loss(input, target, weight, reduction=reduction)
    weights = [] if weight is None else [enter_input(weight, None, "weight")]
    return python_loss(rows, [first, second, *weights], fill_value, reduction)


def _three(
    op: Any, tensors: tuple[Tensor, Tensor, Tensor], kind: str, masking: Masking, arguments: tuple[Any, ...]
) -> Tensor:
    first, last, fill_value = enter_sides(tensors[0], tensors[2], masking)
    return run_loss(op, [first, enter_input(tensors[1], None, "second input"), last, *arguments], kind, fill_value)
