"""Attention on the fused kernels and in nn.MultiheadAttention, against a softmax over the visible keys alone."""

import itertools
import math
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

from .helpers.harness import PAYLOADS, Masked, assert_same
from .laws import laws
from .oracles.attention import attend

NAN = float("nan")
BATCH, HEADS, QUERIES, KEYS, WIDTH = 3, 2, 4, 5, 4


def inputs(pattern: str, dtype=torch.float64, heads: tuple[int, int] = (HEADS, HEADS)) -> list[Masked]:
    generator = torch.Generator().manual_seed(1)
    result = []
    for size, count in ((QUERIES, heads[0]), (KEYS, heads[1]), (KEYS, heads[1])):
        shape = (BATCH, count, size, WIDTH)
        data = torch.randn(shape, generator=generator, dtype=dtype)
        if pattern == "padding":
            mask = (torch.arange(size) < torch.tensor([size, 2, 0])[:, None])[:, None, :, None].expand(shape)
        elif pattern == "rows":
            mask = (torch.rand(BATCH, count, size, 1, generator=generator) < 0.6).expand(shape)
        else:
            mask = torch.rand(shape, generator=generator) < 0.4
        result.append(Masked(data, mask))
    return result


def build(values: list[Masked], payload: float | None) -> list[mt.MaskedTensor]:
    made = []
    for x in values:
        if payload is None:
            made.append(mt.masked_tensor(x.data, x.mask).requires_grad_())
        else:
            made.append(mt.as_masked_tensor(x.data.masked_fill(~x.mask, payload), x.mask).requires_grad_())
    return made


def user_mask(kind: str, causal: bool) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:
    """The argument, and the same as visibility and summand."""
    visible = torch.ones(QUERIES, KEYS, dtype=torch.bool)
    added = torch.zeros(QUERIES, KEYS, dtype=torch.float64)
    if causal:
        visible = visible.tril()
    if kind == "none":
        return None, visible, added
    hidden = torch.rand(QUERIES, KEYS, generator=torch.Generator().manual_seed(2)) < 0.4
    if kind == "bool":
        return ~hidden, visible & ~hidden, added
    added = torch.randn(QUERIES, KEYS, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return added.masked_fill(hidden, -torch.inf), visible & ~hidden, added


@pytest.mark.parametrize("payload", [None, *PAYLOADS])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["none", "bool", "float"])
@pytest.mark.parametrize("pattern", ["padding", "rows", "entries"])
def test_scaled_dot_product_attention(pattern, kind, causal, payload):
    values = inputs(pattern)
    argument, visible, added = user_mask(kind, causal)
    built = build(values, payload)
    out = F.scaled_dot_product_attention(*built, attn_mask=argument, is_causal=causal)
    leaves = [x.data.clone().requires_grad_() for x in values]
    expected = attend(*(Masked(d, x.mask) for d, x in zip(leaves, values, strict=True)), visible, added)
    assert_same(out, Masked(expected.data.detach(), expected.mask), pattern)
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    (out * weight).sum().backward()
    torch.where(expected.mask, expected.data * weight, 0).sum().backward()
    for x, leaf in zip(built, leaves, strict=True):
        gradient = pair_of(x.grad)
        torch.testing.assert_close(gradient.data, leaf.grad)
        assert (gradient.data[~gradient.mask] == 0).all()


def test_gradcheck():
    values = inputs("rows")

    def attention(*data):
        made = [mt.as_masked_tensor(d, x.mask) for d, x in zip(data, values, strict=True)]
        return (F.scaled_dot_product_attention(*made) * 1).sum().filled(0)

    assert torch.autograd.gradcheck(attention, [x.data.requires_grad_() for x in values], fast_mode=True)


@pytest.mark.parametrize("pattern", ["padding", "rows", "entries"])
def test_grouped_queries(pattern):
    values = inputs(pattern, heads=(4, 2))
    q, k, v = values
    wide = [q, *(Masked(x.data.repeat_interleave(2, 1), x.mask.repeat_interleave(2, 1)) for x in (k, v))]
    expected = attend(*wide, torch.tensor(True), torch.tensor(0.0, dtype=torch.float64))
    assert_same(F.scaled_dot_product_attention(*build(values, NAN), enable_gqa=True), expected, pattern)


