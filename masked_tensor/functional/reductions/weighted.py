"""Functional weighted means of the valid entries of each slice."""

from typing import Any, cast

import torch
from torch import Tensor

from ... import errors, masks, shapes
from ...engine.boundary.enter_leave import leave
from ...engine.tensor import MaskedTensor
from ...kernels.precision import rounds_noticeably
from ...pair import Pair, moved
from ..entrance import Dim, Number, as_pair, enter_input, refuse_sparse
from ..registry import check_dim, form
from . import sums


@form
def average(
    input: Tensor,
    dim: Dim = None,
    weights: Tensor | None = None,
    *,
    keepdim: bool = False,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The weighted mean of the valid entries along ``dim``: ``sum(weights * x) / sum(weights)``.

    An entry counts if ``input`` and its weight are valid. Where no entry counts, the result is NaN for a plain
    ``input`` and masked for a MaskedTensor; weights with sum 0 result in NaN or inf. Gradients flow to both. Without
    ``weights`` this is :func:`mean`.

    Args:
        input (Tensor): Floating point or complex, of any shape, strided; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all.
        weights (Tensor, optional): Any dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. Default: False.
        fill_value (number, optional): The value of a result without a valid entry.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in the dtype of ``weights * input``. A MaskedTensor if ``input`` or
        ``weights`` is one and ``fill_value`` is not given.

    Raises:
        TypeError: ``weights`` is not a tensor.
        ValueError: ``weights`` does not broadcast to ``input``.
        RuntimeError: ``input`` is neither floating point nor complex.
        UnsupportedOpError: ``input`` is sparse and ``weights`` are given.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 4.0])
        >>> mt.average(x, weights=torch.tensor([1.0, 5.0, 2.0]))
        masked_tensor(3.0000, valid=1/1)

    See also:
        :func:`mean`, :func:`nanmean`.

    References:
        ``numpy.ma.average``.
    """
    check_dim("average", dim, False, "weights are given as weights=, and a mask is given as mask=")
    if weights is None:
        return sums.mean(input, dim, keepdim=keepdim, mask=mask, fill_value=fill_value)
    given, heavy = enter_input(input, mask), enter_input(weights, name="weights")
    refuse_sparse("average", given)
    x, w = as_pair(given), expand_weights(as_pair(heavy), given.data, dim)
    if not (x.data.is_floating_point() or x.data.is_complex()):
        raise errors.not_inexact("average", x.data.dtype)
    valid = masks.logical_and(masks.expand_to(x.mask, x.data.shape), w.mask)
    dtype = torch.result_type(x.data, w.data)
    wide = torch.float32 if rounds_noticeably(dtype) else dtype  # half precision is rounded once, at the end
    products: Any = leave(Pair(x.data.to(wide), x.mask, x.payload)) * leave(w)
    total = sums.sum(
        leave(Pair(w.data.to(wide) if w.data.is_floating_point() else w.data, valid)), dim, keepdim=keepdim
    )
    result = cast(MaskedTensor, (sums.sum(products, dim, keepdim=keepdim) / total).to(dtype))
    if given.masked or heavy.masked:
        return result if fill_value is None else result.filled(fill_value)
    return result.filled(float("nan") if fill_value is None else fill_value)


def expand_weights(w: Pair, data: Tensor, dim: Dim) -> Pair:
    """Weights of ``data``'s shape, given along ``dim`` alone or broadcast."""
    if isinstance(dim, int) and w.data.dim() == 1 and data.dim() > 1:
        (place,) = shapes.canonical_dims(dim, data.dim())
        shape = [-1 if d == place else 1 for d in range(data.dim())]
        w = moved(w, torch.reshape, shape)
    if not shapes.can_expand(w.data.shape, data.shape):
        raise ValueError(
            f"weights must broadcast to input's shape {tuple(data.shape)}, or have one entry per position along dim, "
            f"got {tuple(w.data.shape)}"
        )
    return Pair(torch.broadcast_to(w.data, data.shape), masks.expand_to(w.mask, data.shape), w.payload)
