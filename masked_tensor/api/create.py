"""Making masked tensors.

``masked_tensor`` copies and makes a leaf; ``as_masked_tensor`` wraps; everything else keeps the graph of a tensor it is
given, and zeroes what it masks out.  Only here are values looked at, to refuse what cannot be meant.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import errors, layouts, masks
from ..engine.ports import leave
from ..engine.tensor import MaskedTensor
from ..pair import Pair, Payload
from ..select import select
from ..tracing import transforming
from . import given


def masked_tensor(
    data: Any,
    mask: Any = None,
    requires_grad: bool = False,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> MaskedTensor:
    """A masked tensor with its own copy of ``data``: a leaf, like ``torch.tensor``.

    ``data`` is a tensor, a number, a (nested) list, where None is a hole, a numpy array, a numpy masked array or a
    masked tensor (its holes stay).  ``mask``, True = valid, is bool and broadcasts to the data's shape; left out, all
    that ``data`` does not itself call missing is valid.  What is masked out is set to 0.

    Raises TypeError if ``data`` or ``mask`` cannot be one, ValueError if the mask does not fit, RuntimeError for a
    sparse tensor that breaks the rules of its layout.

        >>> masked_tensor([1, None, 3])
        masked_tensor([1, --, 3], valid=2/3)
        >>> masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True], [False]], requires_grad=True)
        masked_tensor([[1.0000, 2.0000],
                       [    --,     --]], valid=2/4, requires_grad=True)
    """
    pair = given.pair(data, dtype, device)
    if mask is not None and layouts.is_sparse(pair.data):
        pair = layouts.paired(pair.data.detach(), given.mask(mask, pair.data))
    elif mask is not None:
        pair = Pair(pair.data, masks.both(pair.mask, given.mask(mask, pair.data)))
    copy = _out(_cut(Pair(pair.data.detach(), pair.mask)))
    if requires_grad:
        copy.requires_grad_()
    return copy


def as_masked_tensor(data: Tensor, mask: Any = None) -> MaskedTensor:
    """A masked tensor around ``data``: nothing is copied, and gradients flow back into ``data``.

    What lies under the mask stays as it is; no result depends on it.  Of a masked tensor, it is the same tensor with
    more holes.  Of a sparse tensor, what is stored is valid unless the mask says otherwise.  Raises TypeError if
    ``data`` is no tensor, and as :func:`masked_tensor` for the mask.

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
    pair = given.pair(data)
    if mask is None and (type(data) is MaskedTensor or layouts.is_sparse(data)):
        return _out(pair)
    mask = given.mask(mask, pair.data)
    if layouts.is_sparse(pair.data):
        return _out(layouts.paired(pair.data, mask))
    return _out(Pair(pair.data, masks.both(pair.mask, mask) if type(data) is MaskedTensor else mask))


def masked_invalid(data: Any) -> MaskedTensor:
    """``data``, anything that :func:`masked_tensor` takes, with holes where it is NaN or infinite.

    Gradients flow back into a tensor, and are 0 at the holes.

    >>> masked_invalid([1.0, float("nan"), 3.0])
    masked_tensor([1.0000, --, 3.0000], valid=2/3)
    """
    return _without(given.pair(data), lambda values: ~values.isfinite())


def masked_equal(data: Any, value: float | bool | complex) -> MaskedTensor:
    """``data`` with holes where it equals ``value``, such as the -999 of a file that has no word for missing.

    Data and gradients as for :func:`masked_invalid`.

    >>> masked_equal([3, -999, 5], -999)
    masked_tensor([3, --, 5], valid=2/3)
    """
    return _without(given.pair(data), lambda values: values == value)


def masked_where(condition: Any, data: Any) -> MaskedTensor:
    """``data`` with holes where ``condition`` is True (or itself masked); arguments as in ``numpy.ma.masked_where``.

    >>> x = torch.tensor([1.0, -2.0, 3.0])
    >>> masked_where(x < 0, x)
    masked_tensor([1.0000, --, 3.0000], valid=2/3)
    """
    pair = given.pair(data)
    holes = given.pair(condition)
    fits = given.mask(holes.data, pair.data, "condition")
    return _masked(pair, masks.both(~fits, masks.fit(holes.mask, fits.shape)))


