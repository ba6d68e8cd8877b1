"""The sum of the valid losses."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import MaskedTensor
from ..extend.arguments import names_arguments


@names_arguments
def total(*losses: Tensor, weights: Sequence[float | Tensor] | None = None) -> Tensor:
    """The sum of the valid losses: ``sum(weight * loss)``, in which masked losses are left out.

    ``a + b`` is masked if ``a`` or ``b`` is, for example if a task has no label in this batch, and then neither loss
    trains the model. Here, only the masked loss is left out. The sum is masked if all losses are. Without ``weights``,
    it equals ``torch.stack(losses).sum()``.

    Args:
        *losses (Tensor): 0-d tensors of any dtype, masked or plain, such as losses and penalties.
        weights (list of float, optional): A number or a plain 0-d tensor, of any dtype, for each loss. Weights are not
            rescaled if a loss is left out.

    Returns:
        Tensor: A 0-d tensor in the promoted dtype of ``losses``. A MaskedTensor if a loss is one.

    Raises:
        TypeError: A loss is not a tensor.
        ValueError: There is no loss, or a loss is not 0-d.
        ValueError: ``weights`` are not one number or plain 0-d tensor for each loss.

    Example:
        >>> a, b = mt.masked_tensor([1.0, 3.0]).mean(), mt.masked_tensor([None, 1.0])[:1].mean()
        >>> a + b
        masked_tensor(--, valid=0/1)
        >>> mt.total(a, b, torch.tensor(4.0), weights=[1, 1, 0.5])
        masked_tensor(4.0000, valid=1/1)

    See also:
        :func:`mean_over`.
    """
    if not losses:
        raise ValueError("total needs a loss")
    for loss in losses:
        if not isinstance(loss, Tensor):
            calls = {list: "total(*losses)", tuple: "total(*losses)", dict: "total(*losses.values())"}
            hint = f"; write {calls[type(loss)]}" if type(loss) in calls else ""
            raise TypeError(f"every loss must be a 0-d tensor, got {type(loss).__name__}{hint}")
        if loss.dim():
            raise ValueError(
                f"every loss must be a 0-d tensor, got shape {tuple(loss.shape)}; reduce it first: loss.mean()"
            )
    if weights is None:
        return torch.stack(losses).sum()
    if len(weights) != len(losses):
        raise ValueError(f"total needs one weight for each loss, got {len(weights)} weights for {len(losses)} losses")
    for weight in weights:
        if isinstance(weight, Tensor) and (weight.dim() or type(weight) is MaskedTensor):
            kind = "a masked one" if type(weight) is MaskedTensor else f"one of shape {tuple(weight.shape)}"
            raise ValueError(f"weights of total must be numbers or plain 0-d tensors, got {kind}")
    return torch.stack([loss * weight for loss, weight in zip(losses, weights, strict=True)]).sum()