def test_a_masked_user_mask_hides_its_masked_entries():
    q, k, v = inputs("padding")
    visible = torch.rand(QUERIES, KEYS, generator=torch.Generator().manual_seed(5)) < 0.7
    known = torch.rand(QUERIES, KEYS, generator=torch.Generator().manual_seed(6)) < 0.7
    given = mt.as_masked_tensor(visible | ~known, known)
    zero = torch.tensor(0.0, dtype=torch.float64)
    expected = attend(q, k, v, visible & known, zero)
    assert_same(F.scaled_dot_product_attention(*build([q, k, v], NAN), attn_mask=given), expected, "bool")
    added = mt.as_masked_tensor(torch.where(known, 0.5, NAN).double(), known)
    expected = attend(q, k, v, known, zero)
    assert_same(F.scaled_dot_product_attention(*build([q, k, v], NAN), attn_mask=added), expected, "float")


def test_only_one_operand_is_masked():
    values = inputs("rows")
    zero, everything = torch.tensor(0.0, dtype=torch.float64), torch.tensor(True)
    for place in range(3):
        made = [x.data for x in values]
        made[place] = build(values, NAN)[place]
        whole = [Masked(x.data, torch.ones_like(x.mask)) for x in values]
        whole[place] = values[place]
        expected = attend(*whole, everything, zero)
        assert_same(F.scaled_dot_product_attention(*made), expected, f"operand {place}")
        plain = [x.detach().requires_grad_() if not isinstance(x, mt.MaskedTensor) else x for x in made]
        F.scaled_dot_product_attention(*plain).sum().backward()
        assert all(type(x.grad) is torch.Tensor and x.grad.isfinite().all() for x in plain if type(x) is torch.Tensor)


def test_the_kernel_gets_a_compact_mask(monkeypatch):
    seen = []
    kernel = F.scaled_dot_product_attention
    from masked_tensor.rules import attention

    def spy(*args, **kwargs):
        seen.append(args[3])
        return kernel(*args, **kwargs)

    monkeypatch.setattr(attention.torch.nn.functional, "scaled_dot_product_attention", spy)
    x = build(inputs("padding"), None)
    torch.ops.aten.scaled_dot_product_attention(*x)
    assert seen[0].shape == (BATCH, 1, 1, KEYS)


def test_dropout_draws_the_numbers_of_the_plain_op():
    shape = (2, 2, 16, 8)
    q, k, v = (torch.randn(shape) for _ in range(3))
    everything = torch.ones((), dtype=torch.bool).expand(shape)
    torch.manual_seed(0)
    expected = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    torch.manual_seed(0)
    masked = [mt.as_masked_tensor(x, everything) for x in (q, k, v)]
    torch.testing.assert_close(pair_of(F.scaled_dot_product_attention(*masked, dropout_p=0.5)).data, expected)


def test_half_precision_and_scale():
    q, k, v = inputs("padding", torch.float32)
    low = [Masked(x.data.bfloat16(), x.mask) for x in (q, k, v)]
    out = pair_of(F.scaled_dot_product_attention(*build(low, NAN), scale=0.5))
    expected = attend(Masked(q.data * 0.5 * WIDTH**0.5, q.mask), k, v, torch.tensor(True), torch.tensor(0.0))
    assert out.data.dtype is torch.bfloat16
    assert torch.equal(out.mask, expected.mask)
    torch.testing.assert_close(out.data[out.mask].float(), expected.data[out.mask], rtol=3e-2, atol=3e-2)


def test_the_unfused_form_returns_the_weights():
    q, k, v = inputs("padding")
    out, weights = torch.ops.aten._scaled_dot_product_attention_math(*build([q, k, v], NAN))
    assert_same(out, attend(q, k, v, torch.tensor(True), torch.tensor(0.0).double()), "output")
    pair = pair_of(weights)
    both = q.mask[..., :1] & k.mask[..., :1].mT
    assert torch.equal(pair.mask, both)
    sums = torch.where(pair.mask, pair.data, 0).sum(-1)
    torch.testing.assert_close(sums, both.any(-1).double())


# ------------------------------------------------------------------------------------------- nn.MultiheadAttention

