"""nn's fused inference paths follow the rules of their parts: projections, attention, norms, feed-forward.

Both paths are written once.  A batch is a pair, or the plain tensor of its stored tokens: then only attention needs to
know which sequence a token belongs to, and ``attend`` is packed attention.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import masks, pair
from ..op import Op
from ..packing import transformer as packed
from ..packing.kinds import packed_rule
from ..packing.packed import Packed, pack_values
from ..pair import Pair
from ..select import select
from .attention import attention_math, scaled_dot_product_attention
from .matmul import linear
from .normalize import layer_norm

Operand = Pair | Tensor
Attend = Callable[
    ..., Any
]  #: (projected, heads, seen, need_weights): what is projected, ``(.., C)``, mixed, and weights


def multi_head_attention(
    query: Operand, key: Operand, value: Operand, embed_dim: int, num_head: int, qkv_weight: Operand, qkv_bias: Operand,
    proj_weight: Operand, proj_bias: Operand, mask: Operand | None = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None, *, attend: Attend | None = None,
) -> tuple[Any, Pair | None]:  # fmt: skip
    """_native_multi_head_attention: the output and the weights, which are None unless requested."""
    parts = zip((query, key, value), _thirds(qkv_weight), _thirds(qkv_bias), strict=True)
    projected = [_linear(*part) for part in parts]
    mixed, weights = (attend or _attend)(projected, num_head, _visible(mask, mask_type), need_weights)
    if weights is not None and average_attn_weights:
        weights = _mean_over_heads(weights)
    return _linear(mixed, proj_weight, proj_bias), weights


def _packed_attention(query: Packed, key: Packed, value: Packed, *arguments: Any) -> tuple[Packed, None]:
    """As above, of the stored tokens, without the weights."""
    q, k, v = packed.stored_tokens(query, key, value)
    attend = partial(packed.attend, (query, key, value))
    return pack_values(multi_head_attention(q, k, v, *arguments, attend=attend)[0], query), None


def _attend(projected: list[Operand], heads: int, seen: Tensor | None, need_weights: bool) -> tuple[Pair, Pair | None]:
    q, k, v = (_split(x, heads) for x in projected)
    if need_weights:
        mixed, weights = attention_math(q, k, v, seen)
        return _merge(mixed), weights
    return _merge(scaled_dot_product_attention(q, k, v, seen)), None


def _visible(mask: Operand | None, mask_type: int | None) -> Tensor | None:
    """The fused ops' mask (not 0 = hidden; 0: (L, S), 1: (B, S), 2: (B, H, L, S)) as attention's bool mask.

    What is masked hides.
    """
    if mask is None:
        return None
    hidden = (mask.data != 0) | ~mask.mask if type(mask) is Pair else mask != 0
    return ~(hidden[:, None, None, :] if mask_type == 1 else hidden)


def _thirds(x: Operand) -> list[Operand]:
    """The parameters of queries, keys and values."""
    if type(x) is not Pair:
        return list(x.chunk(3))
    return [Pair(data, mask, x.payload) for data, mask in zip(x.data.chunk(3), x.mask.chunk(3), strict=True)]


def _split(x: Operand, heads: int) -> Pair:
    """``(B, T, C)`` as ``(B, H, T, C / H)``."""
    return pair.moved(pair.as_pair(x), lambda part: part.unflatten(-1, (heads, -1)).transpose(1, 2))


def _merge(x: Pair) -> Pair:
    """``(B, H, T, D)`` as ``(B, T, H * D)``; a mask that is constant over both stays so."""
    data, mask = x.data.transpose(1, 2).flatten(2), x.mask.transpose(1, 2)
    if masks.is_constant(mask, -1) and masks.is_constant(mask, -2):
        return Pair(data, mask[:, :, 0, :1].expand(data.shape), x.payload)
    return Pair(data, mask.flatten(2), x.payload)


def _mean_over_heads(weights: Pair) -> Pair:
    count = masks.count(weights.mask, 1)
    total = select(weights.data, weights.mask, 0).sum(1)
    return Pair(total / count.clamp_min(1), count > 0)


def encoder_layer(
    src: Operand, embed_dim: int, num_heads: int, qkv_weight: Operand, qkv_bias: Operand, proj_weight: Operand,
    proj_bias: Operand, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Operand, norm_bias_1: Operand,
    norm_weight_2: Operand, norm_bias_2: Operand, ffn_weight_1: Operand, ffn_bias_1: Operand, ffn_weight_2: Operand,
    ffn_bias_2: Operand, mask: Operand | None = None, mask_type: int | None = None, *, attend: Attend | None = None,
) -> Any:  # fmt: skip
    """_transformer_encoder_layer_fwd."""
    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)

    def norm(x: Any, parameters: tuple[Any, Any]) -> Any:
        run = layer_norm if _any_pair(x, *parameters) else F.layer_norm
        return run(x, [embed_dim], *parameters, eps)

    def mix(x: Any) -> Any:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        rest = (*projections, mask, False, True, mask_type)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *rest, attend=attend)[0]

    def feed(x: Any) -> Any:
        hidden = _linear(x, ffn_weight_1, ffn_bias_1)
        active = F.gelu(pair.data_of(hidden)) if use_gelu else torch.relu(pair.data_of(hidden))
        return _linear(Pair(active, hidden.mask) if type(hidden) is Pair else active, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = _add(src, mix(norm(src, first)))
        return _add(x, feed(norm(x, second)))
    x = norm(_add(src, mix(src)), first)
    return norm(_add(x, feed(x)), second)


def _packed_layer(src: Packed, *arguments: Any) -> Packed:
    """As above, of the stored tokens."""
    (tokens,) = packed.stored_tokens(src)
    return pack_values(encoder_layer(tokens, *arguments, attend=partial(packed.attend, (src, src, src))), src)


def _any_pair(*operands: Any) -> bool:
    return any(type(x) is Pair for x in operands)


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    return linear(x, weight, bias) if _any_pair(x, weight, bias) else F.linear(x, weight, bias)


def _add(x: Any, y: Any) -> Any:
    if not _any_pair(x, y):
        return x + y
    x, y = pair.as_pair(x), pair.as_pair(y)
    return Pair(x.data + y.data, masks.logical_and(x.mask, y.mask))


def left_aligned(t: Any, mask: Any) -> bool:
    """_nested_tensor_from_mask_left_aligned: whether nn may pack the batch into a nested tensor: False."""
    return False


OPS = [
    Op(
        "_native_multi_head_attention",
        multi_head_attention,
        packed=packed_rule(_packed_attention, whole=("query", "key", "value"), within="query", mixes=True),
    ),
    Op(
        "_transformer_encoder_layer_fwd",
        encoder_layer,
        packed=packed_rule(_packed_layer, whole=("src",), within="src", mixes=True),
    ),
    Op("_nested_tensor_from_mask_left_aligned", left_aligned),
]
