"""Softmax, normalization and losses with a random or a padding mask, as ratios to the unmasked op.

``python -m benchmarks.softmax [compiled]`` prints the table: the unmasked op is 1, ``torch.masked`` is the peer.
"""

import sys
from collections.abc import Callable

import torch
from torch import Tensor
from torch import masked as peer
from torch.nn import functional as F

import masked_tensor as mt

from .timing import many, medians, row

SIZE = 4096


def eager() -> None:
    torch.manual_seed(0)
    data, mask = torch.randn(SIZE, SIZE), torch.rand(SIZE, SIZE) < 0.5
    x = mt.masked_tensor(data, mask)
    for op, masked_op in ((torch.softmax, peer.softmax), (torch.log_softmax, peer.log_softmax)):
        for dim, target in ((-1, "1.35"), (0, "1.35")):
            candidates = {
                "plain": lambda op=op, dim=dim: op(data, dim),
                "masked_tensor": lambda op=op, dim=dim: op(x, dim),
                "peer": lambda op=masked_op, dim=dim: op(data, dim, mask=mask),
            }
            row(f"{op.__name__} {dim}", candidates, target)
    rows()
    losses(data, mask)
    tiny()


def trained(function: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Callable[[], object]:
    leaf = x.detach().requires_grad_()
    return lambda: torch.autograd.grad(function(leaf), leaf, grad)


def rows() -> None:
    """Padding: masks constant along the normalized dimension."""
    data = torch.randn(32, 256, 256)
    mask = (torch.arange(256) < torch.randint(1, 257, (32, 1)))[..., None].expand(data.shape)
    x, random = mt.masked_tensor(data, mask), mt.masked_tensor(data, torch.rand(data.shape) < 0.5)
    weight = torch.randn(256, requires_grad=True)
    operations: dict[str, Callable[[Tensor], Tensor]] = {
        "layer_norm": lambda x: F.layer_norm(x, [256], weight),
        "rms_norm": lambda x: F.rms_norm(x, [256], weight),
        "batch_norm": lambda x: F.batch_norm(x, None, None, weight, training=True),
        "group_norm": lambda x: F.group_norm(x, 8, weight),
        "instance_norm": lambda x: F.instance_norm(x, weight=weight),
        "softmax": lambda x: torch.softmax(x, -1),
    }
    for name, function in operations.items():
        with torch.no_grad():
            candidates = {
                "plain": lambda f=function: f(data),
                "padded": lambda f=function: f(x),
                "random": lambda f=function: f(random),
            }
            row(name, candidates, "1.1 padded")
        candidates = {
            n: trained(function, v, v.detach()) for n, v in (("plain", data), ("padded", x), ("random", random))
        }
        row(f"{name} and backward", candidates)


def losses(data: Tensor, mask: Tensor) -> None:
    """Scalar losses, forward and backward, targets with holes."""
    target, classes = torch.randn(SIZE, SIZE), torch.randint(SIZE, (SIZE,))
    one = torch.ones(())
    pairs = {
        "mse_loss": (F.mse_loss, target, mt.masked_tensor(target, mask)),
        "l1_loss": (F.l1_loss, target, mt.masked_tensor(target, mask)),
        "cross_entropy": (F.cross_entropy, classes, mt.masked_tensor(classes, mask[0])),
    }
    for name, (loss, plain, masked) in pairs.items():
        candidates = {
            "plain": trained(lambda x, f=loss, t=plain: f(x, t), data, one),
            "masked_tensor": trained(lambda x, f=loss, t=masked: f(x, t), data, mt.masked_tensor(one, one > 0)),
        }
        row(f"{name} and backward", candidates)


def tiny() -> None:
    data = torch.randn(4, 4)
    x = mt.masked_tensor(data, torch.rand(4, 4) < 0.5)

    row(
        "softmax 4x4, 1000 times",
        {
            "plain": many(lambda: torch.softmax(data, -1), 1000),
            "masked_tensor": many(lambda: torch.softmax(x, -1), 1000),
        },
        "8",
    )


def compiled() -> None:
    torch.manual_seed(0)
    data, mask = torch.randn(SIZE, SIZE), torch.rand(SIZE, SIZE) < 0.5
    x = mt.masked_tensor(data, mask)
    for op in (torch.softmax, torch.log_softmax):
        function = torch.compile(lambda x, op=op: op(x, -1), fullgraph=True)
        plain = medians({"plain": lambda f=function: f(data), "eager": lambda op=op: op(data, -1)})
        torch._dynamo.reset()
        function = torch.compile(lambda x, op=op: op(x, -1), fullgraph=True)
        ours = medians({"masked": lambda f=function: f(x)})["masked"]
        best = min(plain.values())
        print(f"{op.__name__} compiled: {ours / best:.2f}x of the faster plain one (1.2)", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    compiled() if "compiled" in sys.argv else eager()
