"""Functional losses over valid elements: ``mask`` masks the input, ``target_mask`` the target.

``reduction="mean"`` divides by the number (or summed weights) of elements valid in both; nothing valid gives NaN for
a plain input unless ``fill_value`` is given, and a masked scalar for a MaskedTensor.  ``"none"`` gives 0 at
masked-out elements.
"""

from typing import Any

from torch import Tensor

from .. import masks
from .entrance import Given, Number, entered, finished, refuse, run
from .reduce import aten

NAN = float("nan")
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}  # as the aten ops number them


def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", **masking: Any) -> Tensor:
    """``(input - target) ** 2`` over the valid elements.

    Keywords common to every loss here: ``mask`` (of the input) and ``target_mask``, broadcastable bool tensors of any
    layout; ``fill_value``, the value of a loss of which nothing is valid.

    Example::

        >>> import torch, masked_tensor as mt
        >>> target = torch.tensor([1.0, float("nan")])
        >>> mt.mse_loss(torch.zeros(2), target, target_mask=~target.isnan())
        tensor(1.)
    """
    return loss(aten.mse_loss.default, input, target, reduction, masking)


def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", **masking: Any) -> Tensor:
    """``abs(input - target)`` over the valid elements."""
    return loss(aten.l1_loss.default, input, target, reduction, masking)


def smooth_l1_loss(
    input: Tensor, target: Tensor, *, beta: float = 1.0, reduction: str = "mean", **masking: Any
) -> Tensor:
    """Squared below ``beta``, linear above, over the valid elements."""
    return loss(aten.smooth_l1_loss.default, input, target, reduction, masking, after=(beta,))


def huber_loss(input: Tensor, target: Tensor, *, delta: float = 1.0, reduction: str = "mean", **masking: Any) -> Tensor:
    """Huber's loss over the valid elements."""
    return loss(aten.huber_loss.default, input, target, reduction, masking, after=(delta,))


def binary_cross_entropy(
    input: Tensor, target: Tensor, *, weight: Tensor | None = None, reduction: str = "mean", **masking: Any
) -> Tensor:
    """Binary cross entropy of probabilities over the valid elements."""
    return loss(aten.binary_cross_entropy.default, input, target, reduction, masking, (weight,))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
    **masking: Any,
) -> Tensor:
    """Binary cross entropy of logits over the valid elements."""
    op = aten.binary_cross_entropy_with_logits.default
    return loss(op, input, target, reduction, masking, (weight, pos_weight))


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
    **masking: Any,
) -> Tensor:
    """The Poisson negative log likelihood over the valid elements."""
    return loss(aten.poisson_nll_loss.default, input, target, reduction, masking, (log_input, full, eps))


def kl_div(
    input: Tensor, target: Tensor, *, log_target: bool = False, reduction: str = "mean", **masking: Any
) -> Tensor:
    """Kullback-Leibler divergence over the valid elements; ``"batchmean"`` divides by the rows that have one."""
    if reduction != "batchmean":
        return loss(aten.kl_div.default, input, target, reduction, masking, log_target=log_target)
    masks_of = {k: v for k, v in masking.items() if k != "fill_value"}
    first, second, _ = sides(input, target, dict(masks_of))
    total = loss(aten.kl_div.default, input, target, "sum", dict(masking), log_target=log_target)
    valid = [side.mask for side in (first, second) if side.mask is not None]
    if not valid:
        return total / first.data.shape[0]
    both = masks.both(*valid) if len(valid) == 2 else valid[0]
    return total / masks.count(masks.any(both, range(1, both.dim()))).clamp_min(1)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, *, margin: float = 1.0, reduction: str = "mean", **masking: Any
) -> Tensor:
    """The hinge embedding loss over the valid elements."""
    return loss(aten.hinge_embedding_loss.default, input, target, reduction, masking, (margin,))


def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", **masking: Any) -> Tensor:
    """``log(1 + exp(-target * input))`` over the valid elements."""
    return loss(aten.soft_margin_loss.default, input, target, reduction, masking)


def nll_loss(
    input: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    **masking: Any,
) -> Tensor:
    """The negative log likelihood; masked targets, and targets whose own entry of ``input`` is masked, do not count."""
    return loss(aten.nll_loss_nd.default, input, target, reduction, masking, (weight,), (ignore_index,))


def cross_entropy(
    input: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    **masking: Any,
) -> Tensor:
    """Cross entropy of logits; masked targets do not count, masked classes leave the denominator."""
    op = aten.cross_entropy_loss.default
    return loss(op, input, target, reduction, masking, (weight,), (ignore_index, label_smoothing))


def sides(input: Tensor, target: Tensor, masking: dict[str, Any]) -> tuple[Given, Given, Number]:
    first = entered(input, masking.pop("mask", None))
    second = entered(target, masking.pop("target_mask", None), "target")
    fill_value = masking.pop("fill_value", None)
    if masking:
        raise TypeError(f"unexpected keyword {sorted(masking)}: a loss takes mask, target_mask and fill_value")
    for side in (first, second):
        refuse("losses", side)
    return first, second, fill_value


def reduction_number(name: str) -> int:
    if name not in _REDUCTIONS:
        raise ValueError(f"reduction must be one of {sorted(_REDUCTIONS)}, got {name!r}")
    return _REDUCTIONS[name]


def loss(
    op: Any,
    input: Tensor,
    target: Tensor,
    reduction: str,
    masking: dict[str, Any],
    before: tuple[Any, ...] = (),
    after: tuple[Any, ...] = (),
    **keywords: Any,
) -> Tensor:
    """``op(input, target, *before, reduction, *after)`` on pairs."""
    first, second, fill_value = sides(input, target, masking)
    result = run(op, first.x, second.x, *before, reduction_number(reduction), *after, **keywords)
    empty = 0.0 if reduction == "none" else NAN if reduction == "mean" else 0.0
    masked = first.masked or second.masked
    return finished(result, masked, empty, fill_value)  # type: ignore[no-any-return]
