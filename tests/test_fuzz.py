"""Random chains of ops: whatever lies under the mask, outputs, masks, gradients and exceptions stay the same.

500 chains in an ordinary run; ``FUZZ_CHAINS=10000`` for the long one.  No seed is pinned: a failure prints its chain.
"""

import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.testing import assert_close

from .helpers.backward import differentiate
from .helpers.harness import Masked, poisoned

CHAINS = int(os.environ.get("FUZZ_CHAINS", "500"))
PAYLOADS = (float("nan"), float("inf"), 1e30)

# One op each: takes the current tensor and a plain companion of a broadcastable shape.
STEPS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add plain": lambda x, p: x + p,
    "mul plain": lambda x, p: x * p,
    "rsub plain": lambda x, p: p - x,
    "div number": lambda x, p: x / 3,
    "add own mean": lambda x, p: x - x.mean(-1, keepdim=True) if x.dim() else x,
    "square": lambda x, p: x.square(),
    "abs": lambda x, p: x.abs(),
    "relu": lambda x, p: x.relu(),
    "gelu": lambda x, p: F.gelu(x),
    "tanh": lambda x, p: x.tanh(),
    "sigmoid": lambda x, p: x.sigmoid(),
    "exp": lambda x, p: x.clamp(-3, 3).exp(),
    "sqrt": lambda x, p: (x.square() + 1).sqrt(),
    "log": lambda x, p: x.abs().add(1).log(),
    "where": lambda x, p: torch.where(p > 0, x, x * 2),
    "clamp": lambda x, p: x.clamp(min=-0.5),
    "maximum": lambda x, p: torch.maximum(x, p),
    "masked_fill": lambda x, p: x.masked_fill(p > 1, 0.25),
    "unsqueeze": lambda x, p: x.unsqueeze(0) if x.dim() < 4 else x,
    "transpose": lambda x, p: x.transpose(0, -1) if x.dim() else x,
    "flatten": lambda x, p: x.flatten(),
    "flip": lambda x, p: x.flip(0) if x.dim() else x,
    "slice": lambda x, p: x[1:] if x.dim() and x.shape[0] > 1 else x,
    "select": lambda x, p: x[0] if x.dim() and x.shape[0] else x,
    "cat": lambda x, p: torch.cat([x, x + 1], -1) if x.dim() and x.shape.numel() < 500 else x,
    "stack": lambda x, p: torch.stack([x, x]) if x.dim() < 4 else x,
    "sum": lambda x, p: x.sum(-1) if x.dim() else x,
    "mean": lambda x, p: x.mean(0) if x.dim() else x,
    "amax": lambda x, p: x.amax(-1) if x.dim() and x.shape[-1] else x,
    "var": lambda x, p: x.var(-1, correction=0) if x.dim() else x,
    "std": lambda x, p: x.std(0) if x.dim() else x,
    "logsumexp": lambda x, p: x.logsumexp(-1) if x.dim() else x,
    "cumsum": lambda x, p: x.cumsum(0) if x.dim() else x,
    "softmax": lambda x, p: x.softmax(-1) if x.dim() else x,
    "log_softmax": lambda x, p: x.log_softmax(0) if x.dim() else x,
    "sort": lambda x, p: x.sort(-1).values if x.dim() else x,
    "topk": lambda x, p: x.topk(1, -1).values if x.dim() and x.shape[-1] else x,
    "layer_norm": lambda x, p: F.layer_norm(x, x.shape[-1:]) if x.dim() and x.shape[-1] else x,
    "normalize": lambda x, p: F.normalize(x, dim=-1) if x.dim() else x,
    "matmul": lambda x, p: x @ torch.ones(x.shape[-1], 3, dtype=x.dtype) if x.dim() and x.shape[-1] else x,
    "gram": lambda x, p: x @ x.mT if x.dim() >= 2 and x.shape.numel() < 500 else x,
    "linear": lambda x, p: (
        F.linear(x, torch.full((2, x.shape[-1]), 0.5, dtype=x.dtype), torch.ones(2, dtype=x.dtype))
        if x.dim() and x.shape[-1]
        else x
    ),
    "conv1d": lambda x, p: (
        F.conv1d(x.reshape(1, 1, -1), torch.ones(1, 1, 3, dtype=x.dtype), padding=1) if x.shape.numel() else x
    ),
    "max_pool1d": lambda x, p: F.max_pool1d(x.reshape(1, 1, -1), 2) if x.shape.numel() >= 2 else x,
    "in place": lambda x, p: x.clone().mul_(0.5).add_(1),
    "assign": lambda x, p: assigned(x),
    "index": lambda x, p: x[torch.tensor([0, 0])] if x.dim() and x.shape[0] else x,
    "dropout": lambda x, p: F.dropout(x, 0.3, training=True),
}


