"""Models of transformers on flat tokens: each sequence as if it were alone."""

from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt

transformers = pytest.importorskip("transformers")

LENGTHS = [7, 3, 5]
SMALL: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "attention_dropout": 0.0, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
DECODER = {"num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
MODERN = {**SPECIAL, "local_attention": 4}
OPTIONS: dict[str, dict[str, Any]] = {
    "Llama": DECODER, "Mistral": {**DECODER, "sliding_window": 3}, "Gemma2": {**DECODER, "sliding_window": 3},
    "GptOss": {**DECODER, "sliding_window": 3, "num_local_experts": 4}, "GPT2": GPT2, "Bert": {}, "Roberta": {},
    "ModernBert": MODERN, "OPT": {"dropout": 0.0, "word_embed_proj_dim": 16, "ffn_dim": 32}, "Electra": {},
}  # fmt: skip


def make(name: str, head: str = "Model") -> Any:
    torch.manual_seed(0)
    kind = getattr(transformers, name + head)
    return kind(kind.config_class(**{**SMALL, **OPTIONS.get(name, {})}))


def batch(side: str = "right") -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    ids, time = torch.randint(3, 50, (3, 7)), torch.arange(7)
    lengths = torch.tensor(LENGTHS)[:, None]
    return ids, time >= 7 - lengths if side == "left" else time < lengths


@pytest.mark.parametrize("name", OPTIONS)
def test_hidden_states_and_gradients(name: str) -> None:
    model = make(name).eval()
    for side in ("right", "left"):
        ids, valid = batch(side)
        mt.flat(model, False)
        alone = [model(input_ids=row[mask][None]) for row, mask in zip(ids, valid, strict=True)]
        wanted = torch.cat([out.last_hidden_state[0] for out in alone])
        way = torch.randn_like(wanted)
        expected = torch.autograd.grad(wanted, list(model.parameters()), way, allow_unused=True)
        mt.flat(model)
        out = model(input_ids=mt.masked_tensor(ids.masked_fill(~valid, 0), valid), attention_mask=valid.long())
        assert torch.equal(out.last_hidden_state.mask[..., 0], valid)
        got = out.last_hidden_state.filled(0)[valid]
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-4)
        grads = torch.autograd.grad(got, list(model.parameters()), way, allow_unused=True)
        for a, b in zip(grads, expected, strict=True):
            assert (a is None) is (b is None)
            if a is not None and b is not None:
                torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)
        if getattr(out, "pooler_output", None) is not None:
            torch.testing.assert_close(out.pooler_output, torch.cat([o.pooler_output for o in alone]))


@pytest.mark.parametrize(
    ("name", "head", "classes"),
    [
        ("Llama", "ForCausalLM", 50), ("GPT2", "LMHeadModel", 50), ("OPT", "ForCausalLM", 50),
        ("Bert", "ForMaskedLM", 50), ("Roberta", "ForMaskedLM", 50), ("Bert", "ForTokenClassification", 2),
        ("Bert", "ForSequenceClassification", 2), ("Roberta", "ForSequenceClassification", 2),
    ],
)  # fmt: skip
def test_heads_with_labels(name: str, head: str, classes: int) -> None:
    model = make(name, head).double()
    ids, valid = batch()
    sequences = head == "ForSequenceClassification"
    labels = torch.randint(0, classes, (3,) if sequences else (3, 7))
    shifted = head in ("ForCausalLM", "LMHeadModel")
    loss, number = torch.zeros((), dtype=torch.float64), 0
    for row, length in enumerate(LENGTHS):
        weight = 1 if sequences else length - shifted
        told = labels[row : row + 1] if sequences else labels[row : row + 1, :length]
        loss = loss + model(input_ids=ids[row : row + 1, :length], labels=told).loss * weight
        number += weight
    expected = torch.autograd.grad(loss / number, list(model.parameters()), allow_unused=True)
    mt.flat(model)
    x = mt.masked_tensor(ids.masked_fill(~valid, 0), valid)
    for told in (labels,) if sequences else (labels, mt.masked_tensor(labels, valid)):
        out = model(input_ids=x, labels=told)
        torch.testing.assert_close(out.loss, loss / number, atol=1e-6, rtol=1e-6, check_dtype=False)
        got = torch.autograd.grad(out.loss, list(model.parameters()), allow_unused=True)
        for a, b in zip(got, expected, strict=True):
            if a is not None and b is not None:
                torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-5)  # a causal loss is one of float32
    if not sequences and not shifted:  # a loss by hand over the masked logits
        logits = model(input_ids=x).logits.flatten(0, 1)
        by_hand = torch.nn.functional.cross_entropy(logits, mt.masked_tensor(labels, valid).flatten())
        torch.testing.assert_close(by_hand.filled(0), (loss / number).detach(), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "head"), [("Bloom", "Model"), ("DebertaV2", "Model"), ("Llama", "ForSequenceClassification")]
)
def test_what_cannot_be_flat_raises(name: str, head: str) -> None:
    model = mt.flat(make(name, head))
    ids, valid = batch()
    with pytest.raises(mt.UnsupportedOpError, match="does not keep sequences apart"):
        model(input_ids=mt.masked_tensor(ids, valid))


def test_a_model_is_as_it_was_when_flat_is_undone() -> None:
    model = make("Llama")
    kind, config, chosen = type(model), type(model.config), model.config._attn_implementation
    ids, valid = batch()
    before = model.eval()(input_ids=ids, attention_mask=valid.long()).last_hidden_state
    mt.flat(model)
    assert torch.equal(model(input_ids=ids, attention_mask=valid.long()).last_hidden_state, before)
    assert model.config._attn_implementation == chosen
    model.config.to_dict()
    mt.flat(model, False)
    assert (type(model), type(model.config)) == (kind, config)


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing(reentrant: bool) -> None:
    model = mt.flat(make("Gemma2").train())
    ids, valid = batch()
    x, grads = mt.masked_tensor(ids, valid), []
    for saving in (False, True):
        if saving:
            model.activation_checkpointing_enable({"use_reentrant": reentrant})
            model.enable_input_require_grads()
        model.zero_grad()
        model(input_ids=x).last_hidden_state.square().mean().backward()
        grads.append([p.grad for p in model.parameters()])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


class HandedOn(torch.nn.Module):
    """What hands on any argument, as adapters do."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, **given: Any) -> Any:
        return self.model(**given).last_hidden_state


def test_a_model_that_is_handed_its_arguments_is_told_positions() -> None:
    model = make("Bert").eval()
    ids, valid = batch("left")
    alone = [model(input_ids=row[mask][None]).last_hidden_state[0] for row, mask in zip(ids, valid, strict=True)]
    out = mt.flat(HandedOn(model))(input_ids=mt.masked_tensor(ids, valid))
    torch.testing.assert_close(out.filled(0)[valid], torch.cat(alone), atol=1e-5, rtol=1e-4)