MODULE = list(itertools.product([True, False], [True, False], [True, False]))


def attention_module(**keywords) -> nn.MultiheadAttention:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, dtype=torch.float64, **keywords)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module


def padded_batch(batch_first: bool):
    lengths = torch.tensor([6, 3, 5])
    valid = torch.arange(6) < lengths[:, None]
    data = torch.randn(3, 6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mask = valid.unsqueeze(-1).expand(data.shape)
    if not batch_first:
        data, mask = data.transpose(0, 1), mask.transpose(0, 1)
    return data, mask, valid


def against_plain(module, need_weights, average, batch_first, train, **arguments):
    data, mask, valid = padded_batch(batch_first)
    module.train(train)
    options = {"need_weights": need_weights, "average_attn_weights": average, **arguments}
    plain_options = dict(options)
    plain_options.pop("key_padding_mask", None)
    zero = data.masked_fill(~mask, 0)
    expected, weights = module(zero, zero, zero, key_padding_mask=~valid, **plain_options)
    expected[mask].square().sum().backward()
    gradients = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    x = mt.as_masked_tensor(data.masked_fill(~mask, NAN), mask)
    out, seen = module(x, x, x, **options)
    assert_same(out, Masked(expected.detach(), mask), "output")
    out.square().sum().backward()
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        assert type(parameter.grad) is torch.Tensor
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-6, atol=1e-6)
    if need_weights:
        pair = pair_of(seen)
        torch.testing.assert_close(pair.data[pair.mask], weights.detach()[pair.mask])
        assert (weights[~pair.mask & valid.view(3, *[1] * (weights.dim() - 3), 6, 1)] == 0).all()
    module.zero_grad()
    with torch.no_grad():
        assert_same(module(x, x, x, **options)[0], Masked(expected.detach(), mask), "without gradient")


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(("need_weights", "average", "batch_first"), MODULE)
def test_multihead_attention(need_weights, average, batch_first, train):
    against_plain(attention_module(batch_first=batch_first), need_weights, average, batch_first, train)


@pytest.mark.parametrize("keywords", [{"add_bias_kv": True}, {"add_zero_attn": True}, {"bias": False}])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_options(keywords, need_weights):
    against_plain(attention_module(batch_first=True, **keywords), need_weights, True, True, True)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("train", [True, False])
def test_multihead_attention_with_masks_also_given(need_weights, train):
    causal = torch.ones(6, 6, dtype=torch.bool).triu(1)
    valid = padded_batch(True)[2]
    module = attention_module(batch_first=True)
    against_plain(module, need_weights, True, True, train, attn_mask=causal, key_padding_mask=~valid)
    against_plain(module, need_weights, True, True, train, attn_mask=causal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own: two kinds of masks
        added = torch.randn(6, 6, dtype=torch.float64)
        against_plain(module, need_weights, True, True, train, attn_mask=added)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("train", [True, False])
def test_multihead_attention_unbatched(need_weights, train):
    module = attention_module().train(train)
    data = torch.randn(6, 8, dtype=torch.float64)
    x = mt.as_masked_tensor(
        torch.cat([data, torch.full((2, 8), NAN)]), (torch.arange(8) < 6).unsqueeze(-1).expand(8, 8)
    )
    expected, weights = module(data, data, data, need_weights=need_weights)
    out, seen = module(x, x, x, need_weights=need_weights)
    torch.testing.assert_close(pair_of(out).data[:6], expected)
    assert not pair_of(out).mask[6:].any()
    if need_weights:
        torch.testing.assert_close(pair_of(seen).data[:6, :6], weights)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("train", [True, False])
def test_a_fully_padded_sequence_is_masked_with_zero_gradient(need_weights, train):
    module = attention_module(batch_first=True).train(train)
    mask = torch.tensor([True, False])[:, None, None].expand(2, 4, 8)
    x = mt.as_masked_tensor(torch.randn(2, 4, 8, dtype=torch.float64).masked_fill(~mask, NAN), mask).requires_grad_()
    out, _ = module(x, x, x, need_weights=need_weights)
    assert torch.equal(pair_of(out).mask, mask)
    out.sum().backward()
    assert (pair_of(x.grad).data[1] == 0).all()
    assert all(p.grad.isfinite().all() for p in module.parameters())
    with torch.no_grad():
        out, _ = module(x, x, x, need_weights=need_weights)
    assert torch.equal(pair_of(out).mask, mask)
    assert pair_of(out).data[0].isfinite().all()


@pytest.mark.parametrize("need_weights", [True, False])
def test_cross_attention_over_a_padded_memory(need_weights):
    module = attention_module(batch_first=True, kdim=5, vdim=3)
    query = torch.randn(2, 4, 8, dtype=torch.float64)
    key, value = torch.randn(2, 6, 5, dtype=torch.float64), torch.randn(2, 6, 3, dtype=torch.float64)
    valid = torch.arange(6) < torch.tensor([6, 2])[:, None]
    made = [
        mt.as_masked_tensor(x.masked_fill(~valid[..., None], NAN), valid[..., None].expand(x.shape))
        for x in (key, value)
    ]
    expected, _ = module(query, key, value, key_padding_mask=~valid, need_weights=need_weights)
    out, _ = module(query, *made, need_weights=need_weights)
    assert_same(out, expected, "cross attention")


def test_inf_in_a_plain_value_at_a_masked_key_stays_there() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 3, 4) for _ in range(3))
    v[..., 2, :] = float("inf")
    valid = torch.tensor([True, True, False]).view(1, 1, 3, 1).expand(1, 1, 3, 4)
    out = F.scaled_dot_product_attention(q, mt.as_masked_tensor(k, valid), v)
    torch.testing.assert_close(out.filled(0), F.scaled_dot_product_attention(q, k[:, :, :2], v[:, :, :2]))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("how", ["key_padding_mask", "attn_mask", "both"])
