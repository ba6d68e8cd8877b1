"""nn's Transformer and an MLP, unmodified, over padded batches with NaN under the mask, without a mask argument."""

import itertools

import pytest
import torch
from torch import nn

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

from .helpers.harness import Masked, assert_same

NAN = float("nan")
BATCH, TIME, WIDTH = 3, 6, 8


def batch(time=TIME, lengths=(TIME, 3, 5), dtype=torch.float64, seed=0):
    """Padded data, its row mask, and the masked tensor with NaN in the padding."""
    generator = torch.Generator().manual_seed(seed)
    valid = torch.arange(time) < torch.tensor(lengths)[:, None]
    data = torch.randn(len(lengths), time, WIDTH, generator=generator, dtype=dtype)
    x = mt.as_masked_tensor(data.masked_fill(~valid[..., None], NAN), valid[..., None].expand(data.shape))
    return data.masked_fill(~valid[..., None], 0), valid, x


def loss(out: torch.Tensor, target: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Mean squared error over the valid rows, written so that it serves both."""
    return ((out - target).square() * valid[..., None]).sum() / (valid.sum() * WIDTH)


def assert_same_training(model, plain, masked, valid, tolerance=1e-6):
    """Same loss, same parameter gradients; all plain."""
    target = torch.randn(*valid.shape, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    target = target.to(next(model.parameters()).dtype)
    expected = loss(plain(), target, valid)
    expected.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    out = masked()
    assert torch.equal(pair_of(out).mask, valid[..., None].expand(out.shape))
    actual = loss(out, target, valid)
    torch.testing.assert_close(pair_of(actual).data, expected, rtol=tolerance, atol=tolerance)
    actual.backward()
    for name, parameter in model.named_parameters():
        assert type(parameter.grad) is torch.Tensor, name
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=tolerance, atol=tolerance, msg=name)
    model.zero_grad()


def encoder(layers=2, **keywords) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, dtype=torch.float64, **keywords)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


@pytest.mark.parametrize(
    ("train", "norm_first", "batch_first"), list(itertools.product([True, False], [True, False], [True, False]))
)
def test_encoder(train, norm_first, batch_first):
    zero, valid, x = batch()
    model = encoder(norm_first=norm_first, batch_first=batch_first).train(train)
    turned = (lambda t: t) if batch_first else (lambda t: t.transpose(0, 1))
    assert_same_training(
        model,
        lambda: turned(model(turned(zero), src_key_padding_mask=~valid)),
        lambda: turned(model(turned(x))),
        valid,
    )


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("given", ["nothing", "padding", "causal", "both"])
def test_encoder_fast_path(norm_first, activation, given):
    zero, valid, x = batch()
    model = encoder(norm_first=norm_first, batch_first=True, activation=activation).eval()
    causal = nn.Transformer.generate_square_subsequent_mask(TIME, dtype=torch.float64) == -torch.inf
    mask = causal if given in ("causal", "both") else None
    padding = ~valid if given in ("padding", "both") else None
    expected = model(zero, mask=mask, src_key_padding_mask=~valid).detach()
    with torch.no_grad():
        out = model(x, mask=mask, src_key_padding_mask=padding)
    assert_same(out, Masked(expected, valid[..., None].expand(expected.shape)), given)
    with torch.inference_mode():
        assert_same(model(x, mask=mask, src_key_padding_mask=padding), seen(out), "inference mode")


def seen(out):
    pair = pair_of(out)
    return Masked(pair.data, pair.mask)


def test_encoder_with_nested_tensors_enabled():
    zero, valid, x = batch()
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True, dtype=torch.float64)
    model = nn.TransformerEncoder(layer, 2).eval()
    expected = model(zero, src_key_padding_mask=~valid).detach()
    with torch.no_grad():
        for options in ({}, {"src_key_padding_mask": ~valid}):
            assert_same(model(x, **options), Masked(expected, valid[..., None].expand(expected.shape)), str(options))


def test_encoder_in_single_precision():
    zero, valid, x = batch(dtype=torch.float32)
    model = encoder(batch_first=True).float()
    assert_same_training(model, lambda: model(zero, src_key_padding_mask=~valid), lambda: model(x), valid, 1e-5)


def test_encoder_does_not_depend_on_padding():
    x = batch()[2]
    model = encoder(batch_first=True)
    out = pair_of(model(x)).data
    for row, length in enumerate((TIME, 3, 5)):
        alone = model(x[row : row + 1, :length].filled(0))
        torch.testing.assert_close(out[row, :length], alone[0])


def test_encoder_with_left_padding_and_masked_entries():
    generator = torch.Generator().manual_seed(1)
    valid = torch.rand(BATCH, TIME, generator=generator) < 0.6
    valid[1] = False
    data = torch.randn(BATCH, TIME, WIDTH, generator=generator, dtype=torch.float64)
    x = mt.as_masked_tensor(data.masked_fill(~valid[..., None], NAN), valid[..., None].expand(data.shape))
    model = encoder(batch_first=True)
    out = model(x.requires_grad_())
    assert torch.equal(pair_of(out).mask, valid[..., None].expand(data.shape))
    for row in (0, 2):
        torch.testing.assert_close(pair_of(out).data[row][valid[row]], model(data[row][valid[row]][None])[0])
    out.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert (pair_of(x.grad).data[~valid] == 0).all()


@pytest.mark.parametrize(("train", "norm_first"), list(itertools.product([True, False], [True, False])))
def test_decoder(train, norm_first):
    zero, valid, x = batch()
    memory, seen_keys, m = batch(7, (2, 7, 4), seed=1)
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(
        WIDTH, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    model = nn.TransformerDecoder(layer, 2).train(train)
    causal = nn.Transformer.generate_square_subsequent_mask(TIME, dtype=torch.float64)
    assert_same_training(
        model,
        lambda: model(
            zero,
            memory,
            tgt_mask=causal,
            tgt_is_causal=True,
            tgt_key_padding_mask=torch.zeros_like(valid, dtype=torch.float64).masked_fill(~valid, -torch.inf),
            memory_key_padding_mask=~seen_keys,
        ),
        lambda: model(x, m, tgt_mask=causal, tgt_is_causal=True),
        valid,
    )
    with torch.no_grad():
        expected = model(zero, memory, tgt_key_padding_mask=~valid, memory_key_padding_mask=~seen_keys)
        assert_same(model(x, m), Masked(expected, valid[..., None].expand(expected.shape)), "no_grad")


@pytest.mark.parametrize("train", [True, False])
def test_transformer(train):
    source, source_valid, s = batch(7, (2, 7, 4), seed=1)
    target, valid, t = batch()
    torch.manual_seed(0)
    model = nn.Transformer(WIDTH, 2, 1, 1, 16, dropout=0.0, batch_first=True, dtype=torch.float64).train(train)
    hidden = {
        "src_key_padding_mask": ~source_valid,
        "tgt_key_padding_mask": ~valid,
        "memory_key_padding_mask": ~source_valid,
    }
    assert_same_training(model, lambda: model(source, target, **hidden), lambda: model(s, t), valid)


@pytest.mark.parametrize("train", [True, False])
def test_mlp(train):
    zero, valid, x = batch()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, WIDTH)).double().train(train)
    assert_same_training(model, lambda: model(zero), lambda: model(x), valid)


def test_optimizer_step_with_embedded_tokens_and_dropout():
    """Ids, some of them masked, to a loss: every part of a small language model, with dropout."""
    torch.manual_seed(0)
    ids = torch.randint(0, 20, (BATCH, TIME))
    valid = batch()[1]
    x = mt.as_masked_tensor(ids.masked_fill(~valid, -100), valid)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.3, batch_first=True)
    model = nn.Sequential(nn.Embedding(20, WIDTH), nn.TransformerEncoder(layer, 2), nn.Linear(WIDTH, 20))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    before = None
    for _ in range(30):
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(model(x).transpose(1, 2), x)
        value.backward()
        optimizer.step()
        before = before or float(value)
    assert float(value) < before / 2
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_encoder(dynamic):
    zero, valid, x = batch()
    model = encoder(layers=1, batch_first=True)
    torch._dynamo.reset()
    run = torch.compile(lambda t: model(t), fullgraph=True, backend="aot_eager", dynamic=dynamic)
    assert_same_training(model, lambda: model(zero, src_key_padding_mask=~valid), lambda: run(x), valid)


def test_checkpointed_encoder():
    zero, valid, x = batch()
    model = encoder(batch_first=True)
    run = torch.utils.checkpoint.checkpoint
    assert_same_training(
        model,
        lambda: model(zero, src_key_padding_mask=~valid),
        lambda: run(model, x, use_reentrant=False),
        valid,
    )
