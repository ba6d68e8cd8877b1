"""Calls of rows with a form for packed tensors that the operator database does not make, or not of three dimensions.

Everything is deterministic, in float64, of shape ``(B, T, F)`` with the values between 0 and 1.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .database import Sample

aten = torch.ops.aten
B, T, C = 3, 4, 2


def unit(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.8 + 0.1


X, Y, W = unit(B, T, C), unit(B, T, C, seed=1), unit(3, C, seed=2)
ONE, TWO, FLAG = (X * 10).long(), (Y * 10).long() + 1, X > Y
CLASS = (unit(B, T, seed=3) * C).long()
QKV, OUT = (unit(12, 4), unit(12)), (unit(4, 4), unit(4))
Q, K, V = (unit(B, 2, T, 3, seed=s) for s in (4, 5, 6))


def net(kind: type[nn.Module], **options: Any) -> Callable[..., Any]:
    def run(x: Tensor) -> Any:
        torch.manual_seed(0)
        return kind(C, 3, batch_first=True, **options).double()(x)[0]

    return run


def attending(x: Tensor, hides: Tensor | None = None, kind: int | None = None) -> Any:
    """nn's fused attention, without the weights."""
    with torch.no_grad():
        return aten._native_multi_head_attention(x, x, x, 4, 2, *QKV, *OUT, hides, False, True, kind)[0]


def layer(x: Tensor, hides: Tensor | None = None, kind: int | None = None) -> Any:
    """nn's fused encoder layer."""
    norms, ahead = [unit(4)] * 4, (unit(5, 4), unit(5), unit(4, 5), unit(4))
    with torch.no_grad():
        return aten._transformer_encoder_layer_fwd(x, 4, 2, *QKV, *OUT, True, True, 1e-5, *norms, *ahead, hides, kind)


_BACKWARDS: dict[str, tuple[Any, ...]] = {
    "elu": (1.0, 1.0, 1.0, False),
    "gelu": (),
    "hardshrink": (0.5,),
    "hardsigmoid": (),
    "hardswish": (),
    "hardtanh": (-1.0, 0.5),
    "leaky_relu": (0.1, False),
    "logit": (),
    "mish": (),
    "sigmoid": (),
    "silu": (),
    "softplus": (1.0, 20.0),
    "softshrink": (0.5,),
    "tanh": (),
    "threshold": (0.5,),
}
CALLS: dict[str, list[Sample]] = {}


def _call(names: str, op: Any, *args: Any, **kwargs: Any) -> None:
    for name in names.split():
        CALLS.setdefault(name, []).append(Sample(getattr(torch, op) if isinstance(op, str) else op, args, kwargs))


for _name, _rest in _BACKWARDS.items():
    _op = getattr(aten, f"{_name}_backward")
    _args = (Y, *_rest, X) if _name == "elu" else (Y, X, *_rest)
    _call(f"{_name}_backward", _op, *_args)
for _name in ("__and__", "__or__", "__xor__", "__lshift__", "__rshift__"):
    _call(_name, getattr(Tensor, _name), ONE, TWO)
for _name in ("alias", "lift_fresh", "_conj_physical", "empty_like", "rand_like", "contiguous"):
    _call(_name, getattr(aten, _name), torch.complex(X, Y) if "conj" in _name else X)
for _name in ("argmax", "argmin", "sort", "cummax", "cummin", "logcumsumexp"):
    _call(_name, _name, X, -1)
