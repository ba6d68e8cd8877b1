"""Models of transformers on flat tokens: each sequence as if it were alone."""

import copy
import pickle
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
GPT2 = {
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "pad_token_id": 0,
}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
MODERN = {**SPECIAL, "local_attention": 4}
OPTIONS: dict[str, dict[str, Any]] = {
    "Llama": DECODER,
    "Mistral": {**DECODER, "sliding_window": 3},
    "Gemma2": {**DECODER, "sliding_window": 3},
    "GptOss": {**DECODER, "sliding_window": 3, "num_local_experts": 4},
    "GPT2": GPT2,
    "Bert": {},
    "Roberta": {},
    "ModernBert": MODERN,
    "OPT": {"dropout": 0.0, "word_embed_proj_dim": 16, "ffn_dim": 32},
    "Electra": {},
    "Albert": {"embedding_size": 16, "classifier_dropout_prob": 0.0},
}
#: Attention of their own, or positions that are counted from sizes: parts of these run apart.
APART: dict[str, dict[str, Any]] = {
    "Bloom": {"n_layer": 2, "n_head": 2, "hidden_dropout": 0.0}, "DebertaV2": {"relative_attention": True,
    "pos_att_type": ["c2p", "p2c"]}, "Mpt": {"d_model": 16, "n_layers": 2, "n_heads": 2, "expansion_ratio": 2},
    "MPNet": {}, "Esm": {"pad_token_id": 0, "mask_token_id": 4}, "GPTJ": {**GPT2, "rotary_dim": 4},
    "Mamba": {"state_size": 4}, "T5Encoder": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "dropout_rate": 0.0},
}  # fmt: skip


def make(name: str, head: str = "Model") -> Any:
    torch.manual_seed(0)
    kind = getattr(transformers, name + head)
    return kind(kind.config_class(**{**SMALL, **(OPTIONS | APART).get(name, {})}))


def batch(side: str = "right") -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    ids, time = torch.randint(3, 50, (3, 7)), torch.arange(7)
    lengths = torch.tensor(LENGTHS)[:, None]
    return ids, time >= 7 - lengths if side == "left" else time < lengths


@pytest.mark.parametrize("name", [*OPTIONS, *APART])
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
        assert any("flat_apart" in part.__dict__ for part in model.modules()) is (name in APART)
        if getattr(out, "pooler_output", None) is not None:
            torch.testing.assert_close(out.pooler_output, torch.cat([o.pooler_output for o in alone]))


@pytest.mark.parametrize(
    ("name", "head", "classes"),
    [
        ("Llama", "ForCausalLM", 50), ("GPT2", "LMHeadModel", 50), ("OPT", "ForCausalLM", 50),
        ("Bert", "ForMaskedLM", 50), ("Roberta", "ForMaskedLM", 50), ("Bert", "ForTokenClassification", 2),
        ("Bert", "ForSequenceClassification", 2), ("Roberta", "ForSequenceClassification", 2),
        ("Albert", "ForSequenceClassification", 2), ("Llama", "ForSequenceClassification", 2),
        ("GPT2", "ForSequenceClassification", 2), ("Bloom", "ForCausalLM", 50),
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
    if not sequences:  # a loss by hand over the masked logits
        logits, told = model(input_ids=x).logits, mt.masked_tensor(labels, valid)
        if shifted:
            logits, told = logits[:, :-1], told[:, 1:]
        by_hand = torch.nn.functional.cross_entropy(logits.flatten(0, 1), told.flatten())
        torch.testing.assert_close(by_hand.filled(0), (loss / number).detach(), atol=1e-6, rtol=1e-6)


def test_questions_are_answered_within_each_sequence() -> None:
    model = make("Bert", "ForQuestionAnswering").double()
    first, last = torch.tensor([1, 2, 0]), torch.tensor([4, 9, 3])  # one lies behind its sequence: it does not count
    for side in ("right", "left"):
        ids, valid = batch(side)
        alone = [mt.flat(model, False)(input_ids=row[mask][None]) for row, mask in zip(ids, valid, strict=True)]
        losses = [
            torch.stack(
                [-scores[0].log_softmax(0)[p] for scores, p in zip(found, at, strict=True) if p < len(scores[0])]
            )
            for found, at in (([o.start_logits for o in alone], first), ([o.end_logits for o in alone], last))
        ]
        expected = (losses[0].mean() + losses[1].mean()) / 2
        before = 7 - torch.tensor(LENGTHS) if side == "left" else 0
        x = mt.masked_tensor(ids.masked_fill(~valid, 0), valid)
        out = mt.flat(model)(input_ids=x, start_positions=first + before, end_positions=last + before)
        torch.testing.assert_close(out.loss, expected)
        assert torch.equal(out.start_logits.mask, valid)


def test_choices_name_the_model_inside() -> None:
    model = make("Bert", "ForMultipleChoice").eval()
    ids, valid = batch()
    two, both = torch.stack([ids, ids.flip(0)], 1), torch.stack([valid, valid.flip(0)], 1)
    rows = zip(two.flatten(0, 1), both.flatten(0, 1), strict=True)
    alone = [model.classifier(model.bert(input_ids=row[mask][None]).pooler_output) for row, mask in rows]
    with pytest.raises(mt.UnsupportedOpError, match=r"mt\.flat\(model\.base_model\)"):
        mt.flat(model)(input_ids=mt.masked_tensor(two, both))
    mt.flat(mt.flat(model, False).base_model)
    out = model(input_ids=mt.masked_tensor(two, both), labels=torch.tensor([0, 1, 1]))
    torch.testing.assert_close(out.logits, torch.cat(alone).view(3, 2))


def test_an_encoder_of_an_encoder_decoder() -> None:
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0.0
    )
    model = transformers.T5Model(config).eval()
    ids, valid = batch()
    pairs = [(row[mask][None], row[:5][mask[:5]][None]) for row, mask in zip(ids, valid, strict=True)]
    alone = [model(input_ids=a, decoder_input_ids=b).last_hidden_state[0] for a, b in pairs]
    given = {"input_ids": mt.masked_tensor(ids, valid), "decoder_input_ids": mt.masked_tensor(ids, valid)[:, :5]}
    with pytest.raises(ValueError, match=r"mt\.flat\(model\.encoder\)"):
        mt.flat(model)(**given)
    mt.flat(mt.flat(model, False).encoder)
    out = model(**given, use_cache=False).last_hidden_state
    torch.testing.assert_close(out.filled(0)[valid[:, :5]], torch.cat(alone), atol=1e-5, rtol=1e-4)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("FNet", {}, "differ by"),  # a Fourier transform over time
    ("BigBird", {"attention_type": "block_sparse"}, "another one for long inputs"),
    ("Canine", {"num_hash_buckets": 50}, "belongs to all steps together|an output has shape"),
]


