"""Products over time of packed tensors: attention written by hand runs on blocks of scores, as the strided one."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor import MaskedTensor

from .helpers.harness import assert_same

B, H, T, D = 4, 2, 5, 3
ROWS = {
    "prefix": torch.arange(T) < torch.tensor([[5], [3], [3], [0]]),
    "full": torch.ones(B, T, dtype=torch.bool),
    "scattered": torch.tensor([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 1]], dtype=torch.bool),
}
DRAWN = torch.Generator().manual_seed(3)
CAUSAL = torch.ones(T, T, dtype=torch.bool).triu(1)
BY_BATCH = torch.randn(B, 1, T, T, dtype=torch.float64, generator=DRAWN)
LEARNED = torch.randn(H, T, T, dtype=torch.float64, generator=DRAWN)


def heads_first(x: Any) -> Any:
    return x.unflatten(-1, (H, D)).transpose(1, 2)


def plainly(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    return (heads_first(q) @ heads_first(k).transpose(-2, -1) / math.sqrt(D)).softmax(-1) @ heads_first(v)


def causal(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    scores = torch.matmul(heads_first(q), heads_first(k).mT).masked_fill(CAUSAL, -math.inf)
    return F.softmax(scores + bias, -1, dtype=torch.float64).to(scores.dtype) @ heads_first(v)


def added_in_place(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    scores = heads_first(q) @ heads_first(k).mT
    scores += bias
    scores = scores.masked_fill(BY_BATCH > 1, -1e9)
    return F.dropout(scores.log_softmax(-1).exp(), 0.5, training=False) @ heads_first(v)


def batched(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    q, k, v = (heads_first(x).flatten(0, 1) for x in (q, k, v))
    weights = torch.baddbmm(bias.repeat(B, 1, 1), q, k.transpose(1, 2), beta=0.5, alpha=2).softmax(-1)
    return torch.bmm(weights, v).view(B, H, T, D)


def hidden_in_part(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    q, k, v = (heads_first(x).flatten(0, 1) for x in (q, k, v))
    hides = torch.zeros(1, T, T, dtype=torch.float64).masked_fill(CAUSAL.roll(1, 1), -math.inf)
    return torch.bmm(torch.baddbmm(hides, q, k.transpose(1, 2)).softmax(-1), v).view(B, H, T, D)


def einsum(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    q, k, v = (x.unflatten(-1, (H, D)) for x in (q, k, v))
    weights = (torch.einsum("bthd,bshd->bhts", q, k) + bias).softmax(-1)
    return torch.einsum("bhts,bshd->bthd", weights, v).transpose(1, 2)


def without_heads(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    return heads_first(((q @ k.mT) * 0.3 + bias[0]).softmax(-1) @ v)


def normalized_by_hand(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    scores = heads_first(q) @ heads_first(k).mT
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return (weights / weights.sum(-1, keepdim=True)) @ heads_first(v)


def of_two_scores(q: Any, k: Any, v: Any, bias: Tensor) -> Any:
    scores = heads_first(q) @ heads_first(k).mT
    other = heads_first(k) @ heads_first(q).mT
    return (scores * other.sigmoid() + scores.cumsum(-1)).softmax(-1) @ heads_first(v)


WAYS: list[Callable[..., Any]] = [
    plainly, causal, added_in_place, batched, hidden_in_part, einsum, without_heads, normalized_by_hand, of_two_scores
]  # fmt: skip
ON_ROWS = {"plainly", "causal", "batched", "einsum", "without_heads", "of_two_scores", "added_in_place"}


def given(rows: Tensor, packed: bool, seed: int = 1, dtype: torch.dtype = torch.float64) -> MaskedTensor:
    data = torch.randn(*rows.shape, H * D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)
    x = mt.as_masked_tensor(data.masked_fill(~rows[..., None], math.nan), rows[..., None])
    return x.packed() if packed else x


def attended(way: Callable[..., Any], rows: Tensor, packed: bool) -> tuple[list[Any], dict[str, Any]]:
    q, k, v = (given(rows, packed, seed).requires_grad_() for seed in range(3))
    bias = LEARNED.clone().requires_grad_()
    with mt.extend.packing_report() as report:
        out = way(q, k, v, bias)
    out.filled(0).sin().sum().backward()
    return [out, q.grad, k.grad, v.grad, bias.grad], report


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("way", WAYS)
def test_attention_by_hand(way: Callable[..., Any], rows: str) -> None:
    (actual, report), (expected, _) = (attended(way, ROWS[rows], packed) for packed in (True, False))
    for a, e in zip(actual, expected, strict=True):
        assert a is e is None or type(a) is type(e)
        if a is not None:
            assert_same(a, e, f"{way.__name__}, {rows}")
    if way.__name__ in ON_ROWS:
        assert not report
        assert actual[0].is_packed


def test_keys_of_other_sequences() -> None:
    keys = torch.arange(7) < torch.tensor([[2], [7], [7], [0]])
    out = []
    for packed in (True, False):
        q, k, v = given(ROWS["prefix"], packed), given(keys, packed, 2), given(keys, packed, 3)
        with mt.extend.packing_report() as report:
            out.append(plainly(q, k, v, LEARNED))
        assert not report
    assert_same(*out, "cross attention")
    none = torch.arange(7) < torch.tensor([[2], [0], [7], [4]])
    out = [plainly(given(ROWS["full"], p), given(none, p, 2), given(none, p, 3), LEARNED) for p in (True, False)]
    assert_same(*out, "queries without keys")


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("mask", [None, CAUSAL, torch.zeros(T, T).double().masked_fill(CAUSAL, -math.inf)])
def test_multihead_attention_with_weights(mask: Tensor | None, average: bool) -> None:
    torch.manual_seed(0)
    net = nn.MultiheadAttention(H * D, H, batch_first=True).double()
    results = []
    for packed in (True, False):
        x = given(ROWS["prefix"], packed).requires_grad_()
        out, weights = net(x, x, x, attn_mask=mask, average_attn_weights=average)
        assert out.is_packed == packed
        net.zero_grad()
        (out.filled(0).sin().sum() + weights.filled(0).cos().sum()).backward()
        results.append([out, weights, x.grad, *(p.grad.clone() for p in net.parameters())])
    for a, e in zip(*results, strict=True):
        assert_same(a, e, "weights")


def test_scores_are_a_packed_tensor_like_others() -> None:
    for rows in ROWS.values():
        p, x = given(rows, True), given(rows, False)
        scores, expected = (heads_first(y) @ heads_first(y).mT for y in (p, x))
        assert scores.is_packed
        views: list[Callable[..., Any]] = [
            lambda s: s,
            lambda s: s.transpose(2, 3),
            lambda s: s.flatten(0, 1).view(B, H, T, T).permute(1, 3, 0, 2),
            lambda s: s.mean(1),
            lambda s: s.sum(-1),
            lambda s: s.amax((1, 2)),
            lambda s: s.sum(),
            lambda s: s[:, 0],
            lambda s: s[..., 1:],
            lambda s: s.select(2, 1),
            lambda s: s.softmax(1),
            lambda s: s.softmax(2),
            lambda s: s.sort(-1).values,
            lambda s: s.argmax(-1),
            lambda s: s.diagonal(dim1=-2, dim2=-1),
            lambda s: s * s.transpose(-2, -1),
            lambda s: s + torch.ones(3, 1, 1, 1, 1),
            lambda s: s.unsqueeze(-1) * torch.ones(2),
            lambda s, p=p, x=x: s.mT @ heads_first(p if s.is_packed else x),
            lambda s: s @ torch.ones(T, 2).double(),
            lambda s: torch.stack([s, s]),
            lambda s: torch.cat([s, s], -1),
            lambda s: s.clone().float(),
            copy.deepcopy,
            lambda s: pickle.loads(pickle.dumps(s)),
            lambda s: pickle.loads(pickle.dumps(s)) + s,
            lambda s: s.unpacked() + s,
            lambda s: F.layer_norm(s, (T,)),
            lambda s: F.mse_loss(s, s.detach().sin()),
        ]
        for k, view in enumerate(views):
            assert_same(view(scores), view(expected), f"use {k}")
    with pytest.raises(ValueError, match="batch of sequences"):
        x.packed(like=scores)


def test_masked_entries_within_rows_are_unpacked() -> None:
    p, x = given(ROWS["prefix"], True), given(ROWS["prefix"], False)
    p, x = (mt.masked_tensor(y.get_data(), y.get_mask() & (y.filled(0) > -1)) for y in (p, x))
    assert_same(plainly(p.packed(), p.packed(), p.packed(), LEARNED), plainly(x, x, x, LEARNED), "scattered")


def test_derivatives() -> None:
    rows = ROWS["scattered"][:3, :4]

    def run(data: Tensor, bias: Tensor) -> Tensor:
        x = mt.as_masked_tensor(data, rows[..., None]).packed()
        scores = heads_first(x) @ heads_first(x).mT
        return ((scores + bias).softmax(-1) @ heads_first(x)).filled(0)

    data = torch.randn(3, 4, H * D, dtype=torch.float64, requires_grad=True)
    bias = LEARNED[:, :4, :4].clone().requires_grad_()
    assert torch.autograd.gradcheck(run, [data, bias], fast_mode=True)
    assert torch.autograd.gradgradcheck(run, [data, bias], fast_mode=True)


def test_bfloat16_and_autocast() -> None:
    q, k, v = (given(ROWS["prefix"], True, seed, torch.bfloat16) for seed in range(3))
    a, b, c = (given(ROWS["prefix"], False, seed, torch.bfloat16) for seed in range(3))
    assert_close(plainly(q, k, v, LEARNED), plainly(a, b, c, LEARNED))
    with torch.autocast("cpu", torch.bfloat16):
        assert_close(
            *(plainly(*(given(ROWS["prefix"], p, s, torch.float32) for s in range(3)), LEARNED) for p in (1, 0))
        )


def assert_close(actual: Any, expected: Any) -> None:
    assert actual.is_packed
    assert actual.dtype is expected.dtype is torch.bfloat16
    torch.testing.assert_close(actual.filled(0), expected.filled(0), rtol=0.05, atol=0.05)