def assigned(x: Tensor) -> Tensor:
    """A copy whose first entry along dim 0 was assigned."""
    if not x.dim() or not x.shape[0]:
        return x
    result = x.clone()
    result[0] = 0.75
    return result


DTYPES = {name: getattr(torch, name) for name in ("float64", "float32", "bfloat16", "int64")}


@dataclass(frozen=True)
class Chain:
    """A start and the names of the steps."""

    shape: tuple[int, ...]
    dtype: str
    mask: str
    steps: tuple[str, ...]
    seed: int

    def start(self) -> Masked:
        generator = torch.Generator().manual_seed(self.seed)
        data = _drawn(self.shape, DTYPES[self.dtype], generator)
        if self.mask in ("all", "nothing"):
            return Masked(data, torch.full(self.shape, self.mask == "all"))
        if self.mask == "broadcast" and self.shape:
            return Masked(data, (torch.rand((*self.shape[:-1], 1), generator=generator) < 0.6).expand(self.shape))
        return Masked(data, torch.rand(self.shape, generator=generator) < 0.6)

    def follow(self, x: Tensor, weight: Tensor) -> Tensor:
        """All steps from ``x``, plain or masked, on; each has a companion of its own."""
        torch.manual_seed(self.seed)
        y = x * weight
        for number, step in enumerate(self.steps):
            generator = torch.Generator().manual_seed(self.seed + number)
            y = STEPS[step](y, _drawn(y.shape[-1:], y.dtype, generator))
        return y

    def run(self, payload: float | None) -> tuple[MaskedTensor, list[Tensor | None]]:
        """The last result, and the gradients of its sum with respect to the start and a plain weight."""
        start = self.start()
        if payload is None:
            x = mt.masked_tensor(start.data, start.mask)
        else:
            x = mt.as_masked_tensor(poisoned(start.data, start.mask, payload), start.mask)
        weight = torch.full((), 2, dtype=x.dtype)
        if not x.is_floating_point():
            return self.follow(x, weight), []
        sources = [x.requires_grad_(), weight.requires_grad_()]
        y = self.follow(x, weight)
        gradients = list(differentiate(y.sum(), sources, allow_unused=True))
        if gradients[0] is not None:
            assert_close(gradients[0].get_data()[~start.mask], torch.zeros_like(start.data)[~start.mask])
        return y, gradients


def _drawn(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    return values.to(dtype) if dtype.is_floating_point else (values * 4).round().to(dtype)


CHAIN = st.builds(
    Chain,
    shape=st.lists(st.integers(0, 4), max_size=3).map(tuple),
    dtype=st.sampled_from(["float64", "float64", *DTYPES]),
    mask=st.sampled_from(["random", "random", "broadcast", "all", "nothing"]),
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=10).map(tuple),
    seed=st.integers(0, 2**20),
)
REFUSALS = (RuntimeError, IndexError, ValueError)


@settings(max_examples=CHAINS, deadline=None, suppress_health_check=list(HealthCheck))
@given(CHAIN)
def test_no_chain_depends_on_the_masked_out_data(chain: Chain) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            clean = chain.run(None)
        except REFUSALS as refusal:  # what plain torch refuses, too, and whatever lies under the mask
            with pytest.raises(REFUSALS):
                chain.follow(chain.start().data, torch.full((), 2, dtype=DTYPES[chain.dtype]))
            for payload in PAYLOADS:
                with pytest.raises(type(refusal), match=re.escape(str(refusal))):
                    chain.run(payload)
            return
        for payload in PAYLOADS:
            assert_close(chain.run(payload), clean, message=f"with payload {payload}: ")
