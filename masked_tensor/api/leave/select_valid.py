"""``select_valid``: several tensors as plain data, at the entries that are valid in all of them."""

from functools import reduce

import torch
from torch import Tensor

from ... import errors, masks
from ...compat import is_wrapped
from ...engine.boundary.enter_leave import enter
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor
from ...pair import Pair, plain_pair
from .convert import dense


def select_valid(*tensors: Tensor, dim: int | None = None) -> tuple[Tensor, ...]:
    """The entries that are valid in all ``tensors``, as plain 1-D tensors of the same length, in order.

    Use it for code without masks, such as metrics, where predictions and targets must stay aligned:
    ``metric.update(*mt.select_valid(prediction, target))``. Gradients flow back, and are 0 at all other entries. The
    masks are read, which waits for the device.

    Args:
        *tensors (Tensor): Tensors of one shape and any dtype; plain ones are valid everywhere.
        dim (int, optional): A dimension that only some of the tensors have, such as 1 for class scores ``(N, C, ...)``
            beside targets ``(N, ...)``. Scores are valid if all classes are, and are returned as ``(n, C)``.

    Returns:
        tuple of Tensor: For each, a plain tensor ``(n,)`` in its own dtype, with ``n`` the number of entries that are
        valid in all.

    Raises:
        TypeError: There are no tensors, or one of them is not a tensor.
        ValueError: The shapes differ, apart from ``dim``.

    Example:
        >>> p, t = mt.masked_tensor([0.9, 0.2, None]), mt.masked_tensor([1, None, 0])
        >>> mt.select_valid(p, t)
        (tensor([0.9000]), tensor([1]))
        >>> scores = mt.masked_tensor([[0.5, 0.5], [0.1, None]])
        >>> mt.select_valid(scores, torch.tensor([1, 0]), dim=1)
        (tensor([[0.5000, 0.5000]]), tensor([1]))

    See also:
        :func:`compressed`.
    """
    for x in tensors:
        if not isinstance(x, Tensor) or is_wrapped(x):
            raise errors.not_masked("select_valid", x)
    if not tensors:
        raise TypeError("select_valid() needs at least one tensor")
    most = max(x.dim() for x in tensors)
    parts = [_valid_positions(x, dim if x.dim() == most else None) for x in tensors]
    if any(mask.shape != parts[0][1].shape for _, mask in parts):
        shapes = ", ".join(str(tuple(x.shape)) for x in tensors)
        more = "; if scores have a dimension of classes, pass it as dim=1" if dim is None else f" and dim={dim}"
        raise ValueError(
            f"select_valid() needs tensors of one shape, except that some may have a dimension dim=; got {shapes}{more}"
        )
    valid = reduce(masks.logical_and, (mask for _, mask in parts))
    return tuple(data[valid] for data, _ in parts)


def _valid_positions(x: Tensor, dim: int | None) -> tuple[Tensor, Tensor]:
    """The data with the classes last, and which places are valid."""
    pair: Pair = enter(dense(x), torch.is_grad_enabled()) if type(x) is MaskedTensor else plain_pair(x)
    if dim is None:
        return pair.data, pair.mask
    return pair.data.movedim(dim, -1), masks.all(pair.mask, dim)


mark_opaque(select_valid)
