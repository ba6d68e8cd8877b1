"""A program from every family under ``torch.compile(fullgraph=True, dynamic=True)``: any length, compiled once."""

import os
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

import masked_tensor as mt
from masked_tensor.testing import assert_close

WEIGHT, BIAS = torch.linspace(-1, 1, 64).view(8, 8), torch.linspace(0, 1, 8)
FIRST = torch.zeros(1, 2, dtype=torch.int64)

PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "pointwise": lambda x: (x * BIAS + x.exp()).tanh() / 2,
    "activation": lambda x: F.gelu(x) + F.glu(torch.cat([x, x], -1)),
    "choose": lambda x: torch.where(x > 0, x, BIAS).clamp(-1, 1),
    "compare": lambda x: (x > BIAS).float().mean(-1),
    "cast": lambda x: x.double().sum(0),
    "like": lambda x: torch.ones_like(x) * x,
    "reduction": lambda x: x.sum(-1) + x.amax(-1) + x.prod(-1),
    "moment": lambda x: x.var(-1) + x.mean(-1) + x.std(-1),
    "extremes": lambda x: x.max(-1).values + x.argmax(-1),
    "scan": lambda x: x.cumsum(-1) + x.logcumsumexp(-1),
    "order": lambda x: x.sort(-1).values + x.median(-1, True).values,
    "norm": lambda x: x.norm(dim=-1) + F.normalize(x, dim=-1).sum(-1),
    "softmax": lambda x: x.softmax(-1) + x.log_softmax(-1),
    "normalize": lambda x: F.layer_norm(x, (8,)) + F.rms_norm(x, (8,)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "matmul": lambda x: x @ WEIGHT + F.linear(x, WEIGHT, BIAS) + (x @ x.mT) @ x,
    "conv": lambda x: F.conv1d(x.unsqueeze(1), WEIGHT[:2, None, :3], padding=1),
    "pool": lambda x: F.max_pool1d(x.unsqueeze(1), 2) + F.avg_pool1d(x.unsqueeze(1), 2),
    "resample": lambda x: F.interpolate(x.unsqueeze(1), scale_factor=2),
    "shape": lambda x: x.t().reshape(2, -1).unsqueeze(0).flip(1),
    "join": lambda x: torch.cat([x, x * 2], 0),
    "index": lambda x: x[:, [0, 2]] + x.gather(1, FIRST.expand(x.shape[0], 2)),
    "assign": lambda x: x.scatter(1, FIRST[:, :1].expand(x.shape[0], 1), 1.0),
    "attention": lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "loss": lambda x: F.mse_loss(x, BIAS.expand_as(x)) + F.cross_entropy(x, FIRST[0, :1].expand(x.shape[0])),
    "embedding": lambda x: F.embedding(x.abs().long().clamp(max=7), WEIGHT),
    "similarity": lambda x: F.cosine_similarity(x, BIAS, dim=-1),
    "padding": lambda x: F.pad(x, (1, 2)),
}
# Inductor traces as aot_eager does, and takes seconds for each of the others; INDUCTOR=all runs them.
QUICK = ("choose", "like", "softmax", "normalize", "batch_norm", "matmul", "embedding")
INDUCTOR = PROGRAMS if os.environ.get("INDUCTOR") == "all" else QUICK


def batch(rows: int) -> mt.MaskedTensor:
    generator = torch.Generator().manual_seed(rows)
    mask = torch.rand(rows, 8, generator=generator) < 0.7
    data = torch.randn(rows, 8, generator=generator)
    return mt.as_masked_tensor(torch.where(mask, data, torch.nan), mask).requires_grad_()


@pytest.mark.parametrize(
    ("backend", "family"), [("inductor" if family in INDUCTOR else "aot_eager", family) for family in PROGRAMS]
)
def test_every_length_with_one_compilation(backend: str, family: str) -> None:
    torch._dynamo.reset()
    program, counter = PROGRAMS[family], CompileCounterWithBackend(backend)
    compiled = torch.compile(program, fullgraph=True, dynamic=True, backend=counter)
    for rows in (4, 6, 10):
        x, y = batch(rows), batch(rows)
        actual, expected = compiled(x), program(y)
        assert_close(actual, expected, rtol=1e-4, atol=1e-5)
        assert actual.requires_grad == expected.requires_grad
        if expected.requires_grad:
            actual.sum().backward()
            expected.sum().backward()
            assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-5)
    assert counter.frame_count == 1
