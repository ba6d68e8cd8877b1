"""``F.multi_head_attention_forward`` on masked tensors, which ``nn.MultiheadAttention`` calls, as one op.

Where somebody asks for the weights, looks in between (a mode, a transform, a tracer) or gives masks of their own,
torch's own function runs, part by part.  It tells torch function modes of the call, which then comes back.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import has_torch_function

from .. import masks
from ..engine.boundary.enter_leave import enter, leave
from ..engine.boundary.packed import enter_packed
from ..engine.tensor import MaskedTensor
from ..op import NoRule
from ..patches.places import ATTENTION_FORWARD, rebind, wrap_when_imported
from ..rules.multi_head import Layer, attend_packed, attend_strided
from ..settings import DEFAULT, current

_PLAIN = Tensor, nn.Parameter, type(None)


def _run(function: Callable[..., Any]) -> Callable[..., Any]:
    def attend(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        if (type(query) is MaskedTensor or type(key) is MaskedTensor) and not torch.compiler.is_compiling():
            layer = _layer(query, *args, **kwargs)
            if layer is not None:
                try:
                    return _at_once(query, key, value, layer), None
                except NoRule:
                    pass
        return function(query, key, value, *args, **kwargs)

    told: Any = attend
    told.__script_if_tracing_wrapper, told.__original_fn = True, function  # TorchScript compiles torch's own
    return attend


def _layer(
    query: Tensor, width: int, heads: int, weight: Any, bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_weight: Any, out_bias: Any, training: bool = True, key_padding_mask: Any = None,
    need_weights: bool = True, attn_mask: Any = None, use_separate_proj_weight: bool = False, q_proj_weight: Any = None,
    k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False, **unknown: Any,
) -> Layer | None:  # fmt: skip
    """The layer, of what torch's function is called with; None where only that can say what is meant."""
    given = (bias_k, bias_v, key_padding_mask, static_k, static_v)
    if need_weights or add_zero_attn or unknown or any(x is not None for x in given):
        return None
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else (weight,)
    if any(w is None for w in weights) or query.shape[-1] != width or width % heads:
        return None  # torch says what is wrong
    if is_causal is (attn_mask is None) or not all(type(w) in _PLAIN for w in (*weights, bias, out_weight, out_bias)):
        return None
    if (
        not masks.is_quiet()
        or current() is not DEFAULT
        or type(attn_mask) not in _PLAIN
        or has_torch_function((query,))
    ):
        return None
    return Layer(heads, weights, bias, out_weight, out_bias, dropout_p if training else 0.0, is_causal)


def _at_once(query: Any, key: Any, value: Any, layer: Layer) -> MaskedTensor:
    """The output; raises NoRule where only the parts can say it."""
    given = query, key, value
    for x in given:
        if x.dim() != 3 or 0 in x.shape or x.shape[1] != query.shape[1] or x.shape[2] != query.shape[2]:
            raise NoRule
    if key.shape != value.shape or (layer.causal and query is not key):
        raise NoRule
    packed = [type(x) is MaskedTensor and x._packed is not None for x in given]
    if any(packed) and not all(packed):
        raise NoRule
    recording = torch.is_grad_enabled()
    entered: dict[int, Any] = {}
    for x in given:
        if id(x) not in entered:
            entered[id(x)] = _enter(x, recording, packed[0])
    run: Callable[..., Any] = attend_packed if packed[0] else attend_strided
    result: MaskedTensor = leave(run(*(entered[id(x)] for x in given), layer))
    return result


def _enter(x: Any, recording: bool, packed: bool) -> Any:
    if type(x) is not MaskedTensor:
        if type(x) not in _PLAIN:
            raise NoRule
        return x
    if packed:
        if x._packed is None or type(x._packed.values) is not Tensor:
            raise NoRule
        return enter_packed(x, recording)
    if type(x._pair.data) is not Tensor or x._pair.data.layout is not torch.strided:
        raise NoRule
    return enter(x, recording)


wrap_when_imported(ATTENTION_FORWARD, _run)
rebind(ATTENTION_FORWARD)
