"""Functional likelihoods and divergences by the element; keywords as in loss.py."""

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import layouts, masks, sparse
from ..pair import Pair
from .entrance import Number, enter_input
from .form import aten
from .loss import Masking, enter_sides, loss, python_loss, sparse_loss


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))`` of probabilities, over the valid elements.

    Arguments as :func:`mse_loss`; ``weight`` multiplies, and does not change the divisor, as in torch.

    >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
    >>> mt.binary_cross_entropy(torch.tensor([0.5, 0.5]), y, target_mask=m)
    tensor(0.6931)
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.binary_cross_entropy.default, input, target, reduction, masking, (weight,))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """Binary cross entropy of ``sigmoid(input)`` over the valid elements.

    Arguments as :func:`mse_loss`; ``weight`` multiplies each element, ``pos_weight`` the positive ones.

    >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
    >>> mt.binary_cross_entropy_with_logits(torch.zeros(2), y, target_mask=m)
    tensor(0.6931)
    """
    masking = Masking(mask, target_mask, fill_value)
    op = aten.binary_cross_entropy_with_logits.default
    return loss(op, input, target, reduction, masking, (weight, pos_weight))


def kl_div(
    input: Tensor,
    target: Tensor,
    *,
    log_target: bool = False,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``target * (log(target) - input)`` over the valid elements (``input`` is a log-probability, as in torch).

    ``log_target``: the target is one too.  ``reduction="batchmean"`` divides by the number of rows that have a valid
    element.  Other arguments as :func:`mse_loss`.

    >>> x = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
    >>> y = torch.tensor([[1.0, 0.0], [0.3, 0.7]])
    >>> mt.kl_div(x, y, reduction="batchmean", target_mask=torch.tensor([[True], [False]]))
    tensor(0.6931)
    """
    masking = Masking(mask, target_mask, fill_value)
    if reduction != "batchmean":
        return loss(aten.kl_div.default, input, target, reduction, masking, log_target=log_target)
    first, second, _ = enter_sides(input, target, masking)
    total = loss(aten.kl_div.default, input, target, "sum", masking, log_target=log_target)
    valid = [side.mask for side in (first, second) if side.mask is not None]
    if not valid:
        return total / first.data.shape[0]
    if layouts.is_sparse(first.data) or layouts.is_sparse(second.data):
        return total / sparse.count_valid_rows(sparse.mask_and(first.mask, second.mask), first.data)
    both = masks.logical_and(*valid) if len(valid) == 2 else valid[0]
    return total / masks.count(masks.any(both, range(1, both.dim()))).clamp_min(1)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``exp(input) - target * input`` over the valid elements.

    ``log_input=False``: ``input - target * log(input + eps)``.  ``full`` adds Stirling's approximation of
    ``log(target!)``.  Arguments as :func:`mse_loss`.

    >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
    >>> mt.poisson_nll_loss(torch.zeros(2), y, target_mask=m)
    tensor(1.)
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.poisson_nll_loss.default, input, target, reduction, masking, (log_input, full, eps))


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: float | Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
    *,
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``0.5 * (log(max(var, eps)) + (input - target) ** 2 / max(var, eps))`` over the valid elements.

    ``full`` adds ``0.5 * log(2 * pi)``.  Arguments as :func:`mse_loss`.

    >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
    >>> mt.gaussian_nll_loss(torch.zeros(2), y, torch.ones(2), target_mask=m)
    tensor(0.5000)
    """
    masking = Masking(mask, target_mask, fill_value)
    first, second, fill_value = enter_sides(input, target, masking)
    spread = var if isinstance(var, Tensor) else first.data.new_full((), var, layout=torch.strided)
    if first.data.dim() - 1 == spread.dim() and spread.shape == first.data.shape[:-1]:
        spread = spread.unsqueeze(-1)  # one variance per row, as torch reads it
    operands = [first, second, enter_input(spread, None, "var")]
    by_element = partial(F.gaussian_nll_loss, full=full, eps=eps, reduction="none")
    if layouts.is_sparse(first.data) or layouts.is_sparse(second.data):
        return sparse_loss(by_element, operands, reduction, fill_value)
    return python_loss(lambda mask, *data: Pair(by_element(*data), mask), operands, fill_value, reduction)
