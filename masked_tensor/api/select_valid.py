"""``select_valid``: several tensors leave together, as the entries that are valid in all of them."""

from functools import reduce

import torch
from torch import Tensor

from .. import errors, masks
from ..compat import is_wrapped
from ..engine.boundary.enter_leave import enter
from ..engine.tensor import MaskedTensor
from ..pair import Pair, plain_pair
from .convert import dense


def select_valid(*tensors: Tensor, dim: int | None = None) -> tuple[Tensor, ...]:
    """The entries at which all of the ``tensors`` are valid: plain 1-D tensors of one length, in order.

    Made for code that knows no masks, above all metrics, where predictions and targets must stay together:
    ``metric.update(*select_valid(p, t))``.  The tensors have one shape; plain ones are valid everywhere.

    With ``dim`` tensors may have one dimension more than the others, such as the class scores ``(N, C, ...)`` of
    targets ``(N, ...)`` with ``dim=1``.  What is compressed are the places of the others: a row of scores counts as
    valid if all of it is, and comes out as a row of ``(n, C)``.

    Gradients flow back, and are 0 everywhere else.  The length depends on the masks, which waits for the device.
    Raises TypeError for what is no tensor, ValueError if the shapes do not fit.

        >>> p, t = masked_tensor([0.9, 0.2, None]), masked_tensor([1, None, 0])
        >>> select_valid(p, t)
        (tensor([0.9000]), tensor([1]))
        >>> scores = masked_tensor([[0.5, 0.5], [0.1, None]])
        >>> select_valid(scores, torch.tensor([1, 0]), dim=1)
        (tensor([[0.5000, 0.5000]]), tensor([1]))
    """
    for x in tensors:
        if not isinstance(x, Tensor) or is_wrapped(x):
            raise errors.not_masked("select_valid", x)
    if not tensors:
        raise TypeError("select_valid() takes at least one tensor")
    most = max(x.dim() for x in tensors)
    parts = [_valid_positions(x, dim if x.dim() == most else None) for x in tensors]
    if any(mask.shape != parts[0][1].shape for _, mask in parts):
        shapes = ", ".join(str(tuple(x.shape)) for x in tensors)
        raise ValueError(
            "select_valid() takes tensors of one shape, or, with dim=, some that have this dimension more; got "
            f"{shapes} and dim={dim}"
        )
    valid = reduce(masks.logical_and, (mask for _, mask in parts))
    return tuple(data[valid] for data, _ in parts)


def _valid_positions(x: Tensor, dim: int | None) -> tuple[Tensor, Tensor]:
    """The data with the classes last, and which places are valid."""
    pair: Pair = enter(dense(x), torch.is_grad_enabled()) if type(x) is MaskedTensor else plain_pair(x)
    if dim is None:
        return pair.data, pair.mask
    return pair.data.movedim(dim, -1), masks.all(pair.mask, dim)
