"""Graphs that are made for another device than the CPU: what they call, and that nothing lies or is read elsewhere.

``MASKED_TENSOR_ELSEWHERE=1`` traces each operator of torch's database, some minutes.
"""

import os
import random
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

import masked_tensor as mt
from masked_tensor.engine.boundary.packed import wrap_packed
from masked_tensor.kernels.attention import cuda as attention_cuda
from masked_tensor.packing import from_parts
from masked_tensor.packing.dim_order import identity_order
from masked_tensor.pair import Payload

from .helpers.database import ENTRIES, Sample, samples
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


WHOLE = os.environ.get("MASKED_TENSOR_ELSEWHERE") == "1"
DECLARED = {
    "histc": "it counts the valid entries, whose number is read on the host",
    "to": "its sample moves to the CPU",
}


def tensors_in(value: Any) -> list[Tensor]:
    return [x for x in tree_leaves(value) if isinstance(x, Tensor)]


def outcome(sample: Sample, masked: bool, *tensors: Tensor) -> list[Tensor]:
    """What a call gives of these tensors, the first of which is masked, and the gradients."""
    rest = iter(tensors)

    def place(x: Any) -> Any:
        nonlocal masked
        if not isinstance(x, Tensor):
            return x
        data, first, masked = next(rest), masked, False
        return mt.as_masked_tensor(data, data == data) if first else data

    args, kwargs = tree_map(place, (sample.args, sample.kwargs))
    found = [x.filled(0) if mt.is_masked_tensor(x) else x for x in tensors_in(sample.op(*args, **kwargs))]
    sums = [x.sum().real for x in found if x.requires_grad]
    leaves = [x for x in tensors if x.requires_grad]
    gradients = torch.autograd.grad(sums, leaves, allow_unused=True) if sums else ()
    return [*found, *(g for g in gradients if g is not None)]


def strays_of(sample: Sample) -> list[str]:
    """What lies elsewhere or is read in the graph of a masked call, where that of the plain one has nothing such."""
    with elsewhere():
        kwargs = {name: DEVICE if name == "device" else value for name, value in sample.kwargs.items()}
        given = there((sample.args, kwargs))
        tensors = [x.requires_grad_(x.dtype.is_floating_point or x.dtype.is_complex) for x in tensors_in(given)]
        moved = Sample(sample.op, *given)
        try:
            plain = strays(graph_of(lambda *t: outcome(moved, False, *t), *tensors))
        except Exception:  # torch cannot trace it either
            return []
        try:
            found = strays(graph_of(lambda *t: outcome(moved, True, *t), *tensors))
        except mt.UnsupportedOpError:
            return []
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
    return found if len(found) > len(plain) else []


@pytest.mark.parametrize("name", ENTRIES if WHOLE else random.Random(1).sample(sorted(ENTRIES), 8))
def test_nothing_of_an_op_lies_on_the_cpu_or_is_read_on_the_host(name: str) -> None:
    for sample in samples(name, limit=2 if WHOLE else 1):
        if any(x.layout is not torch.strided for x in tensors_in((sample.args, sample.kwargs))):
            continue
        found = strays_of(sample)
        assert not found or name in DECLARED, found


def test_what_lies_elsewhere_or_is_read_would_be_found() -> None:
    x = torch.randn(3)
    assert not strays_of(Sample(lambda x: x * torch.ones(3, device=x.device), (x,)))

    def on_the_cpu(x: Any) -> Any:
        return x + torch.ones((), device="cpu") if mt.is_masked_tensor(x) else x * 1

    def read(x: Any) -> Any:
        return x * float(x.sum().filled(0.0)) if mt.is_masked_tensor(x) else x * 1

    assert strays_of(Sample(on_the_cpu, (x,)))
    assert "DataDependent" in strays_of(Sample(read, (x,)))[0]


def test_ids_without_dimensions_are_looked_up_without_a_read() -> None:
    weight = torch.randn(4, 3)
    assert not strays_of(Sample(lambda w, i: F.embedding(i, w), (weight, torch.tensor(1))))
