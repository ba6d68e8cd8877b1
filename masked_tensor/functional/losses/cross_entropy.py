"""Functional cross entropy and negative log likelihood, with the keywords of the elementwise losses."""

from torch import Tensor

from ... import errors, sparse
from ...engine.tensor import MaskedTensor
from ...shared.too_few import of_nothing
from ..entrance import Input, Number, as_result, enter_input
from ..reductions.run import aten
from ..registry import form
from .elementwise import Masking, enter_sides, reduction_number, run_loss


@form
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
    """The negative log likelihood of the valid targets: ``-weight[target] * input[target]``.

    A target counts unless it is masked, equals ``ignore_index``, or no class of its sample is valid. A masked target
    may be out of range. The loss of a target that names a masked class is inf. Sparse scores are 0 where they store
    nothing, and require a plain strided ``weight``.

    Args:
        input (Tensor): Log-probabilities ``(N, C)`` or ``(N, C, *)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64: ``(N,)`` or ``(N, *)``; plain or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each target class. A mean is
            divided by the sum of the weights of the targets that count.
        ignore_index (int, optional): A target value that does not count. Default: -100.
        reduction (str, optional): ``"mean"`` divides the sum by the weights of the targets that count, ``"sum"`` does
            not, ``"none"`` returns the loss of each target. Default: ``"mean"``.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of the shape of the target classes, 0 for
        targets that do not count. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        ValueError: The batch sizes differ.
        RuntimeError: ``target`` is not int64, or the shapes do not fit.
        IndexError: A target that counts is out of range.
        UnsupportedOpError: ``input`` is sparse, and ``target`` is not strided.
        UnsupportedOpError: ``input`` is sparse, and ``weight`` is masked or not strided.

    Example:
        >>> x = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
        >>> y, m = torch.tensor([0, 10**9]), torch.tensor([True, False])
        >>> mt.nll_loss(x, y, target_mask=m)
        tensor(0.6931)

    See also:
        :func:`cross_entropy`.

    References:
        ``torch.nn.functional.nll_loss``.
    """
    masking = Masking(mask, target_mask, fill_value)
    scores, classes, fill_value = enter_sides(input, target, masking)
    if scores.is_sparse:
        return _sparse("nll_loss", scores, classes, fill_value, weight, ignore_index, 0.0, reduction)
    return run_loss(
        aten.nll_loss_nd.default,
        [scores, classes, _enter_weight(weight)],
        reduction,
        fill_value,
        (ignore_index,),
        "nll_loss",
    )


@form
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
    """The cross entropy of logits over the valid targets: ``logsumexp(input) - input[target]``.

    A target counts unless it is masked, equals ``ignore_index``, or no class of its sample is valid. A masked target
    may be out of range. To mask labels, as is usual, use ``target_mask``; ``mask`` masks the scores of classes. A
    masked class has the logit -inf: it is left out of the sum of exponentials, and the loss of a target that names it
    is inf.

    Args:
        input (Tensor): Logits ``(C,)``, ``(N, C)`` or ``(N, C, *)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64, ``(N,)`` or ``(N, *)``, or probabilities of ``input``'s shape and dtype; plain
            or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each target class. A mean is
            divided by the sum of the weights of the targets that count.
        ignore_index (int, optional): A target value that does not count. Default: -100.
        label_smoothing (float, optional): The share of the target that is distributed evenly over all classes. Default:
            0.0.
        reduction (str, optional): ``"mean"`` divides the sum by the weights of the targets that count, ``"sum"`` does
            not, ``"none"`` returns the loss of each target. Default: ``"mean"``.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of the shape of the target classes, 0 for
        targets that do not count. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        ValueError: The batch sizes differ.
        RuntimeError: ``target`` is neither int64 nor of ``input``'s dtype.
        IndexError: A target that counts is out of range.
        UnsupportedOpError: ``input`` is sparse, and ``target`` holds probabilities or ``label_smoothing`` is not 0.
        UnsupportedOpError: ``input`` is sparse, and ``weight`` is not plain and strided.

    Example:
        >>> x, y = torch.zeros(2, 4), torch.tensor([1, -100])
        >>> torch.nn.functional.cross_entropy(x, mt.masked_equal(y, -100))
        masked_tensor(1.3863, valid=1/1)
        >>> mt.cross_entropy(x, y, target_mask=torch.tensor([True, False]))
        tensor(1.3863)
        >>> m = torch.tensor([True, True, False, False])
        >>> mt.cross_entropy(x, y.clamp(0), mask=m)
        tensor(0.6931)

    See also:
        :func:`nll_loss`, :func:`binary_cross_entropy_with_logits`, :func:`kl_div`.

    References:
        ``torch.nn.functional.cross_entropy``; issues 41508 and 70348 of pytorch/pytorch (NaN where everything is
        ignored).
    """
    masking = Masking(mask, target_mask, fill_value)
    scores, classes, fill_value = enter_sides(input, target, masking)
    if scores.is_sparse:
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
            f"{name} of {scores.data.layout} scores needs strided class indices, a plain weight and no "
            "label_smoothing; for more give it input.to_dense() (and the same mask)"
        )
    logits = name == "cross_entropy"
    result = sparse.cross_entropy(
        scores.data, scores.mask, target.data, target.mask, weight, number, ignore_index, logits=logits
    )
    masked = scores.masked or target.masked
    return as_result(result, masked, of_nothing(reduction), fill_value)
