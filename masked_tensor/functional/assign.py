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


def masked_fill(input: Tensor, mask: Tensor, value: float | bool | complex | Tensor) -> Tensor:
    """``value`` where ``mask`` is True, ``input`` elsewhere: ``out[i] = value if mask[i] else input[i]``.

    Args:
        input: any shape; floating, integer, bool or complex.
        mask: bool; broadcast against ``input``.
        value: a number, or a 0-d tensor, whose gradient is the sum over the filled positions.

    Of a MaskedTensor padding stays padding, whatever is written; a masked entry of ``mask``, or a masked ``value``,
    gives a masked result.  To make positions valid, assign: ``x[mask] = value``.

    Raises:
        TypeError: ``input`` is no tensor, ``mask`` is no bool tensor, ``value`` is neither a number nor a tensor.
        RuntimeError: the shapes do not broadcast, ``value`` has dimensions, or does not fit ``input``'s dtype.

    Source: the design of ``paddle.masked_fill``; ``torch.Tensor.masked_fill``.

    Example::

        >>> import torch, masked_tensor as mt
        >>> mt.masked_fill(torch.ones(2, 3), torch.tensor([True, False, True]), 7.0)
        tensor([[7., 1., 7.],
                [7., 1., 7.]])
    """
    mask = _check_mask("masked_fill", input, mask)
    _check_value(value)
    if any(type(x) is MaskedTensor for x in (input, mask, value)):
        return torch.masked_fill(input, mask, value)
    return with_value(input, mask, value)


def masked_fill_(input: Tensor, mask: Tensor, value: float | bool | complex | Tensor) -> Tensor:
    """:func:`masked_fill` into ``input`` itself; ``mask`` broadcasts to its shape.  Nothing is written on an error.

    Returns ``input``.  Errors as :func:`masked_fill`, and of torch for a leaf that requires grad.

    >>> x = torch.ones(3)
    >>> mt.masked_fill_(x, torch.tensor([True, False, True]), 7.0)
    tensor([7., 1., 7.])
    """
    mask = _check_mask("masked_fill_", input, mask)
    _check_value(value)
    return input.masked_fill_(mask, value)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``source``'s entries, in order, into the positions where ``mask`` is True: ``out[mask] = source.flatten()[:n]``.

    Args:
        input: any shape and dtype.
        mask: bool; broadcast against ``input``.
        source: of ``input``'s dtype, with at least as many elements as ``mask`` (broadcast) has True positions.

    Gradients go to both ``input`` and ``source``.  A masked ``source`` brings its validity; a masked entry of ``mask``
    is not True.

    Raises:
        TypeError: ``input`` or ``source`` is no tensor, ``mask`` is no bool tensor.
        RuntimeError: ``source`` has too few elements (both numbers are stated), or another dtype.

    Source: the design of ``paddle.masked_scatter``; ``torch.Tensor.masked_scatter``.

    Example::

        >>> import torch, masked_tensor as mt
        >>> where = torch.tensor([True, False, True, False])
        >>> mt.masked_scatter(torch.zeros(4), where, torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2., 0.])
    """
    mask = _check_mask("masked_scatter", input, mask)
    _check_source(source)
    if any(type(x) is MaskedTensor for x in (input, mask, source)):
        return torch.masked_scatter(input, mask, source)
    return scatter_in_order(input, mask, source)


def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """:func:`masked_scatter` into ``input`` itself; ``mask`` broadcasts to its shape.  An error writes nothing.

    Returns ``input``.  Errors as :func:`masked_scatter`, and of torch for a leaf that requires grad.

    >>> x = torch.zeros(3)
    >>> mt.masked_scatter_(x, torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
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


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The entries of ``input`` where ``mask`` is True, 1-D; the length depends on the data.

    Args:
        input, mask: broadcast against each other; ``mask`` is bool.  A masked entry of ``mask`` selects nothing; the
            result of a MaskedTensor keeps the validity of what was selected.

    Raises:
        TypeError: ``input`` is no tensor, ``mask`` is no bool tensor.

    Example::

        >>> import torch, masked_tensor as mt
        >>> mt.masked_select(torch.arange(4), torch.tensor([True, False, True, False]))
        tensor([0, 2])
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
        raise errors.no_sparse_functional_form(name, input)
    return mask if type(mask) is MaskedTensor else layouts.dense_mask(mask)


def _check_source(source: Any) -> None:
    if not isinstance(source, Tensor):
        raise TypeError(f"source must be a tensor, got {type(source).__name__}")


def _check_value(value: Any) -> None:
    if not isinstance(value, Tensor | bool | int | float | complex):
        raise TypeError(f"value must be a number or a 0-d tensor, got {type(value).__name__}")
