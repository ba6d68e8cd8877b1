"""Functional cross entropy and negative log likelihood; keywords as in loss.py."""

from torch import Tensor

from .. import errors, layouts, sparse
from ..engine.tensor import MaskedTensor
from .entrance import Input, Number, as_result, enter_input
from .form import aten
from .loss import NAN, Masking, enter_sides, reduction_number, run_loss


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``-weight[target] * input[target]``, divided by the weights of the targets that count.

    ``input`` is ``(N, C)`` or ``(N, C, *)`` log-probabilities, ``target`` the int64 classes ``(N,)`` or ``(N, *)``.  A
    target that is masked or ``ignore_index`` does not count, nor does one whose own entry of ``input`` is masked; what
    lies under a mask may be out of range.  Other arguments as :func:`mse_loss`.

    Sparse scores are 0 where they store nothing, and cost what they store and the targets; with them the target and the
    weight stay plain strided tensors or masked targets, else UnsupportedOpError.  Raises IndexError for a valid target
    out of range.

    >>> x, y = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log(), torch.tensor([0, 10**9])
    >>> mt.nll_loss(x, y, target_mask=torch.tensor([True, False]))
    tensor(0.6931)
    """
    masking = Masking(mask, target_mask, fill_value)
    scores, classes, fill_value = enter_sides(input, target, masking)
    if layouts.is_sparse(scores.data):
        return _sparse("nll_loss", scores, classes, fill_value, weight, ignore_index, 0.0, reduction)
    return run_loss(
        aten.nll_loss_nd.default,
        [scores, classes, _enter_weight(weight)],
        reduction,
        fill_value,
        (ignore_index,),
        "nll_loss",
    )


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """``logsumexp(input) - input[target]``: the cross entropy of logits over the targets that count.

    ``input`` is ``(C,)``, ``(N, C)`` or ``(N, C, *)``, ``target`` classes (int64) or probabilities.  Masked targets do
    not count; a masked class leaves the denominator.  Other arguments as :func:`nll_loss` and torch's; with sparse
    scores neither probabilities nor ``label_smoothing``.

    Source: issues 41508 and 70348 of pytorch/pytorch (NaN where everything is ignored).

    >>> x, y = torch.zeros(2, 4), torch.tensor([1, -1])
    >>> mt.cross_entropy(x, y, target_mask=torch.tensor([True, False]))
    tensor(1.3863)
    >>> mt.cross_entropy(x, y.clamp(0), mask=torch.tensor([True, True, False, False]))
    tensor(0.6931)
    """
    masking = Masking(mask, target_mask, fill_value)
    scores, classes, fill_value = enter_sides(input, target, masking)
    if layouts.is_sparse(scores.data):
        return _sparse("cross_entropy", scores, classes, fill_value, weight, ignore_index, label_smoothing, reduction)
    op, after = aten.cross_entropy_loss.default, (ignore_index, label_smoothing)
    return run_loss(op, [scores, classes, _enter_weight(weight)], reduction, fill_value, after, "cross_entropy")


def _enter_weight(weight: Tensor | None) -> Input | None:
    return None if weight is None else enter_input(weight, None, "weight")


def _sparse(
    name: str,
    scores: Input,
    target: Input,
    fill_value: Number | None,
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
    reduction: str,
) -> Tensor:
    """Sparse scores: those of the named classes are looked up."""
    number = reduction_number(reduction)
    if type(weight) is MaskedTensor or not sparse.plain_classes(target.data, weight, label_smoothing):
        raise errors.UnsupportedOpError(
            f"{name} of {scores.data.layout} scores takes strided class indices, a plain weight and no "
            "label_smoothing; for more give it input.to_dense() (and the same mask)"
        )
    logits = name == "cross_entropy"
    result = sparse.cross_entropy(
        scores.data, scores.mask, target.data, target.mask, weight, number, ignore_index, logits=logits
    )
    masked = scores.masked or target.masked
    return as_result(result, masked, NAN if reduction == "mean" else 0.0, fill_value)
