"""nn's fused inference paths on packed rows: projections, norms and feed-forward on the stored values."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from ..op import NoRule
from ..pair import Pair
from .attention import scaled_dot_product_attention
from .dim_order import identity_order
from .packed import Packed, pack_values

HEADS = ((0,), (2,), (1,), (3,))  #: (B, H, T, D)


def multi_head_attention(
    query: Packed, key: Packed, value: Packed, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Packed, None]:  # fmt: skip
    """_native_multi_head_attention without the weights, which are no rows of the batch."""
    if need_weights or any(x.order != identity_order(3) for x in (query, key, value)):
        raise NoRule
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (_split_heads(x, F.linear(x.values, weight, bias), num_head) for x, weight, bias in parts)
    mixed = scaled_dot_product_attention(q, k, v, attention_mask(mask, mask_type))
    if mixed.inner is not None:
        raise NoRule
    return pack_values(F.linear(mixed.values.reshape(-1, embed_dim), proj_weight, proj_bias), query), None


def _split_heads(x: Packed, values: Tensor, heads: int) -> Packed:
    size = values.shape[1] // heads
    if 1 in (heads, size):
        raise NoRule  # dimensions of size 1 are no features
    return Packed(values.unflatten(1, (heads, size)), x.grid, HEADS)


def encoder_layer(
    src: Packed, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor,
    proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor,
    norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor,
    ffn_bias_2: Tensor, mask: Tensor | None = None, mask_type: int | None = None,
) -> Packed:  # fmt: skip
    """_transformer_encoder_layer_fwd."""
    norms = [(norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)]
    first, second = (partial(F.layer_norm, normalized_shape=(embed_dim,), weight=w, bias=b, eps=eps) for w, b in norms)

    def attend(v: Tensor) -> Tensor:
        x = pack_values(v, src)
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *projections, mask, False, True, mask_type)[0].values

    def feed(v: Tensor) -> Tensor:
        hidden = F.linear(v, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else torch.relu(hidden), ffn_weight_2, ffn_bias_2)

    if src.order != identity_order(3):
        raise NoRule
    v = src.values
    if norm_first:
        v = v + attend(first(v))
        return pack_values(v + feed(second(v)), src)
    v = first(v + attend(v))
    return pack_values(second(v + feed(v)), src)


def attention_mask(mask: Pair | Tensor | None, mask_type: int | None) -> Tensor | None:
    """The fused ops' mask (not 0 = hidden; 0: (L, S), 1: (B, S), 2: (B, H, L, S)) as attention's bool mask.

    What is masked hides.
    """
    if mask is None:
        return None
    hidden = (mask.data != 0) | ~mask.mask if type(mask) is Pair else mask != 0
    return ~(hidden[:, None, None, :] if mask_type == 1 else hidden)
