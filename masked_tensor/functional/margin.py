"""Functional margin and distance losses, and those that torch writes in Python; keywords as in loss.py."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..pair import Pair
from ..ports import enter, leave
from .entrance import finished, run
from .loss import NAN, loss, reduction_number, sides
from .reduce import aten


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, *, margin: float = 0.0, reduction: str = "mean", **masking: Any
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)`` over the valid elements; ``mask`` masks ``input1``."""
    return _three(aten.margin_ranking_loss.default, (input1, input2, target), reduction, masking, (margin,))


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, *, margin: float = 0.0, reduction: str = "mean", **masking: Any
) -> Tensor:
    """The cosine embedding loss over the features valid in both inputs; ``mask`` masks ``input1``."""
    return _three(aten.cosine_embedding_loss.default, (input1, input2, target), reduction, masking, (margin,))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    **masking: Any,
) -> Tensor:
    """The triplet loss with distances over the features valid in both; ``mask`` masks the anchor."""
    arguments = (margin, p, eps, swap)
    return _three(aten.triplet_margin_loss.default, (anchor, positive, negative), reduction, masking, arguments)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    *,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
    **masking: Any,
) -> Tensor:
    """The multi-class margin loss over the valid targets and classes."""
    return loss(aten.multi_margin_loss.default, input, target, reduction, masking, (p, margin, weight))


def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", **masking: Any) -> Tensor:
    """The multi-label margin loss over the valid classes."""
    return loss(aten.multilabel_margin_loss.default, input, target, reduction, masking)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: float | Tensor,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
    **masking: Any,
) -> Tensor:
    """The Gaussian negative log likelihood over the valid elements."""
    return _in_python(
        lambda x, y: F.gaussian_nll_loss(x, y, var, full=full, eps=eps, reduction=reduction),
        input,
        target,
        reduction,
        masking,
    )


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, *, weight: Tensor | None = None, reduction: str = "mean", **masking: Any
) -> Tensor:
    """The multi-label loss of logits over the valid classes, averaged per row."""

    def loss(x: Tensor, y: Tensor) -> Tensor:  # torch's own divides by the number of all classes, in Python
        entries = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        rows = (entries if weight is None else entries * weight).mean(-1)
        return rows.mean() if reduction == "mean" else rows.sum() if reduction == "sum" else rows

    return _in_python(loss, input, target, reduction, masking)


def _three(
    op: Any, tensors: tuple[Tensor, Tensor, Tensor], kind: str, masking: dict[str, Any], arguments: tuple[Any, ...]
) -> Tensor:
    first, last, fill_value = sides(tensors[0], tensors[2], masking)
    middle = enter(tensors[1], torch.is_grad_enabled())
    result = run(op, first.x, middle, last.x, *arguments, reduction_number(kind))
    masked = first.masked or last.masked or type(middle) is Pair
    return finished(result, masked, NAN if kind == "mean" else 0.0, fill_value)  # type: ignore[no-any-return]


def _in_python(
    function: Callable[[Tensor, Tensor], Tensor], input: Tensor, target: Tensor, kind: str, masking: dict[str, Any]
) -> Tensor:
    reduction_number(kind)
    first, second, fill_value = sides(input, target, masking)
    result = enter(function(leave(first.x), leave(second.x)), torch.is_grad_enabled())
    masked = first.masked or second.masked
    return finished(result, masked, NAN if kind == "mean" else 0.0, fill_value)  # type: ignore[no-any-return]
