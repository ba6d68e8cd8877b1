"""Softmax, normalization and losses: large, with a random mask or that of a padded batch.

The peer is ``torch.masked``; ``by hand`` is ``torch.where`` with the mask at random, in a loss ``ignore_index``.
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
                "by hand": lambda op=op, dim=dim: op(data.masked_fill(~mask, -torch.inf), dim).masked_fill(~mask, 0),
            }
            row(f"{op.__name__}({dim})", candidates, "1.35", rounds=5)
    norms(8 if small else 256)
    losses(data, mask)


def trained(function: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Callable[[], object]:
    leaf = x.detach().requires_grad_()
    return lambda: torch.autograd.grad(function(leaf), leaf, grad)


def norms(size: int) -> None:
    """A batch of 32 sequences of ``size`` features: padded, and masked at random."""
    data = torch.randn(32, 256, size)
    mask = (torch.arange(256) < torch.randint(1, 257, (32, 1)))[..., None].expand(data.shape)
    random_mask = torch.rand(data.shape) < 0.5
    x, random = mt.masked_tensor(data, mask), mt.masked_tensor(data, random_mask)
    weight, channels = torch.randn(size, requires_grad=True), torch.randn(256, requires_grad=True)
    operations: dict[str, Callable[[Tensor], Tensor]] = {
        "layer_norm": lambda x: F.layer_norm(x, [size], weight),
        "rms_norm": lambda x: F.rms_norm(x, [size], weight),
        "batch_norm": lambda x: F.batch_norm(x, None, None, channels, training=True),
        "group_norm": lambda x: F.group_norm(x, 8, channels),
        "instance_norm": lambda x: F.instance_norm(x, weight=channels),
        "softmax": lambda x: torch.softmax(x, -1),
    }
    written: dict[str, Callable[[Tensor], Tensor]] = {
        "layer_norm": lambda x: by_hand(x, random_mask, (2,)) * weight,
        "batch_norm": lambda x: by_hand(x, random_mask, (0, 2)) * channels[:, None],
        "group_norm": lambda x: by_hand(x, random_mask, (2, 3), (8, -1)) * channels[:, None],
        "instance_norm": lambda x: by_hand(x, random_mask, (2,)) * channels[:, None],
        "softmax": lambda x: torch.where(random_mask, x, -torch.inf).softmax(-1),
    }
    for name, function in operations.items():
        inputs = {"plain": data, "padded": x, "random": random}
        if name in written:
            inputs["by hand"] = data
        kinds = {kind: written[name] if kind == "by hand" else function for kind in inputs}
        with torch.no_grad():
            candidates = {kind: lambda f=f, v=inputs[kind]: f(v) for kind, f in kinds.items()}
            row(name, candidates, "1.1 padded", rounds=5)
        leaves = {kind: x.detach().requires_grad_() for kind, x in inputs.items()}
        kept = {kind: lambda f=f, v=leaves[kind]: f(v) for kind, f in kinds.items()}
        candidates = {kind: trained(f, inputs[kind], inputs[kind].detach()) for kind, f in kinds.items()}
        row(f"{name}, forward and backward", candidates, "1.5 random", rounds=5, memory=kept)


def by_hand(x: Tensor, mask: Tensor, dims: tuple[int, ...], groups: tuple[int, int] | None = None) -> Tensor:
    """The elements that ``mask`` names made standard over ``dims``, of ``groups`` of channels, by ``torch.where``."""
    shape = x.shape
    if groups:
        x, mask = x.unflatten(1, groups), mask.unflatten(1, groups)
    number = mask.sum(dims, keepdim=True)
    apart = torch.where(mask, x - torch.where(mask, x, 0).sum(dims, keepdim=True) / number, 0)
    return (apart * (apart.square().sum(dims, keepdim=True) / number + 1e-5).rsqrt()).view(shape)


def losses(data: Tensor, mask: Tensor) -> None:
    """Scalar losses, forward and backward, masked targets."""
    target, classes = torch.randn_like(data), torch.randint(len(data), (len(data),))
    one, number, hidden = torch.ones(()), mask.sum(), classes.masked_fill(~mask[0], -100)
    written: dict[str, Callable[[Tensor], Tensor]] = {
        "mse_loss": lambda x: torch.where(mask, x - target, 0).square().sum() / number,
        "l1_loss": lambda x: torch.where(mask, x - target, 0).abs().sum() / number,
        "cross_entropy": lambda x: F.cross_entropy(x, hidden),  # ignore_index
    }
    pairs = {
        "mse_loss": (F.mse_loss, target, mt.masked_tensor(target, mask)),
        "l1_loss": (F.l1_loss, target, mt.masked_tensor(target, mask)),
        "cross_entropy": (F.cross_entropy, classes, mt.masked_tensor(classes, mask[0])),
    }
    for name, (loss, plain, masked) in pairs.items():
        candidates = {
            "plain": trained(lambda x, f=loss, t=plain: f(x, t), data, one),
            "masked": trained(lambda x, f=loss, t=masked: f(x, t), data, mt.masked_tensor(one, one > 0)),
            "by hand": trained(written[name], data, one),
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
