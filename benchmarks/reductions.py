"""Reductions of a (4096, 4096) float32 tensor with half of it masked at random, as ratios to the unmasked op.

``python -m benchmarks.reductions [compiled]`` prints the table: the unmasked op is 1, ``torch.masked`` is the peer.
Every round runs all candidates once, in one process; medians over the rounds.
"""

import sys
from collections.abc import Callable

import torch
from torch import masked as peer

import masked_tensor as mt
from masked_tensor import masks

from .timing import many, medians, row

SIZE = 4096


OPS: list[tuple[str, int, str]] = [
    ("sum", -1, "3"),
    ("sum", 0, "1.5"),
    ("mean", -1, "3"),
    ("mean", 0, "1.5"),
    ("prod", -1, "3.5"),
    ("prod", 0, "2"),
    ("amax", -1, "4.5"),
    ("amax", 0, "2"),
    ("amin", -1, "4.5"),
    ("var", -1, "0.3"),
    ("var", 0, "0.3"),
    ("std", -1, "0.3"),
    ("logsumexp", -1, ""),
    ("argmax", -1, ""),
]


def large() -> None:
    data, mask = torch.randn(SIZE, SIZE), torch.rand(SIZE, SIZE) < 0.5
    x = mt.as_masked_tensor(data, mask)
    rows = mt.as_masked_tensor(data, mask[:, :1])
    for name, dim, target in OPS:
        op, theirs = getattr(torch, name), getattr(peer, name)
        candidates = {
            "plain": lambda op=op, dim=dim: op(data, dim),
            "masked": lambda op=op, dim=dim: op(x, dim),
            "peer": lambda op=theirs, dim=dim: op(data, dim, mask=mask),
        }
        row(f"{name}({dim})", candidates, target)
    for name in ("sum", "mean", "amax", "var"):
        op = getattr(torch, name)
        row(
            f"{name}(-1), row-constant",
            {"plain": lambda op=op: op(data, -1), "masked": lambda op=op: op(rows, -1)},
            "1.1",
        )
    counts: dict[str, Callable[[], object]] = {"plain": lambda: data.sum(-1)}
    for dim in (-1, 0, None):
        for name in ("count", "any", "all"):
            counts[f"{name}({dim})"] = lambda name=name, dim=dim: getattr(masks, name)(mask, dim)
    times = medians(counts)
    for name, seconds in times.items():
        print(f"mask {name:20} {seconds / times['plain']:6.2f}x of data.sum(-1), target 0.25")


def training() -> None:
    data, mask = torch.randn(SIZE, SIZE, requires_grad=True), torch.rand(SIZE, SIZE) < 0.5
    x = mt.as_masked_tensor(data.detach(), mask).requires_grad_()
    for name in ("sum", "mean", "amax", "prod", "logsumexp", "var"):
        op = getattr(torch, name)

        def step(tensor: torch.Tensor, op: Callable[..., torch.Tensor] = op) -> None:
            torch.autograd.grad(op(tensor, -1).sum(), tensor)

        row(f"{name}(-1) and gradient", {"plain": lambda: step(data), "masked": lambda: step(x)})


def tiny() -> None:
    data, mask = torch.randn(4, 4), torch.rand(4, 4) < 0.5
    x = mt.as_masked_tensor(data, mask)

    for name in ("sum", "mean", "amax", "var"):
        op, theirs = getattr(torch, name), getattr(peer, name)
        candidates = {
            "plain": many(lambda op=op: op(data), 20),
            "masked": many(lambda op=op: op(x), 20),
            "peer": many(lambda op=theirs: op(data, mask=mask), 20),
        }
        row(f"{name}() of 4x4, 20 times", candidates, "8", rounds=301)


def compiled() -> None:
    torch.compiler.config.force_disable_caches = True  # a cached graph may stem from other rules
    data, mask = torch.randn(SIZE, SIZE), torch.rand(SIZE, SIZE) < 0.5
    x = mt.as_masked_tensor(data, mask)
    for name in ("sum", "mean", "amax", "prod", "var", "logsumexp"):
        op = getattr(torch, name)
        function = torch.compile(lambda t, op=op: op(t, -1), fullgraph=True)
        row(
            f"compiled {name}(-1)",
            {"plain": lambda op=op: op(data, -1), "masked": lambda f=function: f(x)},
            "1.6",
        )


if __name__ == "__main__":
    if "compiled" in sys.argv:
        compiled()
    else:
        large()
        training()
        tiny()
