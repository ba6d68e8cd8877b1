"""Making masked tensors.

``masked_tensor`` copies and makes a leaf; ``as_masked_tensor`` wraps; everything else keeps the graph of a tensor it is
given, and zeroes what it masks out.  Only here are values looked at, to refuse what cannot be meant.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import errors, layouts, masks
from ..compat import in_transform
from ..engine.alias_family import WrappedHistory
from ..engine.boundary.enter_leave import leave
from ..engine.dynamo import mark_opaque
from ..engine.tensor import MaskedTensor
from ..pair import Pair, Payload
from ..select import select
from . import accepted_inputs
from .mask_copies import own_copy


def masked_tensor(
    data: Any,
    mask: Any = None,
    requires_grad: bool = False,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> MaskedTensor:
    """A masked tensor with its own copy of ``data``: a leaf, like ``torch.tensor``.

    ``data`` is a tensor of any kind, masked and nested ones included, a number, a (nested) list, where None is a hole
    and short lists end in holes, or a container of another library: numpy, numpy.ma, pandas, polars, pyarrow, xarray,
    astropy's Masked, a PackedSequence.  What it calls missing is a hole; NaN is a value.  ``mask``, True = valid, is
    bool, or holds the integers 0 and 1, and broadcasts to the data's shape; left out, all that ``data`` does not itself
    call missing is valid.  What is masked out is set to 0.  A tensor that is part of a graph is detached:
    use :func:`as_masked_tensor` to stay in it.

    Raises TypeError if ``data`` or ``mask`` cannot be one, ValueError if the mask does not fit, RuntimeError for a
    sparse tensor that breaks the rules of its layout.

        >>> masked_tensor([1, None, 3])
        masked_tensor([1, --, 3], valid=2/3)
        >>> masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True], [False]], requires_grad=True)
        masked_tensor([[1.0000, 2.0000],
                       [    --,     --]], valid=2/4, requires_grad=True)
    """
    pair = accepted_inputs.pair_of_input(data, dtype, device)
    if mask is not None and layouts.is_sparse(pair.data):
        pair = layouts.pair_on_pattern(pair.data.detach(), accepted_inputs.mask_of_input(mask, pair.data))
    elif mask is not None:
        fits = accepted_inputs.mask_of_input(mask, pair.data)
        known = not isinstance(data, Tensor) or accepted_inputs.has_validity(data)
        pair = Pair(pair.data, masks.logical_and(pair.mask, fits) if known else own_copy(fits))
    copy = as_result(_zeroed_copy(Pair(pair.data.detach(), pair.mask)))
    if requires_grad:
        copy.requires_grad_()
    return copy


def as_masked_tensor(data: Tensor, mask: Any = None) -> MaskedTensor:
    """A masked tensor around ``data``, which is not copied (the mask is), and gradients flow back into ``data``.

    What lies under the mask stays as it is; no result depends on it.  Of a masked tensor, it is a view, or with a mask
    a copy with more holes.  Of a sparse tensor, what is stored is valid unless the mask says otherwise.  Raises
    TypeError if ``data`` is no tensor, and as :func:`masked_tensor` for the mask.

        >>> x = torch.tensor([1.0, 0.0], requires_grad=True)
        >>> y = as_masked_tensor(x, x != 0)
        >>> y
        masked_tensor([1.0000, --], valid=1/2, grad_fn=<_LeaveBackward>)
        >>> (1 / y).sum().backward()
        >>> x.grad
        tensor([-1.,  0.])
    """
    if not isinstance(data, Tensor):
        raise TypeError(
            f"as_masked_tensor wraps a tensor without a copy, got {type(data).__name__}; use masked_tensor(data, mask)"
        )
    if mask is None and type(data) is MaskedTensor and not layouts.is_sparse(data):
        return data.view_as(data)
    if not (accepted_inputs.has_validity(data) or data.is_quantized):  # nothing to find out about it
        return _expose_memory(Pair(data, own_copy(accepted_inputs.mask_of_input(mask, data))))
    pair = accepted_inputs.pair_of_input(data)
    if mask is None:
        return _expose_memory(Pair(pair.data, layouts.copy_mask(pair.mask)))
    mask = accepted_inputs.mask_of_input(mask, pair.data)
    if layouts.is_sparse(pair.data):
        return _expose_memory(layouts.pair_on_pattern(pair.data, layouts.copy_mask(mask)))
    return mask_more(pair, mask)


def masked_invalid(data: Any) -> MaskedTensor:
    """``data``, anything that :func:`masked_tensor` takes, with holes where it is NaN or infinite.

    Gradients flow back into a tensor, and are 0 at the holes.

    >>> masked_invalid([1.0, float("nan"), 3.0])
    masked_tensor([1.0000, --, 3.0000], valid=2/3)
    """
    return _mask_where(accepted_inputs.pair_of_input(data), lambda values: ~values.isfinite())


def masked_equal(data: Any, value: float | bool | complex) -> MaskedTensor:
    """``data`` with holes where it equals ``value``, such as the -999 of a file that has no word for missing.

    Data and gradients as for :func:`masked_invalid`.

    >>> masked_equal([3, -999, 5], -999)
    masked_tensor([3, --, 5], valid=2/3)
    """
    return _mask_where(accepted_inputs.pair_of_input(data), lambda values: values == value)


def masked_where(condition: Any, data: Any) -> MaskedTensor:
    """``data`` with holes where ``condition`` is True (or itself masked); arguments as in ``numpy.ma.masked_where``.

    >>> x = torch.tensor([1.0, -2.0, 3.0])
    >>> masked_where(x < 0, x)
    masked_tensor([1.0000, --, 3.0000], valid=2/3)
    """
    pair = accepted_inputs.pair_of_input(data)
    holes = accepted_inputs.pair_of_input(condition)
    fits = accepted_inputs.mask_of_input(holes.data, pair.data, "condition")
    return mask_more(pair, masks.logical_and(~fits, masks.expand_to(holes.mask, fits.shape)))


def as_result(pair: Pair) -> MaskedTensor:
    """What the caller gets of a pair."""
    if torch.compiler.is_exporting():
        raise errors.exporting()
    if in_transform() and pair.data.requires_grad:
        raise errors.inside_transform()
    made: MaskedTensor = leave(pair)
    return made


def _expose_memory(pair: Pair) -> MaskedTensor:
    """Around memory that somebody outside holds."""
    made = as_result(pair)
    made._exposed = True
    if not in_transform():
        made._history, made._writes_seen = WrappedHistory(pair.data), pair.data.grad_fn
    return made


def _zeroed_copy(pair: Pair) -> Pair:
    """A fresh pair with 0 under the mask."""
    if layouts.is_sparse(pair.data):
        return Pair(layouts.zero_masked_values(pair.data, pair.mask), pair.mask, Payload.ZERO)
    return Pair(select(pair.data, pair.mask, 0), pair.mask, Payload.ZERO)


def _mask_where(pair: Pair, hole: Callable[[Tensor], Tensor]) -> MaskedTensor:
    """``pair`` with more holes where its values are such."""
    if layouts.is_sparse(pair.data):
        valid = layouts.values(pair.mask) & ~hole(layouts.values(pair.data.detach()))
        return as_result(_zeroed_copy(Pair(pair.data, layouts.with_values(pair.mask, valid))))
    return mask_more(pair, ~hole(pair.data))


def mask_more(pair: Pair, mask: Tensor) -> MaskedTensor:
    """``pair`` with more holes; fresh memory, the same graph."""
    return as_result(
        _zeroed_copy(Pair(pair.data, masks.logical_and(pair.mask, masks.expand_to(mask, pair.data.shape))))
    )


mark_opaque(masked_tensor, as_masked_tensor, masked_invalid, masked_equal, masked_where)
