"""torch's multi-head attention over flat tokens, as ``nn.MultiheadAttention`` and encoder layers call it.

While a torch function mode looks at a call it does not see what the call calls: torch's own would attend by itself.
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

MULTI_HEAD = F.multi_head_attention_forward


def attend_by_heads(
    mode: Any, query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Any]:  # fmt: skip
    """What torch's function gives for ``(N, 1, E)``; nobody gets weights ``(N, N)``, which would be mostly zeros."""
    joined = add_zero_attn or not (bias_k is bias_v is static_k is static_v is None)
    if joined or not mode.holds(*[x.transpose(0, -2) for x in (query, key, value)]):  # torch's own, as it is
        return MULTI_HEAD(
            query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
            add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training, key_padding_mask, False, attn_mask,
            use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v,
            average_attn_weights, is_causal,
        )  # fmt: skip
    if is_causal and key_padding_mask is None:
        attn_mask = None  # as in torch: that it is causal says it all
    mask = attn_mask if key_padding_mask is None else key_padding_mask
    q, k, v = [
        x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)
        for x in _projected(
            (query, key, value), in_proj_weight, in_proj_bias,
            (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None,
        )
    ]  # fmt: skip
    out = mode.attend(q, k, v, mask, dropout_p if training else 0.0, is_causal and mask is None)
    out = F.linear(out.transpose(-3, -2).flatten(-2), out_proj_weight, out_proj_bias)
    return out.transpose(0, -2), None


def _projected(given: tuple[Tensor, ...], weight: Tensor, bias: Tensor | None, separate: Any) -> Any:
    """Queries, keys and values ``(1, N, E)`` or ``(N, E)``: by one product where they are the same."""
    query, key, value = given
    if separate is None and key is query and value is query:
        return F.linear(query.transpose(0, -2), weight, bias).chunk(3, -1)
    weights = weight.chunk(3) if separate is None else separate
    biases: Any = (None,) * 3 if bias is None else bias.chunk(3)
    return [F.linear(x.transpose(0, -2), w, b) for x, w, b in zip(given, weights, biases, strict=True)]
