"""``masked_fill``, ``masked_scatter`` and ``masked_select`` for plain tensors and MaskedTensors.

Here ``mask`` says where to write or read: True = chosen.  (Elsewhere True = valid.)  The validity of a MaskedTensor is
its own.
"""

from typing import Any

import torch
from torch import Tensor

from .. import errors, layouts
from ..engine.tensor import MaskedTensor
from ..rules.assign import scatter_in_order
from ..rules.choose import with_value
from .registry import form


@form
def masked_fill(input: Tensor, mask: Tensor, value: float | bool | complex | Tensor) -> Tensor:
    """A copy of ``input`` with ``value`` where ``mask`` is True: ``out[i] = value if mask[i] else input[i]``.

    Here ``mask`` selects where to write, not what is valid. Masked entries of a MaskedTensor stay masked; a masked
    entry of ``mask``, or a masked ``value``, makes the result masked there. To make entries valid, assign: ``x[mask] =
    value``.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcast against ``input``; plain or a MaskedTensor.
        value (number or Tensor): One number, or a 0-d tensor that ``input``'s dtype can hold, whose gradient is the sum
            over the filled entries.

    Returns:
        Tensor: The broadcast shape of ``input`` and ``mask``, in ``input``'s dtype. A MaskedTensor if an operand is
        one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a bool tensor.
        TypeError: ``value`` is neither a number nor a tensor.
        RuntimeError: The shapes do not broadcast.
        RuntimeError: ``value`` is not 0-d, or does not fit ``input``'s dtype.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> mt.masked_fill(torch.ones(2, 3), torch.tensor([True, False, True]), 7.0)
        tensor([[7., 1., 7.],
                [7., 1., 7.]])

    See also:
        :func:`filled`, :func:`masked_fill_`, :func:`masked_scatter`, :func:`masked_where`.

    References:
        ``torch.Tensor.masked_fill``; the design of ``paddle.masked_fill``.
    """
    mask = _check_mask("masked_fill", input, mask)
    _check_value(value)
    if any(type(x) is MaskedTensor for x in (input, mask, value)):
        return torch.masked_fill(input, mask, value)
    return with_value(input, mask, value)


@form
def masked_fill_(input: Tensor, mask: Tensor, value: float | bool | complex | Tensor) -> Tensor:
    """``input`` itself, with ``value`` written where ``mask`` is True.

    Here ``mask`` selects where to write, not what is valid. Validity is as for :func:`masked_fill`. After an error,
    ``input`` is unchanged.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcastable to ``input``; plain, or a MaskedTensor if ``input`` is
            one.
        value (number or Tensor): One number, or a 0-d tensor that ``input``'s dtype can hold.

    Returns:
        Tensor: ``input`` itself, of its shape and dtype.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a bool tensor.
        TypeError: ``value`` is neither a number nor a tensor.
        RuntimeError: ``mask`` does not broadcast to ``input``.
        RuntimeError: ``value`` is not 0-d, or does not fit ``input``'s dtype.
        RuntimeError: ``input`` is a leaf that requires grad.
        MaskedWriteError: ``input`` is plain and ``mask`` is masked.
        MaskedValueError: ``input`` is plain and ``value`` is masked.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> x = torch.ones(3)
        >>> mt.masked_fill_(x, torch.tensor([True, False, True]), 7.0)
        tensor([7., 1., 7.])

    See also:
        :func:`masked_fill`.

    References:
        ``torch.Tensor.masked_fill_``; the design of ``paddle.masked_fill_``.
    """
    mask = _check_mask("masked_fill_", input, mask)
    if type(mask) is MaskedTensor and type(input) is not MaskedTensor:
        raise errors.plain_target("masked_fill_")
    _check_value(value)
    return input.masked_fill_(mask, value)


