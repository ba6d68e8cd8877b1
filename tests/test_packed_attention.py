"""Attention on packed rows equals the strided one: values, validity, every gradient; NaN in what is not stored."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor import settings

B, H, T, D = 4, 2, 5, 3
GENERATOR = torch.Generator().manual_seed(2)
ROWS = {
    "prefix": torch.arange(T) < torch.tensor([[5], [3], [3], [1]]),
    "full": torch.ones(B, T, dtype=torch.bool),
    "suffix": (torch.arange(T) < torch.tensor([[5], [3], [4], [2]])).flip(1),
    "scattered": torch.tensor([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 1]], dtype=torch.bool),
}
HIDES = -float("inf")
MASKS = {
    "none": None,
    "bool": torch.rand(T, T, generator=GENERATOR) < 0.6,
    "bool by batch": torch.rand(B, 1, T, T, generator=GENERATOR) < 0.5,
    "bias by head": torch.randn(1, H, T, T, dtype=torch.float64, generator=GENERATOR),
    "bias": torch.randn(B, H, T, T, dtype=torch.float64, generator=GENERATOR),
    "hidden keys": torch.zeros(B, 1, 1, T)
    .double()
    .masked_fill(torch.rand(B, 1, 1, T, generator=GENERATOR) < 0.4, HIDES),
}


def attend(rows: Tensor, mask: Tensor | None, packed: bool, causal: bool = False, gqa: bool = False) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    inputs = []
    for heads in (2 * H, H, H) if gqa else (H, H, H):
        data = torch.randn(B, T, heads, D, dtype=torch.float64, generator=generator)
        x = mt.as_masked_tensor(data.masked_fill(~rows[:, :, None, None], float("nan")), rows[:, :, None, None])
        inputs.append((x.packed() if packed else x).requires_grad_())
    bias = mask.clone().requires_grad_(mask.dtype is not torch.bool) if mask is not None else None
    heads_first = [x.transpose(1, 2) for x in inputs]
    with mt.extend.packing_report() as report:
        out = F.scaled_dot_product_attention(*heads_first, attn_mask=bias, is_causal=causal, enable_gqa=gqa)
    assert out.is_packed == packed
    assert not report
    out.filled(0).sin().sum().backward()
    learned = [bias.grad] if bias is not None and bias.requires_grad else []
    return [out.filled(0).detach(), out.get_mask(), *(x.grad.filled(0) for x in inputs), *learned]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("mask", MASKS)
def test_masks_and_biases(rows: str, mask: str) -> None:
    torch.testing.assert_close(attend(ROWS[rows], MASKS[mask], True), attend(ROWS[rows], MASKS[mask], False))


@pytest.mark.parametrize(("rows", "causal"), [*itertools.product(ROWS, [False, True])])
def test_causal_and_grouped_queries(rows: str, causal: bool) -> None:
    packed, strided = (attend(ROWS[rows], None, p, causal, gqa=True) for p in (True, False))
    torch.testing.assert_close(packed, strided)


def test_cross_attention() -> None:
    results = []
    for packed in (True, False):
        torch.manual_seed(0)
        q, k = mt.from_lengths(torch.randn(3, 4, 2, 3), [4, 2, 2]), mt.from_lengths(torch.randn(3, 6, 2, 3), [1, 6, 3])
        q, k = (x.packed() if packed else x for x in (q, k))
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), k.transpose(1, 2))
        assert out.is_packed == packed
        results.append([out.filled(0), out.get_mask()])
    torch.testing.assert_close(*results)


def test_a_sequence_without_a_key_takes_the_strided_rule() -> None:
    q, k = (
        mt.from_lengths(torch.randn(2, 4, 3), [4, 2]).packed(),
        mt.from_lengths(torch.randn(2, 6, 3), [0, 6]).packed(),
    )
    out = F.scaled_dot_product_attention(q, k, k)
    assert out.get_mask().any(-1).tolist() == [[False] * 4, [True, True, False, False]]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_encoder_layer_of_nn(batch_first: bool, mode: str) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=batch_first).double().train(mode == "train")
    x = mt.from_lengths(torch.randn(3, 5, 8, dtype=torch.float64), [5, 2, 3])
    results = []
    for given in (x.packed(), x):
        layer.zero_grad()
        with torch.set_grad_enabled(mode == "train"):
            out = layer(given if batch_first else given.transpose(0, 1))
        if mode == "train":
            (out**2).sum().backward()
        results.append(
            [out.filled(0).detach(), out.get_mask(), *(p.grad for p in layer.parameters() if mode == "train")]
        )
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_fused_encoder_layer_stays_packed(norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, norm_first=norm_first, batch_first=True).eval()
    x = mt.from_lengths(torch.randn(3, 5, 8), [5, 2, 3])
    with torch.no_grad(), mt.extend.packing_report() as report:
        out = layer(x.packed())
    assert out.is_packed
    assert not report
    torch.testing.assert_close(out.filled(0), layer(x).detach().filled(0))


@pytest.mark.parametrize(("rows", "causal", "gqa"), [*itertools.product(ROWS, [False, True], [False, True])])
def test_one_call_and_one_for_each_length_give_the_same(
    rows: str, causal: bool, gqa: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = []
    for number in (0, 1 << 40):
        monkeypatch.setattr(settings, "TOGETHER", number)
        both.append(attend(ROWS[rows], None, True, causal, gqa=gqa))
    torch.testing.assert_close(*both)


@pytest.mark.parametrize("causal", [False, True])
def test_of_one_call_second_derivatives_and_dropout(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "TOGETHER", 1 << 40)

    def run(x: Tensor, dropout: float = 0.0) -> Tensor:
        y = mt.as_masked_tensor(x, ROWS["suffix"][:, None, :, None]).packed((0, 2))
        return F.scaled_dot_product_attention(y, y, y, dropout_p=dropout, is_causal=causal).filled(0)

    x = torch.randn(B, H, T, D, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(run(x).sin().sum(), x, create_graph=True)
    torch.testing.assert_close(first, torch.autograd.grad(run(x).sin().sum(), x)[0])
    monkeypatch.setattr(settings, "TOGETHER", 0)
    (apart,) = torch.autograd.grad(run(x).sin().sum(), x, create_graph=True)
    second = [torch.autograd.grad(g.square().sum(), x)[0] for g in (first, apart)]
    torch.testing.assert_close(*second)
    monkeypatch.setattr(settings, "TOGETHER", 1 << 40)
    kept = run(x, 0.5)
    assert not torch.allclose(kept, run(x, 0.5))
    kept.sum().backward()
    assert x.grad.isfinite().all()
    assert x.grad[~ROWS["suffix"][:, None, :].expand(B, H, T)].eq(0).all()


def test_in_one_call_a_value_that_is_nan_stays_in_its_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number in (0, 1 << 40):
        monkeypatch.setattr(settings, "TOGETHER", number)
        x = torch.randn(B, 1, T, D, generator=torch.Generator().manual_seed(0))
        x[1, 0, 0] = float("nan")
        x.requires_grad_()
        y = mt.as_masked_tensor(x, ROWS["prefix"][:, None, :, None]).packed((0, 2))
        out = F.scaled_dot_product_attention(y, y, y).filled(0)
        found.append((out.detach(), *torch.autograd.grad(out.sum(), x)))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)
    assert found[0][0].isnan().flatten(1).any(1).tolist() == [False, True, False, False]
