"""Functional likelihoods and divergences, entry by entry, with the keywords of the elementwise losses."""

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from ... import masks, sparse
from ..entrance import Number, enter_input
from ..reductions.run import aten
from ..registry import form
from .elementwise import Masking, asked_loss, enter_sides, loss, sparse_loss


@form
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
    """The binary cross entropy of probabilities over the valid entries.

    The loss is ``-(target * log(input) + (1 - target) * log(1 - input))``. An entry counts if ``input`` and ``target``
    are both valid.

    Args:
        input (Tensor): Probabilities, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the number of valid entries, as in torch.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or a valid entry of ``input`` is not a probability.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.binary_cross_entropy(torch.tensor([0.5, 0.5]), y, target_mask=m)
        tensor(0.6931)

    See also:
        :func:`binary_cross_entropy_with_logits`, :func:`kl_div`.

    References:
        ``torch.nn.functional.binary_cross_entropy``.
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.binary_cross_entropy.default, input, target, reduction, masking, (weight,))


@form
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
    """The binary cross entropy of ``sigmoid(input)`` over the valid entries.

    With ``s = sigmoid(input)``, the loss is ``-(target * log(s) + (1 - target) * log(1 - s))``. An entry counts if
    ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Logits, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the number of valid entries, as in torch.
        pos_weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of positive
            targets.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.binary_cross_entropy_with_logits(torch.zeros(2), y, target_mask=m)
        tensor(0.6931)

    See also:
        :func:`cross_entropy`, :func:`binary_cross_entropy`, :func:`multilabel_soft_margin_loss`,
        :func:`soft_margin_loss`.

    References:
        ``torch.nn.functional.binary_cross_entropy_with_logits``.
    """
    masking = Masking(mask, target_mask, fill_value)
    op = aten.binary_cross_entropy_with_logits.default
    return loss(op, input, target, reduction, masking, (weight, pos_weight))


@form
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
    """The Kullback-Leibler divergence of the valid entries: ``target * (log(target) - input)``.

    An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Log-probabilities, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Probabilities, floating point, broadcastable to ``input``; plain or a MaskedTensor.
        log_target (bool, optional): Whether ``target`` is a log-probability as well. Default: False.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"batchmean"`` by the
            number of indices of the first dimension with a valid entry, ``"sum"`` does not, ``"none"`` returns the loss
            of each entry. Default: ``"mean"``.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
        >>> y = torch.tensor([[1.0, 0.0], [0.3, 0.7]])
        >>> m = torch.tensor([[True], [False]])
        >>> mt.kl_div(x, y, reduction="batchmean", target_mask=m)
        tensor(0.6931)

    See also:
        :func:`binary_cross_entropy`, :func:`cross_entropy`.

    References:
        ``torch.nn.functional.kl_div``.
    """
    masking = Masking(mask, target_mask, fill_value)
    if reduction != "batchmean":
        return loss(aten.kl_div.default, input, target, reduction, masking, log_target=log_target)
    first, second, _ = enter_sides(input, target, masking)
    if fill_value is None and not (first.masked or second.masked):
        masking = Masking(mask, target_mask, float("nan"))
    total = loss(aten.kl_div.default, input, target, "sum", masking, log_target=log_target)
    shape = torch.broadcast_shapes(first.data.shape, second.data.shape)
    if not shape:
        return total  # as torch does
    if first.is_sparse or second.is_sparse:
        return total / sparse.count_valid_rows(sparse.mask_and(first.mask, second.mask), first.data)
    valid = [masks.expand_to(side.mask, shape)[..., None] for side in (first, second) if side.mask is not None]
    rows: Tensor | int = shape[0]
    if valid and rows:  # no rows at all: NaN, as torch's
        both = masks.logical_and(*valid) if len(valid) == 2 else valid[0]
        rows = masks.count(masks.any(both, range(1, both.dim()))).clamp_min(1)
    return total / rows


@form
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
    """The negative log likelihood of a Poisson distribution: ``exp(input) - target * input``.

    An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Logarithms of rates, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        log_input (bool, optional): False for the rate itself: ``input - target * log(input + eps)``. Default: True.
        full (bool, optional): Add Stirling's approximation of ``log(target!)``. Default: False.
        eps (float, optional): Added to the rate to keep the logarithm finite. Default: 1e-8.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.poisson_nll_loss(torch.zeros(2), y, target_mask=m)
        tensor(1.)

    See also:
        :func:`gaussian_nll_loss`.

    References:
        ``torch.nn.functional.poisson_nll_loss``.
    """
    masking = Masking(mask, target_mask, fill_value)
    return loss(aten.poisson_nll_loss.default, input, target, reduction, masking, (log_input, full, eps))


@form
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
    """The negative log likelihood of a normal distribution over the valid entries.

    With ``v = max(var, eps)``, the loss is ``0.5 * (log(v) + (input - target) ** 2 / v)``. An entry counts if ``input``
    and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        var (Tensor): Variances, floating point, broadcastable to ``input`` or one for each index of all dimensions but
            the last; or a float.
        full (bool, optional): Add ``0.5 * log(2 * pi)``. Default: False.
        eps (float, optional): The smallest variance, for numerical stability. Default: 1e-6.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        ValueError: A valid variance is negative.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.gaussian_nll_loss(torch.zeros(2), y, torch.ones(2), target_mask=m)
        tensor(0.5000)

    See also:
        :func:`mse_loss`, :func:`poisson_nll_loss`, :func:`log_prob`.

    References:
        ``torch.nn.functional.gaussian_nll_loss``.
    """
    masking = Masking(mask, target_mask, fill_value)
    first, second, fill_value = enter_sides(input, target, masking)
    spread = var if isinstance(var, Tensor) else first.data.new_full((), var, layout=torch.strided)
    if first.data.dim() - 1 == spread.dim() and spread.shape == first.data.shape[:-1]:
        spread = spread.unsqueeze(-1)  # one variance per row, as torch reads it
    operands = [first, second, enter_input(spread, None, "var")]
    if first.is_sparse or second.is_sparse:
        by_element = partial(F.gaussian_nll_loss, full=full, eps=eps, reduction="none")
        return sparse_loss(by_element, operands, reduction, fill_value)
    names, parameters = ("input", "target", "var"), {"full": full, "eps": eps}
    return asked_loss(F.gaussian_nll_loss, names, operands, parameters, fill_value, reduction)
