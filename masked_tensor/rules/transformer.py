"""nn's fused inference paths mean what their parts mean: projections, attention, norms, feed-forward."""

from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..op import Op
from ..packing import transformer as packed
from ..packing.rules import packed_rule
from ..pair import Pair
from ..select import select
from .attention import attention_math, scaled_dot_product_attention
from .matmul import linear
from .normalize import layer_norm

Operand = Pair | Tensor


def multi_head_attention(
    query: Operand, key: Operand, value: Operand, embed_dim: int, num_head: int, qkv_weight: Operand, qkv_bias: Operand,
    proj_weight: Operand, proj_bias: Operand, mask: Operand | None = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Pair, Pair | None]:  # fmt: skip
    """_native_multi_head_attention: the output and the weights, which are None unless asked for."""
    parts = zip((query, key, value), _thirds(qkv_weight), _thirds(qkv_bias), strict=True)
    q, k, v = (_split(linear(x, weight, bias), num_head) for x, weight, bias in parts)
    seen = packed.attention_mask(mask, mask_type)
    weights = None
    if need_weights:
        mixed, weights = attention_math(q, k, v, seen)
        weights = _mean_over_heads(weights) if average_attn_weights else weights
    else:
        mixed = scaled_dot_product_attention(q, k, v, seen)
    merged = Pair(_merge(mixed.data), _merge(mixed.mask), mixed.payload)
    return linear(merged, proj_weight, proj_bias), weights


def _thirds(x: Operand) -> list[Operand]:
    """The parameters of queries, keys and values."""
    if type(x) is not Pair:
        return list(x.chunk(3))
    return [Pair(data, mask, x.payload) for data, mask in zip(x.data.chunk(3), x.mask.chunk(3), strict=True)]


def _split(x: Pair, heads: int) -> Pair:
    """``(B, T, C)`` as ``(B, H, T, C / H)``."""
    data, mask = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (x.data, x.mask))
    return Pair(data, mask, x.payload)


def _merge(x: Tensor) -> Tensor:
    """``(B, H, T, D)`` as ``(B, T, H * D)``; a mask that is constant over both stays so."""
    x = x.transpose(1, 2)
    if x.dtype is torch.bool and masks.is_constant(x, -1) and masks.is_constant(x, -2):
        return x[:, :, 0, :1].expand(*x.shape[:2], x.shape[2] * x.shape[3])
    return x.flatten(2)


def _mean_over_heads(weights: Pair) -> Pair:
    count = masks.count(weights.mask, 1)
    total = select(weights.data, weights.mask, 0).sum(1)
    return Pair(total / count.clamp_min(1), count > 0)


def encoder_layer(
    src: Operand, embed_dim: int, num_heads: int, qkv_weight: Operand, qkv_bias: Operand, proj_weight: Operand,
    proj_bias: Operand, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Operand, norm_bias_1: Operand,
    norm_weight_2: Operand, norm_bias_2: Operand, ffn_weight_1: Operand, ffn_bias_1: Operand, ffn_weight_2: Operand,
    ffn_bias_2: Operand, mask: Operand | None = None, mask_type: int | None = None,
) -> Pair:  # fmt: skip
    """_transformer_encoder_layer_fwd."""
    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)

    def norm(x: Operand, parameters: tuple[Operand, Operand]) -> Pair:
        return layer_norm(x, [embed_dim], *parameters, eps)

    def attend(x: Operand) -> Pair:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *projections, mask, False, True, mask_type)[0]

    def feed(x: Pair) -> Pair:
        hidden = linear(x, ffn_weight_1, ffn_bias_1)
        active = torch.nn.functional.gelu(hidden.data) if use_gelu else torch.relu(hidden.data)
        return linear(Pair(active, hidden.mask), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = _add(src, attend(norm(src, first)))
        return _add(x, feed(norm(x, second)))
    x = norm(_add(src, attend(src)), first)
    return norm(_add(x, feed(x)), second)


def _add(x: Operand, y: Operand) -> Pair:
    x, y = pair.as_pair(x), pair.as_pair(y)
    return Pair(x.data + y.data, masks.logical_and(x.mask, y.mask))


def left_aligned(t: Any, mask: Any) -> bool:
    """_nested_tensor_from_mask_left_aligned: whether nn may pack the batch into a nested tensor; a masked one stays."""
    return False


_ATTENTION = packed_rule(packed.multi_head_attention, whole=("query", "key", "value"))

OPS = [
    Op("_native_multi_head_attention", multi_head_attention, packed=_ATTENTION),
    Op("_transformer_encoder_layer_fwd", encoder_layer, packed=packed_rule(packed.encoder_layer, whole=("src",))),
    Op("_nested_tensor_from_mask_left_aligned", left_aligned),
]
