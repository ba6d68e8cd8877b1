"""Attention by definition: one query after the other, plain torch on the keys that it sees."""

import itertools
from typing import Any

import torch

from ..helpers.harness import Masked
from .matmul import masked


def attend(
    q: Masked, k: Masked, v: Masked, visible: torch.Tensor, added: torch.Tensor, scale: float | None = None
) -> Masked:
    """``softmax(q @ k.T * scale + added) @ v`` over the keys that are visible, by index, with all heads spelled out."""
    data = torch.zeros(*q.data.shape[:-1], v.data.shape[-1], dtype=q.data.dtype)
    valid = torch.zeros(data.shape, dtype=torch.bool)
    zeros = [torch.where(x.mask, x.data, 0) for x in (q, k, v)]
    scale = q.data.shape[-1] ** -0.5 if scale is None else scale
    visible, added = (x.expand(*data.shape[:-1], k.data.shape[-2]) for x in (visible, added))
    for place in itertools.product(*(range(size) for size in data.shape[:-1])):
        head = place[:-1]
        pairs = (q.mask[place] & k.mask[head]).any(-1) & v.mask[head].any(-1)
        seen = pairs & visible[place]
        if not seen.any():
            continue
        scores = zeros[1][head][seen] @ zeros[0][place] * scale + added[place][seen]
        data[place] = scores.softmax(0) @ zeros[2][head][seen]
        valid[place] = v.mask[head][seen].any(0)
    return Masked(data, valid)


def scaled_dot_product_attention(
    op: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Masked:
    assert dropout_p == 0
    q, k, v = (masked(x) for x in (query, key, value))
    if enable_gqa:
        repeats = q.data.shape[-3] // k.data.shape[-3]
        k, v = (Masked(x.data.repeat_interleave(repeats, -3), x.mask.repeat_interleave(repeats, -3)) for x in (k, v))
    batch = torch.broadcast_shapes(*(x.data.shape[:-2] for x in (q, k, v)))
    q, k, v = (Masked(*(t.expand(*batch, *t.shape[-2:]) for t in (x.data, x.mask))) for x in (q, k, v))
    visible = torch.ones(q.data.shape[-2], k.data.shape[-2], dtype=torch.bool)
    added = torch.zeros((), dtype=q.data.dtype)
    if is_causal:
        visible = visible.tril()
    if attn_mask is not None:
        given = masked(attn_mask)
        if given.data.dtype is torch.bool:
            visible = visible & given.mask & given.data
        else:
            added = given.data
            visible = visible & given.mask & (given.data != -torch.inf)
    return attend(q, k, v, visible, added, scale)


ORACLES = {"nn.functional.scaled_dot_product_attention": scaled_dot_product_attention}
XFAIL = {
    ("nn.functional.scaled_dot_product_attention", "value"): "samples with dropout; test_attention.py has the values",
    ("nn.functional.scaled_dot_product_attention", "compiled"): "dynamo refuses the database's own seeding",
}