@pytest.mark.parametrize(("name", "options", "why"), REFUSED, ids=lambda value: value if type(value) is str else "")
def test_what_cannot_be_flat_raises(name: str, options: dict[str, Any], why: str) -> None:
    kind = getattr(transformers, name + "Model")
    model = kind(kind.config_class(**SMALL, **options)).eval()
    ids, valid = batch()
    before = {key: x.clone() for key, x in model.state_dict().items()}
    with pytest.raises(mt.UnsupportedOpError, match=why):
        mt.flat(model)(input_ids=mt.masked_tensor(ids, valid))
    assert all(torch.equal(x, before[key]) for key, x in model.state_dict().items())
    assert not any("flat_apart" in part.__dict__ for part in model.modules())


def test_parts_run_apart_only_while_flat_and_are_restored() -> None:
    model = make("Bloom").eval()
    kinds = [type(part) for part in model.modules()]
    ids, valid = batch()
    before = model(input_ids=ids, attention_mask=valid.long()).last_hidden_state
    mt.flat(model)
    flat = model(input_ids=mt.masked_tensor(ids, valid)).last_hidden_state
    assert torch.equal(model(input_ids=ids, attention_mask=valid.long()).last_hidden_state, before)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        again = other(input_ids=mt.masked_tensor(ids, valid)).last_hidden_state
        assert torch.equal(again.filled(0), flat.filled(0))
    mt.flat(model, False)
    assert [type(part) for part in model.modules()] == kinds


def test_generation_is_untouched() -> None:
    model = make("Llama", "ForCausalLM").eval()
    ids, valid = batch("left")
    ways = {"max_new_tokens": 4, "do_sample": False, "attention_mask": valid.long(), "pad_token_id": 0}
    before = model.generate(ids, **ways)
    assert torch.equal(mt.flat(model).generate(ids, **ways), before)


def test_gaps_are_named_and_a_sequence_without_steps_is_kept() -> None:
    ids, valid = batch()
    for name in ("Llama", "Bloom"):
        model = make(name).eval()
        alone = [model(input_ids=row[mask][None]).last_hidden_state[0] for row, mask in zip(ids, valid, strict=True)]
        mt.flat(model)
        kept = valid.clone()
        kept[1] = False
        out = model(input_ids=mt.masked_tensor(ids, kept)).last_hidden_state
        assert out.lengths().tolist() == [7, 0, 5]
        torch.testing.assert_close(out.filled(0)[kept], torch.cat([alone[0], alone[2]]), atol=1e-5, rtol=1e-4)
        steps = [[5, None, 7], [8, 9]]
        gap = mt.from_sequences([mt.masked_tensor(row, dtype=torch.long) for row in steps], packed=True)
        with pytest.raises(ValueError, match="step 1 of sequence 0 is missing"):
            model(input_ids=gap)


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