def from_lengths(padded: Any, lengths: Any, batch_first: bool = True) -> MaskedTensor:
    """A padded batch ``(B, T, ...)`` of which sequence ``b`` is valid up to ``lengths[b]``.

    The mask takes ``B * T`` bytes however many features follow.  ``batch_first=False``: the batch is ``(T, B, ...)``.
    Raises ValueError if there is not one length per sequence, or one is negative or above T.

        >>> from_lengths(torch.ones(2, 3), [3, 1])
        masked_tensor([[1.0000, 1.0000, 1.0000],
                       [1.0000,     --,     --]], valid=4/6)
    """
    pair = given.pair(padded)
    lengths = torch.as_tensor(lengths, device=pair.data.device)
    batch, time = (0, 1) if batch_first else (1, 0)
    if pair.data.dim() < 2 or tuple(lengths.shape) != (pair.data.shape[batch],):
        raise ValueError(
            f"from_lengths needs one length per sequence: padded has shape {tuple(pair.data.shape)} "
            f"({'batch, time' if batch_first else 'time, batch'}, ...), lengths has shape {tuple(lengths.shape)}"
        )
    return _masked(pair, _per_step(lengths_to_mask(lengths, pair.data.shape[time]), pair.data, batch_first))


def lengths_to_mask(lengths: Any, max_length: int | None = None) -> Tensor:
    """The bool mask ``(..., max_length)`` that is True at positions below each of the ``lengths`` ``(...)``.

    Without ``max_length`` the longest length decides, for which the lengths must be read: give it in compiled code.

        >>> lengths_to_mask(torch.tensor([2, 0, 3]))
        tensor([[ True,  True, False],
                [False, False, False],
                [ True,  True,  True]])
    """
    lengths = torch.as_tensor(lengths)
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype is torch.bool:
        raise TypeError(f"lengths must be integers, got {errors.dtype_name(lengths.dtype)}")
    if type(lengths) is Tensor and lengths.device.type == "cpu" and lengths.numel():  # no look at what is traced
        low, high = (int(v) for v in lengths.aminmax())
        if low < 0 or (max_length is not None and high > max_length):
            raise ValueError(f"lengths must lie between 0 and {max_length}, got {low} to {high}")
    return masks.lengths_to_mask(lengths, max_length if lengths.numel() else max_length or 0)


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> MaskedTensor:
    """``torch.nn.utils.rnn.pad_sequence``, but the padding is a hole.

    ``sequences`` are tensors ``(T_i, ...)``, plain or masked; the result is ``(T, B, ...)`` or ``(B, T, ...)``.
    ``padding_value`` only says what lies under the mask.

        >>> pad_sequence([torch.ones(3), torch.zeros(1)], batch_first=True)
        masked_tensor([[1.0000, 1.0000, 1.0000],
                       [0.0000,     --,     --]], valid=4/6)
    """
    if not sequences:
        raise ValueError("pad_sequence needs at least one sequence")
    pairs = [given.pair(s) for s in sequences]
    pad = torch.nn.utils.rnn.pad_sequence
    data = pad([p.data for p in pairs], batch_first, padding_value, padding_side)
    if any(type(s) is MaskedTensor for s in sequences):
        mask = pad([p.mask for p in pairs], batch_first, False, padding_side)
    else:
        mask = lengths_to_mask([len(p.data) for p in pairs])
        mask = mask.flip(1) if padding_side == "left" else mask
        mask = _per_step(mask.to(data.device), data, batch_first)
    return _out(Pair(data, mask))


def _per_step(mask: Tensor, data: Tensor, batch_first: bool) -> Tensor:
    """A ``(B, T)`` mask over ``data``, constant along the features."""
    mask = mask if batch_first else mask.t()
    return mask.reshape(*mask.shape, *(1,) * (data.dim() - 2)).expand(data.shape)


def _out(pair: Pair) -> MaskedTensor:
    if torch.compiler.is_exporting():
        raise errors.exporting()
    if transforming() and pair.data.requires_grad:
        raise errors.inside_transform()
    made: MaskedTensor = leave(pair)
    return made


def _cut(pair: Pair) -> Pair:
    """A fresh pair with 0 under the mask."""
    if layouts.is_sparse(pair.data):
        return Pair(layouts.zeroed(pair.data, pair.mask), pair.mask, Payload.ZERO)
    return Pair(select(pair.data, pair.mask, 0), pair.mask, Payload.ZERO)


def _without(pair: Pair, hole: Callable[[Tensor], Tensor]) -> MaskedTensor:
    """``pair`` with more holes where its values are such."""
    if layouts.is_sparse(pair.data):
        valid = layouts.values(pair.mask) & ~hole(layouts.values(pair.data.detach()))
        return _out(_cut(Pair(pair.data, layouts.with_values(pair.mask, valid))))
    return _masked(pair, ~hole(pair.data))


def _masked(pair: Pair, mask: Tensor) -> MaskedTensor:
    """``pair`` with more holes; fresh memory, the same graph."""
    return _out(_cut(Pair(pair.data, masks.both(pair.mask, masks.fit(mask, pair.data.shape)))))


for _function in (masked_tensor, as_masked_tensor, masked_invalid, masked_equal, masked_where, from_lengths):
    torch.compiler.allow_in_graph(_function)
