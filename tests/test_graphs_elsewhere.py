"""Graphs that are made for another device than the CPU: what they call, and that nothing lies or is read elsewhere."""

from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor.engine.boundary.packed import wrap_packed
from masked_tensor.kernels.attention import cuda as attention_cuda
from masked_tensor.packing import from_parts
from masked_tensor.packing.dim_order import identity_order
from masked_tensor.pair import Payload

from .helpers.other_device import DEVICE, calls, elsewhere, graph_of, move_module, strays, there

B, T, WIDTH, STORED = 3, 6, 16, 11
HALF, SINGLE = torch.bfloat16, torch.float32


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device has the kernels of a GPU."""
    monkeypatch.setattr(attention_cuda, "DEVICES", (DEVICE,))


def encoder(layers: int, dropout: float, dtype: torch.dtype, width: int = WIDTH) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, 2, 32, dropout, batch_first=True, device="meta", dtype=dtype)
    return move_module(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False))


def gradients(net: nn.Module, out: Any) -> Any:
    loss = out.float().square().mean()
    loss = loss.filled(0.0) if mt.is_masked_tensor(loss) else loss
    return loss, torch.autograd.grad(loss, list(net.parameters()))


def packed_batch(values: Tensor, index: Tensor) -> Any:
    return wrap_packed(from_parts(values, index, None, (B, T, values.shape[-1]), identity_order(3), True, Payload.ZERO))


def room(*shape: int, dtype: torch.dtype = SINGLE) -> Tensor:
    return there(torch.empty(shape, dtype=dtype))


def calls_of(kind: str, layers: int, dropout: float, dtype: torch.dtype, width: int = WIDTH) -> Counter[str]:
    """What a training step of an encoder calls."""
    net = encoder(layers, dropout, dtype, width)
    if kind == "plain":
        given = room(B, T, width, dtype=dtype), room(B, T, dtype=torch.bool)
        graph = graph_of(lambda x, padding: gradients(net, net(x, src_key_padding_mask=padding)), *given)
    elif kind == "packed":
        given = room(STORED, width, dtype=dtype), room(STORED, dtype=torch.int64)
        graph = graph_of(lambda values, index: gradients(net, net(packed_batch(values, index))), *given)
    else:
        given = room(B, T, width, dtype=dtype), room(B, dtype=torch.int64)
        graph = graph_of(lambda x, n: gradients(net, net(mt.from_lengths(x, n).packed(capacity=STORED))), *given)
    assert not strays(graph)
    return calls(graph)


KERNELS = {(HALF, 0.0): "_varlen_attn", (HALF, 0.1): "_flash_attention_forward", (SINGLE, 0.0): "efficient"}


@pytest.mark.parametrize(("dtype", "dropout"), KERNELS, ids=str)
def test_a_packed_layer_calls_no_more_than_a_plain_one(
    dtype: torch.dtype, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forward and backward; of the plain one attention is what a GPU has for a mask, one op."""

    def at_once(q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout: float, causal: bool) -> Tensor:
        mask = mask if mask is None else mask.expand(*q.shape[:-1], k.shape[-2])
        return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, mask, True, dropout, causal)[0]

    with elsewhere():
        packed = calls_of("packed", 1, dropout, dtype)
        monkeypatch.setattr(F, "scaled_dot_product_attention", at_once)
        plain = calls_of("plain", 1, dropout, dtype)
    kernel = KERNELS[dtype, dropout]
    assert packed[kernel] == packed[kernel.replace("_forward", "") + "_backward"] == 1
    assert not {"index_copy", "index_put", "index_select", "_softmax", "_safe_softmax", "bmm"} & packed.keys()
    assert packed.total() <= 1.1 * plain.total()


def test_at_a_capacity_attention_is_one_op_too() -> None:
    """Three gathers pack the batch; then valid tokens first and back: queries, keys, values, results, and gradients."""
    with elsewhere():
        found = calls_of("capacity", 1, 0.1, HALF)
    assert found["_flash_attention_forward"] == 1
    assert found["index_select"] == 3 + 8
    assert not {"index_copy", "index_put", "_softmax", "bmm"} & found.keys()


def test_wide_heads_and_grouped_ones() -> None:
    with elsewhere():

        def step(values: Tensor, index: Tensor, weight: Tensor) -> Any:
            q, k, v = (packed_batch(values, index) * weight).split([4 * 264, 2 * 264, 2 * 264], -1)
            q, k, v = (x.unflatten(-1, (-1, 264)).transpose(1, 2) for x in (q, k, v))
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            return torch.autograd.grad(out.square().sum().filled(0.0), weight)

        weight = room(8 * 264, dtype=HALF).requires_grad_()
        graph = graph_of(step, room(STORED, 8 * 264, dtype=HALF), room(STORED, dtype=torch.int64), weight)
    assert calls(graph)["efficient"] == calls(graph)["efficient_backward"] == 1
    assert not strays(graph)