_call("_softmax", aten._softmax, X, -1, False)
_call("_log_softmax", aten._log_softmax, X, -1, False)
_call("_safe_softmax", aten._safe_softmax, X, -1)
_call("where.Scalar", "where", FLAG, 1.0, 2.0)
_call("where.ScalarOther", "where", FLAG, X, 2.0)
_call("where.ScalarSelf", "where", FLAG, 2.0, X)
_call("is_same_size", aten.is_same_size, X, Y)
_call("copy", aten.copy, X, Y)
_call("linear", F.linear, X, W)
_call("mm", lambda x, w: x.flatten(0, 1).mm(w.t()), X, W)
_call("matmul", lambda x, w: x @ w.t(), X, W)
_call("addmm", lambda x, w: torch.addmm(w[:, 0], x.flatten(0, 1), w.t()), X, W)
_call("layer_norm", F.layer_norm, X, (C,))
_call("native_layer_norm", aten.native_layer_norm, X, (C,), None, None, 1e-5)
_call("rms_norm", F.rms_norm, X, (C,))
_call("_fused_rms_norm", aten._fused_rms_norm, X, (C,), None, None)
_call("batch_norm", F.batch_norm, X, unit(T), unit(T), training=True)
_call("batch_norm", lambda x: F.batch_norm(x.transpose(1, 2), unit(C), unit(C), training=True), X)
_call("native_batch_norm", lambda x: aten.native_batch_norm(x.mT, None, None, None, None, True, 0.1, 1e-5), X)
_call("conv1d", F.conv1d, X, unit(2, T, 1), None)
_call("conv1d", lambda x, w: F.conv1d(x.transpose(1, 2), w, padding=1), X, unit(3, C, 3))
_call("conv1d.padding", lambda x, w: F.conv1d(x.transpose(1, 2), w, padding="same"), X, unit(3, C, 3))
_call("scaled_dot_product_attention", F.scaled_dot_product_attention, Q, K, V)
_call("scaled_dot_product_attention", F.scaled_dot_product_attention, Q, K, V, is_causal=True)
_call("gather", "gather", X, -1, CLASS[..., None])
_call("embedding", lambda ids, table: F.embedding(ids, table), CLASS, W)
_call("one_hot", F.one_hot, CLASS, C)
_call("norm", aten.norm.ScalarOpt_dim, X, 3.0, [-1])
_call("norm", "norm", X)
_call("count_nonzero", "count_nonzero", X, -1)
_call("count_nonzero", "count_nonzero", X, [-1])
_call("nll_loss", lambda x, y: F.nll_loss(x.flatten(0, 1), y.flatten()), X, CLASS)
_call("nll_loss", lambda x, y: aten.nll_loss(x.flatten(0, 1), y.flatten()), X, CLASS)
_call("nll_loss_nd", lambda x, y: F.nll_loss(x.transpose(1, 2), y), X, CLASS)
_call("nll_loss2d", lambda x, y: aten.nll_loss2d(x.transpose(1, 2).unsqueeze(-1), y.unsqueeze(-1)), X, CLASS)
_call("cross_entropy_loss", lambda x, y: F.cross_entropy(x.transpose(1, 2), y), X, CLASS)
_call("soft_margin_loss", F.soft_margin_loss, X, FLAG.double() * 2 - 1)
_call("div.Scalar_mode", aten.div.Scalar_mode, X, 0.3, rounding_mode="floor")
_call("unsafe_split_with_sizes", aten.unsafe_split_with_sizes, X, [1, 1], -1)
_call("unsafe_split", aten.unsafe_split, X, 1, -1)
_call("new_empty", lambda x: x.new_empty((B, T)), X)
_call("new_empty_strided", lambda x: x.new_empty_strided((B, T, C), (T * C, C, 1)), X)
for _given in ((), (unit(T, T) > 0.6, 0), (unit(B, T) > 0.6, 1), (unit(B, 2, T, T) > 0.6, 2)):  # not 0 hides
    _call("_native_multi_head_attention", attending, unit(B, T, 4), *_given)
    _call("_transformer_encoder_layer_fwd", layer, unit(B, T, 4), *_given)
_call("lstm.input", net(nn.LSTM, bidirectional=True), X)
_call("gru.input", net(nn.GRU), X)
_call("rnn_tanh.input", net(nn.RNN), X)
_call("rnn_relu.input", net(nn.RNN, nonlinearity="relu"), X)
_call("native_dropout", aten.native_dropout, X, 0.5, True)
_call("poisson", "poisson", X)
_call("binomial", "binomial", ONE.double(), Y)
_call("random", aten.random, X)
_call("_prelu_kernel", aten._prelu_kernel, Y - X, unit(1, 1, C))
_call("log_sigmoid_forward", lambda x: aten.log_sigmoid_forward(x)[0], X)  # the other result is scratch
_call("_to_copy", aten._to_copy, X, dtype=torch.float32)
_call("detach", aten.detach, X)
_call("normal_functional", aten.normal_functional, X)
_call("expand", lambda x: x.unsqueeze(-1).expand(B, T, C, 3), X)
_call("split", aten.split.Tensor, X, 1, -1)
_call("split_with_sizes", aten.split_with_sizes, X, [1, 1], -1)
_call("_unsafe_view", aten._unsafe_view, X, [B * T, C])
for _name in ("logsumexp", "cumsum", "cumprod"):
    _call(_name, _name, X, -1)
_call("normal.Tensor_float", aten.normal.Tensor_float, X, 0.5)
_call("normal.float_Tensor", aten.normal.float_Tensor, 0.5, X)
_call("normal.Tensor_Tensor", aten.normal.Tensor_Tensor, X, Y)
_call("_standard_gamma", aten._standard_gamma, X)
_call("bmm", lambda q, k: q.bmm(k.mT), X, Y)
_call("bmm", lambda q, k, v: q.bmm(k.mT).softmax(-1).bmm(v), X, Y, unit(B, T, 5))
_call("baddbmm", lambda q, k, b: torch.baddbmm(b, q, k.mT, beta=0.5, alpha=2), X, Y, unit(T))
_call("matmul", lambda q, k, v: (q @ k.mT).softmax(-1) @ v, Q, K, V)
_call("index", lambda x: x[torch.ones(x.shape[:2], dtype=torch.bool)], X)
_call("instance_norm", lambda x: torch.nn.functional.instance_norm(x.transpose(1, 2)), X)
_call("adaptive_avg_pool1d", lambda x: torch.nn.functional.adaptive_avg_pool1d(x.transpose(1, 2), 1), X)
DRAWN = {"empty_like", "rand_like", "new_empty", "new_empty_strided", "native_dropout", "poisson", "binomial", "random"}
DRAWN |= {"normal_functional", "normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor", "_standard_gamma"}
if hasattr(F, "linear_cross_entropy"):  # new in torch 2.13
    _chunks = {"options": nn.LinearCrossEntropyOptions(batch_chunk_size=2)}
    for _name, _reduction in (("", "mean"), ("", "sum"), ("_no_reduction", "none")):
        _op = lambda x, w, y, how: F.linear_cross_entropy(x.flatten(0, 1), w, y.flatten(), reduction=how, **_chunks)  # noqa: E731
        _call(f"torch_nn::_linear_cross_entropy_batch_chunked{_name}", _op, X, W, CLASS, _reduction)