@form
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy of ``input`` with entries of ``source`` where ``mask`` is True: ``out[mask] = source.flatten()[:n]``.

    Here ``mask`` selects where to write, not what is valid. ``n`` is the number of True entries of ``mask``. An entry
    from a masked ``source`` is masked; a masked entry of ``mask`` counts as False. Gradients flow to ``input`` and
    ``source``.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcast against ``input``; plain or a MaskedTensor.
        source (Tensor): Any shape with at least ``n`` entries, in ``input``'s dtype; plain or a MaskedTensor.

    Returns:
        Tensor: The broadcast shape of ``input`` and ``mask``, in ``input``'s dtype. A MaskedTensor if an operand is
        one.

    Raises:
        TypeError: ``input`` or ``source`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: ``source`` has fewer entries than ``mask`` has True ones, or another dtype.
        RuntimeError: The shapes do not broadcast.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> where = torch.tensor([True, False, True, False])
        >>> mt.masked_scatter(torch.zeros(4), where, torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2., 0.])

    See also:
        :func:`masked_scatter_`, :func:`masked_fill`.

    References:
        ``torch.Tensor.masked_scatter``; the design of ``paddle.masked_scatter``.
    """
    mask = _check_mask("masked_scatter", input, mask)
    _check_source(source)
    if any(type(x) is MaskedTensor for x in (input, mask, source)):
        return torch.masked_scatter(input, mask, source)
    return scatter_in_order(input, mask, source)


@form
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` itself, with entries of ``source`` written where ``mask`` is True.

    Here ``mask`` selects where to write, not what is valid. Validity is as for :func:`masked_scatter`. After an error,
    ``input`` is unchanged.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcastable to ``input``; plain, or a MaskedTensor if ``input`` is
            one.
        source (Tensor): Any shape with an entry for each True one of ``mask``, in ``input``'s dtype; plain, or a
            MaskedTensor if ``input`` is one.

    Returns:
        Tensor: ``input`` itself, of its shape and dtype.

    Raises:
        TypeError: ``input`` or ``source`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: ``source`` has fewer entries than ``mask`` has True ones, or another dtype.
        RuntimeError: ``mask`` does not broadcast to ``input``.
        RuntimeError: ``input`` is a leaf that requires grad.
        MaskedWriteError: ``input`` is plain and another operand is masked.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> x = torch.zeros(3)
        >>> mt.masked_scatter_(x, torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2.])

    See also:
        :func:`masked_scatter`.

    References:
        ``torch.Tensor.masked_scatter_``; the design of ``paddle.masked_scatter_``.
    """
    _check_source(source)
    mask = _check_mask("masked_scatter_", input, mask)
    if any(type(x) is MaskedTensor for x in (input, mask, source)):
        return input.masked_scatter_(mask, source)
    result = scatter_in_order(
        input, mask, source
    )  # torch's own in-place form writes until the source is used up, then raises
    if result.shape != input.shape:
        shapes = f"mask of shape {tuple(mask.shape)} does not broadcast to input's shape {tuple(input.shape)}"
        raise RuntimeError(f"masked_scatter_: {shapes}")
    return input.copy_(result)


@form
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The entries of ``input`` where ``mask`` is True, in order.

    Here ``mask`` selects what to read, not what is valid; a masked entry of ``mask`` selects nothing. The length
    depends on the data.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = read here; bool, broadcast against ``input``; plain or a MaskedTensor.

    Returns:
        Tensor: A 1-D tensor in ``input``'s dtype. If ``input`` is a MaskedTensor, a MaskedTensor in which masked
        entries stay masked.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: The shapes do not broadcast.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> mt.masked_select(torch.arange(4), torch.tensor([True, False, True, False]))
        tensor([0, 2])

    See also:
        :func:`compressed`.

    References:
        ``torch.masked_select``.
    """
    mask = _check_mask("masked_select", input, mask)
    return torch.masked_select(input, mask)


def _check_mask(name: str, input: Any, mask: Any) -> Tensor:
    """``mask``, strided if it is plain; raises for what cannot be meant."""
    if not isinstance(input, Tensor):
        raise TypeError(f"input must be a tensor, got {type(input).__name__}")
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a bool tensor, got {type(mask).__name__}")
    if mask.dtype is not torch.bool:
        raise TypeError(f"mask must be a bool tensor, got {str(mask.dtype).removeprefix('torch.')}; use mask.bool()")
    if layouts.is_sparse(input) and type(input) is not MaskedTensor:
        raise errors.no_sparse_functional_rule(name, input)
    return mask if type(mask) is MaskedTensor else layouts.dense_mask(mask)


def _check_source(source: Any) -> None:
    if not isinstance(source, Tensor):
        raise TypeError(f"source must be a tensor, got {type(source).__name__}")


def _check_value(value: Any) -> None:
    if not isinstance(value, Tensor | bool | int | float | complex):
        raise TypeError(f"value must be a number or a 0-d tensor, got {type(value).__name__}")
