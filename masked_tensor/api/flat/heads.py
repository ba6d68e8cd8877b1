"""Torch's own attention and encoder layers within a flat module, without their shortcuts.

In eager code a torch function mode sees what they call.  Dynamo looks into them, and there they would compute weights,
or call ops for a whole layer, over the tokens of all sequences.
"""

from functools import cache, wraps
from typing import Any

from torch import Tensor, nn

from .attention import mode_in_force
from .classes import heir, put, take_back
from .multi_head import attend_by_heads

FAST = "activation_relu_or_gelu"  #: what the op for a whole encoder layer knows; 0 for none of the two


def prepare(module: nn.Module) -> None:
    """While the module is flat, torch's own layers in it take no shortcut."""
    for part in module.modules():
        if isinstance(part, nn.TransformerEncoderLayer):
            put(part, _slow_layer)
        elif isinstance(part, nn.MultiheadAttention) and type(part).forward is nn.MultiheadAttention.forward:
            put(part, _heads_of_tokens)


def restore(module: nn.Module) -> None:
    """What :func:`prepare` changed is as it was."""
    for part in module.modules():
        if isinstance(part, (nn.TransformerEncoderLayer, nn.MultiheadAttention)):
            take_back(part)


@cache
def _slow_layer(kind: Any) -> Any:
    def get(self: Any) -> Any:
        return self.__dict__[FAST] if mode_in_force() is None else 0

    def put_in(self: Any, value: Any) -> None:
        self.__dict__[FAST] = value

    return heir(kind, _slow_layer, **{FAST: property(get, put_in)})


@cache
def _heads_of_tokens(kind: Any) -> Any:
    @wraps(kind.forward)
    def forward(
        self: Any, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:  # fmt: skip
        mode = mode_in_force()
        if mode is None:
            return kind.forward(
                self, query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
        turned = self.batch_first and query.dim() == 3
        q, k, v = [x.transpose(0, 1) if turned else x for x in (query, key, value)]
        if key is query and value is query:
            k = v = q
        out, _ = mode.aside(
            attend_by_heads, mode, q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            self.training, key_padding_mask, False, attn_mask, self.in_proj_weight is None, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(0, 1) if turned else out), None

    return heir(kind, _heads_of_tokens, forward=forward)
