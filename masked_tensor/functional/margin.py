"""Functional margin and distance losses; keywords as in loss.py."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ..pair import Pair
from ..rules.reduction import mean
from .entrance import Number, enter_input, refuse_sparse
from .form import aten
from .loss import Masking, enter_sides, loss, python_loss, run_loss


def margin_ranking_loss(
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
    """``max(0, -target * (input1 - input2) + margin)`` over the valid elements; ``mask`` masks ``input1``.

    Other arguments as :func:`mse_loss`.

    >>> a, b = torch.tensor([1.0, 9.0]), torch.tensor([3.0, 0.0])
    >>> y = torch.tensor([1.0, 1.0])
    >>> mt.margin_ranking_loss(a, b, y, mask=torch.tensor([True, False]))
    tensor(2.)
    """
    masking = Masking(mask, target_mask, fill_value)
    return _three(aten.margin_ranking_loss.default, (input1, input2, target), reduction, masking, (margin,))


def cosine_embedding_loss(
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
    """``1 - cos(input1, input2)`` where ``target`` is 1, ``max(0, cos - margin)`` where it is -1.

    The cosine is over the features (last dimension) valid in both inputs; ``mask`` masks ``input1``.  Other arguments
    as :func:`mse_loss`.

    >>> a, b = torch.tensor([[1.0, 0.0, 9.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    >>> m = torch.tensor([True, True, False])
    >>> mt.cosine_embedding_loss(a, b, torch.tensor([1.0]), mask=m)
    tensor(0.)
    """
    masking = Masking(mask, target_mask, fill_value)
    return _three(aten.cosine_embedding_loss.default, (input1, input2, target), reduction, masking, (margin,))


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
    """``max(0, distance(anchor, positive) - distance(anchor, negative) + margin)``.

    The distances, ``p``-norms along the last dimension, run over the features valid in both; ``mask`` masks the anchor
    and ``target_mask`` the negative.  Other arguments as :func:`mse_loss` and torch's.

    >>> a, p = torch.tensor([[0.0, 9.0]]), torch.tensor([[1.0, 0.0]])
    >>> n = torch.tensor([[3.0, 0.0]])
    >>> mt.triplet_margin_loss(a, p, n, margin=4.0, mask=torch.tensor([True, False]))
    tensor(2.)
    """
    masking = Masking(mask, target_mask, fill_value)
    arguments = (margin, p, eps, swap)
    return _three(aten.triplet_margin_loss.default, (anchor, positive, negative), reduction, masking, arguments)


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
    """``sum over c of max(0, margin - input[target] + input[c]) ** p / C`` over the valid classes and targets.

    ``input`` is ``(N, C)`` or ``(C,)``, ``target`` int64 classes; ``C`` counts the valid classes.  Other arguments as
    :func:`mse_loss`.

    >>> x, y = torch.tensor([[0.5, 1.0], [9.0, 9.0]]), torch.tensor([1, 0])
    >>> mt.multi_margin_loss(x, y, target_mask=torch.tensor([True, False]))
    tensor(0.2500)
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.multi_margin_loss.default, input, target, reduction, masking, (p, margin, weight))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    *,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The multi-label margin loss over the valid classes.

    Arguments as :func:`mse_loss`; ``target`` lists classes (int64), -1 ends the list.

    >>> x, y = torch.tensor([0.5, 1.0, 9.0]), torch.tensor([1, -1, -1])
    >>> mt.multilabel_margin_loss(x, y, mask=torch.tensor([True, True, False]))
    tensor(0.2500)
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.multilabel_margin_loss.default, input, target, reduction, masking)


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
    """The multi-label loss of logits over the valid classes, averaged per row.

    ``input`` and ``target`` are ``(N, C)``.  Arguments as :func:`mse_loss`.

    >>> x, y = torch.zeros(1, 2), torch.tensor([[1.0, 9.0]])
    >>> mt.multilabel_soft_margin_loss(x, y, target_mask=torch.tensor([[True, False]]))
    tensor(0.6931)
    """
    masking = Masking(mask, target_mask, fill_value)

    def rows(mask: Tensor, x: Tensor, y: Tensor, w: Tensor | None = None) -> Pair:  # torch's own counts all classes
        return mean(Pair(F.binary_cross_entropy_with_logits(x, y, w, reduction="none"), mask), -1)

    first, second, fill_value = enter_sides(input, target, masking)
    for side in (first, second):
        refuse_sparse("multilabel_soft_margin_loss", side)
    weights = [] if weight is None else [enter_input(weight, None, "weight")]
    return python_loss(rows, [first, second, *weights], fill_value, reduction)


def _three(
    op: Any, tensors: tuple[Tensor, Tensor, Tensor], kind: str, masking: Masking, arguments: tuple[Any, ...]
) -> Tensor:
    first, last, fill_value = enter_sides(tensors[0], tensors[2], masking)
    return run_loss(op, [first, enter_input(tensors[1], None, "second input"), last, *arguments], kind, fill_value)
