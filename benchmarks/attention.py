"""Attention of a padded batch: 32 sequences of up to 256 steps, half of it padding, 8 heads of 32.

``plain`` attends to the padding, too; ``by hand`` hides it by ``attn_mask``; ``nested`` is torch's jagged tensor.  On a
GPU in float32 and in bfloat16, which its fastest kernels want.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt

from . import timing
from .timing import row, spread

HEADS = 8


def attend(*rows: Any, causal: bool = False, hidden: Tensor | None = None) -> Any:
    """``(B, T, W)`` of queries, keys and values to ``(B, T, H, D)``."""
    q, k, v = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in rows)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=hidden, is_causal=causal).transpose(1, 2)


def trained(operation: Callable[..., Any], leaves: list[Any]) -> Callable[[], object]:
    """``operation``, and the gradients of its result."""

    def step() -> object:
        out = operation(*leaves)
        return torch.autograd.grad(out, leaves, out.detach())

    return step


def run(small: bool) -> None:
    for dtype in (torch.float32,) if timing.DEVICE == "cpu" else (torch.float32, torch.bfloat16):
        kind = "" if timing.DEVICE == "cpu" else f", {str(dtype).removeprefix('torch.')}"
        batch, steps, width = (2, 8, 32) if small else (32, 256, 256)
        lengths = spread(batch, steps, 0.5)
        valid = torch.arange(steps) < lengths[:, None]
        data = [torch.randn(batch, steps, width, dtype=dtype) * valid[..., None] for _ in range(3)]
        rows = [mt.as_masked_tensor(x, valid[..., None]) for x in data]
        together = [x.packed() for x in rows]
        pieces = [[row[:n] for row, n in zip(x, lengths.tolist(), strict=True)] for x in data]
        jagged = torch.nested.nested_tensor(pieces[0], layout=torch.jagged)
        nested = [jagged, *(torch.nested.nested_tensor_from_jagged(torch.cat(x), jagged.offsets()) for x in pieces[1:])]
        inputs = {"plain": data, "by hand": data, "masked": rows, "packed": together, "nested": nested}
        for causal in (False, True):
            seen = valid[:, None, None, :] & (torch.ones(steps, steps).tril() > 0 if causal else valid.new_ones(()))
            calls: dict[str, Callable[..., Any]] = {
                name: lambda *x, c=causal, h=seen if name == "by hand" else None: attend(
                    *x, causal=c and h is None, hidden=h
                )
                for name in inputs
                if name != "nested" or not causal or timing.DEVICE != "cpu"  # where torch has no kernel for it
            }
            title = f"attention{', causal' * causal}{kind}"
            with torch.no_grad():
                row(title, {name: lambda f=f, x=inputs[name]: f(*x) for name, f in calls.items()}, rounds=5)
            leaves = {name: [x.detach().requires_grad_() for x in given] for name, given in inputs.items()}
            losses = {name: lambda f=f, x=leaves[name]: f(*x) for name, f in calls.items()}
            both = {name: trained(f, leaves[name]) for name, f in calls.items()}
            row(f"{title}, forward and backward", both, rounds=5, memory=losses)
