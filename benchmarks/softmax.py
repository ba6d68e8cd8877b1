"""Softmax, normalization and losses: large, with a random mask or that of a padded batch.

The peer is ``torch.masked``.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch import masked as peer
from torch.nn import functional as F

import masked_tensor as mt

from .timing import row


def run(small: bool) -> None:
    size = 64 if small else 4096
    data, mask = torch.randn(size, size), torch.rand(size, size) < 0.5
    x = mt.masked_tensor(data, mask)
    for op, theirs in ((torch.softmax, peer.softmax), (torch.log_softmax, peer.log_softmax)):
        for dim in (-1, 0):
            candidates = {
                "plain": lambda op=op, dim=dim: op(data, dim),
                "masked": lambda op=op, dim=dim: op(x, dim),
                "torch.masked": lambda op=theirs, dim=dim: op(data, dim, mask=mask),
            }
            row(f"{op.__name__}({dim})", candidates, "1.35", rounds=5)
    norms(8 if small else 256)
    losses(data, mask)


def trained(function: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Callable[[], object]:
    leaf = x.detach().requires_grad_()
    return lambda: torch.autograd.grad(function(leaf), leaf, grad)


def norms(size: int) -> None:
    """A batch of 32 sequences of ``size`` features: padded, and with holes at random."""
    data = torch.randn(32, 256, size)
    mask = (torch.arange(256) < torch.randint(1, 257, (32, 1)))[..., None].expand(data.shape)
    x, random = mt.masked_tensor(data, mask), mt.masked_tensor(data, torch.rand(data.shape) < 0.5)
    weight, channels = torch.randn(size, requires_grad=True), torch.randn(256, requires_grad=True)
    operations: dict[str, Callable[[Tensor], Tensor]] = {
        "layer_norm": lambda x: F.layer_norm(x, [size], weight),
        "rms_norm": lambda x: F.rms_norm(x, [size], weight),
        "batch_norm": lambda x: F.batch_norm(x, None, None, channels, training=True),
        "group_norm": lambda x: F.group_norm(x, 8, channels),
        "instance_norm": lambda x: F.instance_norm(x, weight=channels),
        "softmax": lambda x: torch.softmax(x, -1),
    }
    for name, function in operations.items():
        with torch.no_grad():
            candidates = {
                "plain": lambda f=function: f(data),
                "padded": lambda f=function: f(x),
                "random": lambda f=function: f(random),
            }
            row(name, candidates, "1.1 padded", rounds=5)
        candidates = {
            n: trained(function, v, v.detach()) for n, v in (("plain", data), ("padded", x), ("random", random))
        }
        row(f"{name}, forward and backward", candidates, "1.5 random", rounds=5)


def losses(data: Tensor, mask: Tensor) -> None:
    """Scalar losses, forward and backward, targets with holes."""
    target, classes = torch.randn_like(data), torch.randint(len(data), (len(data),))
    one = torch.ones(())
    pairs = {
        "mse_loss": (F.mse_loss, target, mt.masked_tensor(target, mask)),
        "l1_loss": (F.l1_loss, target, mt.masked_tensor(target, mask)),
        "cross_entropy": (F.cross_entropy, classes, mt.masked_tensor(classes, mask[0])),
    }
    for name, (loss, plain, masked) in pairs.items():
        candidates = {
            "plain": trained(lambda x, f=loss, t=plain: f(x, t), data, one),
            "masked": trained(lambda x, f=loss, t=masked: f(x, t), data, mt.masked_tensor(one, one > 0)),
        }
        row(f"{name}, forward and backward", candidates, rounds=5)


def compiled(small: bool) -> None:
    size = 64 if small else 4096
    data, mask = torch.randn(size, size), torch.rand(size, size) < 0.5
    x = mt.masked_tensor(data, mask)
    for op in (torch.softmax, torch.log_softmax):
        torch.compiler.reset()
        function = torch.compile(lambda x, op=op: op(x, -1), fullgraph=True)
        row(
            f"{op.__name__}(-1), compiled",
            {"plain": lambda op=op: op(data, -1), "masked": lambda f=function: f(x)},
            "1.2",
        )