def test_a_query_whose_valid_keys_are_all_hidden_is_a_masked_entry_without_a_gradient(how, train, need_weights):
    """Row 0 has one valid key, which a plain mask hides; row 1 has two, of which one is seen."""
    module = attention_module(batch_first=True).train(train)
    x = mt.from_lengths(torch.randn(2, 3, 8, dtype=torch.float64), [1, 2]).requires_grad_()
    hidden = torch.zeros(2, 3, dtype=torch.bool)
    hidden[:, 0] = True
    masks = {"key_padding_mask": hidden if how != "attn_mask" else None}
    masks["attn_mask"] = None if how == "key_padding_mask" else hidden[0].expand(3, 3)
    out, weights = module(x, x, x, need_weights=need_weights, **masks)
    assert out.get_mask()[..., 0].tolist() == [[False] * 3, [True, True, False]]
    assert out.compressed().isfinite().all()
    if need_weights:
        assert not weights.get_mask()[0].any()
        assert weights[1, :2, 1].tolist() == [1.0, 1.0]
    (out * out).sum().backward()
    assert (x.grad.filled(1)[0, :1] == 0).all()
    assert x.grad.filled(0).isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


def test_an_added_inf_stays_a_value_beside_what_is_seen():
    q, k = (mt.masked_tensor(torch.ones(1, 2, 3), torch.tensor([[[True], [n]]])) for n in (True, False))
    hides = torch.tensor([[[-math.inf, 0.0], [0.0, -math.inf]]])
    scores = torch.baddbmm(hides, q, k.mT)
    assert scores.tolist() == [[[None, None], [3.0, None]]]
    assert torch.baddbmm(hides, q, q.mT).tolist() == [[[-math.inf, 3.0], [3.0, -math.inf]]]
    assert torch.baddbmm(hides, q, k.mT, beta=0).tolist() == [[[3.0, None], [3.0, None]]]


test_law = laws("attention")


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("given", [{}, {"key_mask": torch.tensor([True, False])}])
def test_sparse_operands_get_one_error_that_names_the_way(
    layout: torch.layout, masked: bool, given: dict[str, torch.Tensor]
) -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse(layout=layout)
    x = mt.masked_invalid(x) if masked else x
    way = rf"scaled_dot_product_attention does not support {layout} inputs; use input.to_dense\(\)"
    for place in range(3):
        operands = [torch.ones(2, 2) if k != place else x for k in range(3)]
        with pytest.raises(mt.UnsupportedOpError, match=way):
            mt.scaled_dot_product_attention(*operands, **given)
