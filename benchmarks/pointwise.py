"""Elementwise ops: 4096 x 4096, float32, 70 % valid; by hand, an op with one mask is the plain op.

The peer is ``torch.masked``.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.masked import masked_tensor as peer

import masked_tensor as mt

from .timing import row


@torch.no_grad()
def run(small: bool) -> None:
    warnings.simplefilter("ignore")
    size = 64 if small else 4096
    a, b = torch.rand(size, size) + 0.1, torch.rand(size, size) + 0.1
    masks = {
        "random, shared": (torch.rand(size, size) < 0.7,) * 2,
        "random, two": (torch.rand(size, size) < 0.7, torch.rand(size, size) < 0.7),
        "rows, two": ((torch.rand(size, 1) < 0.7).expand(size, size), (torch.rand(size, 1) < 0.7).expand(size, size)),
    }
    ops: dict[str, Callable[..., Any]] = {
        "add": torch.add,
        "mul": torch.mul,
        "relu": lambda x, y: torch.relu(x),
        "exp": lambda x, y: torch.exp(x),
        "x * 2": lambda x, y: x * 2.0,
        "where": lambda x, y: torch.where(y > 0.5, x, y),
    }
    for mask_name, (m, n) in masks.items():
        x, y = mt.as_masked_tensor(a, m), mt.as_masked_tensor(b, n)
        p, q = peer(a, m.contiguous()), peer(b, m.contiguous())  # the peer refuses two different masks
        for name, op in ops.items():
            candidates = {"plain": lambda op=op: op(a, b), "masked": lambda op=op, x=x, y=y: op(x, y)}
            if name in ("add", "mul", "exp", "x * 2"):  # the peer has no relu, and its where() recurses without end
                candidates["torch.masked"] = lambda op=op, p=p, q=q: op(p, q)
            if name in ("add", "mul") and mask_name.endswith("two"):
                candidates["by hand"] = lambda op=op, m=m, n=n: (op(a, b), m & n)
            if name == "where":
                candidates["by hand"] = lambda op=op, m=m, n=n: (op(a, b), torch.where(b > 0.5, m, n) & n)
            row(f"{name}, {mask_name}", candidates, "1.15")
