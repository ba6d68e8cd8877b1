"""The record every rule works on: data, mask, and what is known about the masked-out data.

A *pair* is the inside of a masked tensor.  Rules take pairs and plain values and return pairs; they never see
``MaskedTensor``.  The masked-out data (``payload``) is what lies in ``data`` where ``mask`` is False: anything at all,
NaN, inf and out-of-range indices included.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final, overload

import torch
from torch import Tensor

from . import masks


class Payload(enum.Enum):
    """A record of whether the masked-out data of a pair are known to be 0, without reading them.

    Example:
        >>> from masked_tensor.extend import Pair
        >>> Pair(torch.ones(2), torch.tensor([True, False])).payload
        <Payload.ANY: 'any'>
    """

    ZERO = "zero"  #: exactly 0
    ANY = "any"  #: nothing is known


@final
@dataclass(slots=True, eq=False)  # frozen would cost 0.2 us per op
class Pair:
    """Plain data and its mask, as rules receive and return them.

    A rule must not write into either. Gradients follow one contract: a rule can rely on the gradient that arrives at a
    returned ``data`` being 0 where the returned ``mask`` is False, and must itself return, for the ``data`` of an
    argument, a gradient that is 0 where the argument's ``mask`` is False.

    Args:
        data (Tensor): Plain, of any shape, dtype and layout. Where ``mask`` is False it may be anything, including NaN.
        mask (Tensor): True = valid; bool, of ``data``'s shape. A dimension along which it is constant may have stride
            0.
        payload (Payload, optional): ``Payload.ZERO`` promises that ``data`` is 0 where ``mask`` is False.

    Example:
        >>> from masked_tensor.extend import Pair
        >>> x = Pair(torch.tensor([1.0, float("nan")]), torch.tensor([True, False]))
        >>> Pair(2 * x.data, x.mask)
        Pair(data=tensor([2., nan]), mask=tensor([ True, False]), payload=<Payload.ANY: 'any'>)
    """

    data: Tensor
    mask: Tensor
    payload: Payload = Payload.ANY


def plain_pair(data: Tensor) -> Pair:
    """The pair of a plain tensor: valid everywhere (one True, expanded), hence nothing under the mask."""
    if type(data) is Tensor:
        everywhere = masks.full(data.shape, data.device)
    else:  # of its own kind: on a mesh a mask lies there too
        everywhere = data.new_ones((), dtype=torch.bool).expand(data.shape)
    return Pair(data, everywhere, Payload.ZERO)


def as_pair(value: Pair | Tensor) -> Pair:
    """``value`` itself if it is a pair, else the pair of a plain tensor."""
    return value if type(value) is Pair else plain_pair(value)


@overload
def moved(value: Pair, op: Callable[..., Tensor], *args: Any) -> Pair: ...
@overload
def moved(value: Any, op: Callable[..., Tensor], *args: Any) -> Any: ...
def moved(value: Any, op: Callable[..., Tensor], *args: Any) -> Any:
    """Data and mask moved alike, by an op that only rearranges, repeats or leaves out entries; a plain tensor alone."""
    if type(value) is not Pair:
        return op(value, *args)
    return Pair(op(value.data, *args), op(value.mask, *args), value.payload)


def data_of(value: Pair | Tensor) -> Tensor:
    """The plain data of a pair or a plain tensor; no mask is made for the latter."""
    return value.data if type(value) is Pair else value
