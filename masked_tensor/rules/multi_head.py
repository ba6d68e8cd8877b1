"""``F.multi_head_attention_forward`` as one op: what its parts give, of batches whose rows are valid or padding.

Between its projections nobody sees a result, so nothing in between is zeroed or made a masked tensor: a masked key has
weight exactly 0, the gradient of a masked query is exactly 0, and what is masked of the output is cleared at the end.
"""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from .. import masks
from ..op import NoRule
from ..packing.attention import scaled_dot_product_attention as packed_attention
from ..packing.packed import Packed, pack_values
from ..packing.transformer import HEADS
from ..pair import Pair
from ..select import zero_masked, zeroed_result
from .attention import shown_keys

Operand = Pair | Tensor
TIME_FIRST = ((1,), (0,), (2,))  #: (T, B, C)


class Layer(NamedTuple):
    """What a layer of attention is made of."""

    heads: int
    weights: tuple[Tensor, ...]  #: of all three projections in one, or of queries, keys and values
    bias: Tensor | None
    out_weight: Tensor
    out_bias: Tensor | None
    dropout: float
    causal: bool


def attend_strided(query: Operand, key: Operand, value: Operand, layer: Layer) -> Pair:
    """From ``(T, B, C)``, ``(S, B, C)`` and ``(S, B, C)``, whose masks are constant along C, to ``(T, B, C)``.

    Raises NoRule where keys and values are not masked alike.
    """
    rows, keys = _rows_of(query), _rows_of(key)
    if value is not key and not _masked_alike(key, value):
        raise NoRule
    data: dict[int, Tensor] = {}
    for x in (query, key, value):
        if id(x) not in data:
            data[id(x)] = zero_masked(x, owned=True) if type(x) is Pair else x
    projected = _project(data[id(query)], data[id(key)], data[id(value)], layer)
    q, k, v = (x.permute(1, 2, 0, 3) for x in projected)
    shown, causal = None, layer.causal
    if keys is not None:
        shown = shown_keys(keys, q.shape[-2], causal, q.dtype)
        causal = causal and shown is None
    mixed = F.scaled_dot_product_attention(q, k, v, shown, layer.dropout, causal)
    out = F.linear(mixed.permute(2, 0, 1, 3).flatten(2), layer.out_weight, layer.out_bias)
    return zeroed_result(out, _valid(query, key, rows, keys, out))


def attend_packed(query: Packed, key: Packed, value: Packed, layer: Layer) -> Packed:
    """The same of stored tokens, seen as ``(T, B, C)``; raises NoRule where only the parts can say it."""
    for x in (query, key, value):
        if x.order != TIME_FIRST or x.inner is not None or x.values.dim() != 2:
            raise NoRule
    if 1 in (layer.heads, query.values.shape[1] // layer.heads):
        raise NoRule  # dimensions of size 1 are no features
    projected = _project(query.values, key.values, value.values, layer)
    q, k, v = (Packed(p, x.grid, HEADS) for p, x in zip(projected, (query, key, value), strict=True))
    mixed = packed_attention(q, k, v, None, layer.dropout, layer.causal)
    if mixed.inner is not None:
        raise NoRule
    return pack_values(F.linear(mixed.values.flatten(1), layer.out_weight, layer.out_bias), query)


def _project(query: Tensor, key: Tensor, value: Tensor, layer: Layer) -> tuple[Tensor, ...]:
    """Each as ``(.., H, D)``; what is one tensor is projected at once, as torch does."""
    width = query.shape[-1]
    if len(layer.weights) == 1 and key is value:
        (weight,), bias = layer.weights, layer.bias
        if query is key:
            return _split(F.linear(query, weight, bias), 3, layer.heads)
        sizes = [width, 2 * width]
        first, rest = weight.split(sizes)
        biases = (None, None) if bias is None else bias.split(sizes)
        return *_split(F.linear(query, first, biases[0]), 1, layer.heads), *_split(
            F.linear(key, rest, biases[1]), 2, layer.heads
        )
    weights = layer.weights[0].chunk(3) if len(layer.weights) == 1 else layer.weights
    biases = (None, None, None) if layer.bias is None else layer.bias.chunk(3)
    given = zip((query, key, value), weights, biases, strict=True)
    return tuple(_split(F.linear(x, w, b), 1, layer.heads)[0] for x, w, b in given)


def _split(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """``(.., parts * H * D)`` as so many ``(.., H, D)``: one unbind, whose backward makes one gradient."""
    size = x.shape[-1] // (parts * heads)
    return x.view(*x.shape[:-1], parts, heads, size).unbind(-3)


def _masked_alike(key: Operand, value: Operand) -> bool:
    if type(key) is not Pair or type(value) is not Pair:
        return type(key) is not Pair and type(value) is not Pair
    return masks.same_memory(key.mask, value.mask)


def _rows_of(x: Operand) -> Tensor | None:
    """The mask of ``(T, B, C)``, which must not vary along C; None if all is valid."""
    if type(x) is not Pair:
        return None
    if not masks.is_constant(x.mask, -1):
        raise NoRule
    return x.mask


def _valid(query: Operand, key: Operand, rows: Tensor | None, keys: Tensor | None, out: Tensor) -> Tensor:
    """The mask of the output: the valid queries that see a key.  In self-attention each of them sees itself."""
    if query is key and rows is not None:
        return rows if rows.shape == out.shape else rows.narrow(-1, 0, 1)
    valid = masks.full((1, 1, 1), out.device) if rows is None else rows.narrow(-1, 0, 1)
    if keys is None:
        return valid
    some = masks.derive(keys, "some", lambda: masks.any(keys.narrow(-1, 0, 1), 0, True))
    return masks.logical_and(valid, some)
