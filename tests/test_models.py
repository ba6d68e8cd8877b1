"""A handful of the models of ``python -m tests.models``, and what is done with them: generation, half precision."""

import os
from contextlib import nullcontext

import pytest
import torch

import masked_tensor as mt

from .models.judge import first_states, judge, padded, rows_of_ids

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
transformers = pytest.importorskip("transformers", reason="optional: pip install torch-masked-tensor[models]")

from .models import heads, labels, left, left_signals, others, signals, text  # noqa: E402 (after the question whether transformers is there)

pytestmark = pytest.mark.filterwarnings("ignore")  # the other package's own
HANDFUL = [
    ("bert", "eager"),
    ("llama", "default"),
    ("t5", "eager"),
    ("deepseek_v3", "eager"),
    ("mixtral", "default"),
    ("led", "eager"),
    ("jetmoe", "eager"),
]


@pytest.mark.parametrize(("name", "variant"), HANDFUL)
def test_a_padded_batch_is_its_rows(name: str, variant: str) -> None:
    """Values and the gradients of all parameters; no attention mask is given."""
    found = text.verdict(name, variant)
    assert (found.outcome, found.detail) == ("exact", "")


HELPED = {
    "longt5": 'meaning(padding="tensor")',
    "pegasus_x": 'meaning(padding="tensor")',
    "longformer": "rows padded to a multiple of its block",
    "roc_bert": 'meaning(product="all")',
    "mobilebert": 'meaning(product="all")',
}


@pytest.mark.parametrize("name", HELPED)
def test_the_meaning_that_makes_a_padded_batch_its_rows(name: str) -> None:
    """These models are something else by default; what helps is in the limits."""
    found = text.verdict(name, "eager")
    assert (found.outcome, found.detail) == ("helped", HELPED[name])


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_encoder_decoders_with_labels(name: str) -> None:
    """Scores, gradients, and a loss that is the mean over all labels of the batch."""
    found = labels.found(name, "eager")
    assert (found.outcome, found.detail) == ("exact", "")


HEADS = [
    ("bert", "masked", "helped"), ("llama", "causal", "exact"), ("llama", "sequence", "exact"),
    ("mixtral", "causal", "exact"), ("mixtral", "tokens", "exact"), ("bert", "questions", "helped"),
    ("llama", "reward", "exact"), ("llama", "embedding", "exact"), ("t5", "seq2seq", "exact"),
    ("switch_transformers", "seq2seq", "exact"), ("modernbert", "choice", "helped"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "front"), HEADS)
def test_heads_with_labels(name: str, kind: str, front: str) -> None:
    """Scores, loss, side losses and gradients; padded behind, in front (``position_ids`` or a mask help), packed."""
    found = {form: outcome for form, (outcome, _) in heads.verdicts(name, kind).items()}
    assert found == {"right": "exact", "left": front, "packed": "exact"}


@pytest.mark.parametrize("name", ["wav2vec2", "parakeet_ctc"])
def test_speech_recognisers_with_labels(name: str) -> None:
    found = {form: outcome for form, (outcome, _) in heads.verdicts(name, "ctc").items()}
    assert found == {"right": "exact", "packed": "exact"}


def test_waves() -> None:
    found = signals.found("hubert", "eager")
    assert (found.outcome, found.detail) == ("exact", "")


def test_waves_padded_in_front() -> None:
    found = left_signals.found("hubert")
    assert (found.outcome, found.detail) == ("exact", "")


def seeded(model, dtype=torch.float64):
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(
                torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())) * 0.3 + (p.dim() == 1) * 0.5
            )
    return model.to(dtype).eval()


def wav2vec2(dtype=torch.float64):
    config = transformers.Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, conv_dim=(8, 8, 8),
        conv_kernel=(6, 3, 3), conv_stride=(3, 2, 2), num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
        num_feat_extract_layers=3, feat_extract_norm="layer", do_stable_layer_norm=True,
    )  # fmt: skip
    return seeded(transformers.Wav2Vec2Model(config), dtype)


def speech():
    generator = torch.Generator().manual_seed(0)
    rows = [torch.randn(1, n, generator=generator, dtype=torch.float64) for n in (240, 121, 187)]
    return rows, padded(rows, torch.nan)


def test_speech() -> None:
    rows, batch = speech()
    found = judge(
        wav2vec2(),
        lambda model, x: first_states(model(**x)),
        [{"input_values": row} for row in rows],
        {"input_values": batch},
    )
    assert (found.outcome, found.detail) == ("exact", "")


def test_time_series_with_a_channel_that_was_not_measured() -> None:
    """PatchTST treats channels alike: a row without one is the row of its other channels."""
    config = transformers.PatchTSTConfig(
        num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, d_model=16, num_hidden_layers=2,
        num_attention_heads=2, ffn_dim=24, scaling=None, dropout=0.0,
    )  # fmt: skip
    model = seeded(transformers.PatchTSTModel(config))
    x = torch.randn(2, 32, 3, dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, False, True]])[:, None, :]
    states = model(past_values=mt.as_masked_tensor(torch.where(mask, x, torch.nan), mask)).last_hidden_state
    whole = model(past_values=x).last_hidden_state
    torch.testing.assert_close(states[0].get_data(), whole[0])
    torch.testing.assert_close(states[1, [0, 2]].get_data(), whole[1, [0, 2]])
    assert states.count() == 5 * whole[0, 0].numel()
    states.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


SERIES = {"InformerForPrediction": "exact", "TimesFmModel": "helped", "TimesFm2_5ModelForPrediction": "no mask"}


@pytest.mark.parametrize("name", SERIES)
def test_time_series_of_transformers(name: str) -> None:
    """Valid everywhere as plain, beside a masked series as without it; a short past as with the model's own mask."""
    found = {check: outcome for check, (outcome, _) in others.verdicts(name, "series", others.CHECKS["series"]).items()}
    assert found == {"whole": "exact", "beside": "exact", "past": SERIES[name]}


@pytest.mark.parametrize(("name", "half"), [("dinov2", "differs"), ("resnet", "exact")])
def test_images_of_transformers(name: str, half: str) -> None:
    """The positions of dinov2 are resized to the padded size."""
    found = {check: outcome for check, (outcome, _) in others.verdicts(name, "vision", others.CHECKS["vision"]).items()}
    assert found == {"whole": "exact", "beside": "exact", "pixels": "exact", "half": half}


@pytest.mark.parametrize(("name", "outcome"), [("llama", "exact"), ("gpt2", "helped"), ("mamba", "differs")])
def test_padding_in_front(name: str, outcome: str) -> None:
    """Of models with rotary positions, with a table of positions (``position_ids`` help), and of a recurrence."""
    assert left.verdicts(name)["left"][0] == outcome


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_half_precision(name: str, dtype: torch.dtype) -> None:
    model = text.build(name, "default", dtype)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(0.3)
    rows, batch = text.inputs(model, -100)
    states = text.call(model, batch)
    states.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    for i, row in enumerate(rows):
        alone = text.call(model, row)
        torch.testing.assert_close(states[i, : alone.shape[1]].filled(torch.nan), alone[0], atol=0.06, rtol=0.06)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_speech(dtype: torch.dtype) -> None:
    model = wav2vec2(dtype)
    rows, _ = speech()
    halves = [row.to(dtype) for row in rows]
    states = model(padded(halves, torch.nan)).last_hidden_state
    states.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    for i, row in enumerate(halves):
        alone = model(row).last_hidden_state
        torch.testing.assert_close(states[i, : alone.shape[1]].filled(torch.nan), alone[0], atol=0.1, rtol=0.1)


# ---------------------------------------------------------------------------------------------------------- generation


def prompts(size: int = 99) -> tuple[torch.Tensor, torch.Tensor]:
    """Left-padded prompts and their mask."""
    rows = rows_of_ids(size, lengths=(7, 4, 5))
    mask = torch.arange(7) >= 7 - torch.tensor([7, 4, 5])[:, None]
    ids = torch.zeros(3, 7, dtype=torch.int64)
    for i, row in enumerate(rows):
        ids[i, 7 - row.shape[1] :] = row[0]
    return ids, mask


WAYS = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 20, "temperature": 0.8},
    "static cache": {"do_sample": False, "cache_implementation": "static"},
    "without a cache": {"do_sample": False, "use_cache": False},
    "beams": {"do_sample": False, "num_beams": 3},
    "beams, several results": {"do_sample": False, "num_beams": 3, "num_return_sequences": 2},
    "beams, sampling": {"do_sample": True, "num_beams": 2, "top_k": 20},
    "beams, static cache": {"do_sample": False, "num_beams": 3, "cache_implementation": "static"},
}
MAKES_ROOM = ("static", "beams")  # for keys by torch.zeros, for what beams gave by torch.full


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "told"), [("llama", True), ("llama", False), ("gpt2", False), ("bloom", False)])
def test_generation(name: str, told: bool, way: str) -> None:
    """As with the attention mask: scores and tokens.  The prompt itself says where it is padded; positions count it."""
    config = transformers.models.auto.configuration_auto.CONFIG_MAPPING[name]
    model = text.build(name, "default", head=transformers.AutoModelForCausalLM._model_mapping[config])
    ids, mask = prompts()
    options = {"max_new_tokens": 6, "pad_token_id": 0, "eos_token_id": None, **WAYS[way]}
    options |= {"output_scores": True, "return_dict_in_generate": True}
    torch.manual_seed(0)
    expected = model.generate(ids, attention_mask=mask.long(), **options)
    torch.manual_seed(0)
    prompt = mt.as_masked_tensor(torch.where(mask, ids, -100), mask)
    with mt.masked_factories() if way.startswith(MAKES_ROOM) else nullcontext():
        out = model.generate(prompt, **({"attention_mask": mask.long()} if told else {}), **options)
    whole = out.sequences
    assert torch.equal(
        mt.filled(whole, 0)[:, 7:] if mt.is_masked_tensor(whole) else whole[:, 7:], expected.sequences[:, 7:]
    )
    for ours, theirs in zip(out.scores, expected.scores, strict=True):
        torch.testing.assert_close(ours.filled(torch.nan) if mt.is_masked_tensor(ours) else ours, theirs)


@pytest.mark.parametrize("way", ["static cache", "beams"])
def test_generation_names_the_context_that_it_needs(way: str) -> None:
    model = text.build("gpt2", "default", head=transformers.GPT2LMHeadModel)
    ids, mask = prompts()
    with pytest.raises(mt.MaskedWriteError, match=r"inside masked_factories\(\)"):
        model.generate(mt.as_masked_tensor(ids, mask), max_new_tokens=2, pad_token_id=0, **WAYS[way])


SEQUENCES = {"d_model": 16, "vocab_size": 99, "pad_token_id": 0, "eos_token_id": 2}
TRANSLATORS = {
    "t5": lambda: transformers.T5ForConditionalGeneration(
        transformers.T5Config(**SEQUENCES, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0)
    ),
    "bart": lambda: transformers.BartForConditionalGeneration(
        transformers.BartConfig(
            **SEQUENCES, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
            encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, decoder_start_token_id=1,
            bos_token_id=1, forced_eos_token_id=None,
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", ["greedy", "beams", "static cache", "beams, static cache"])
@pytest.mark.parametrize("name", TRANSLATORS)
def test_generation_from_an_encoder(name: str, way: str) -> None:
    """Inside of masked_factories(), where all of an encoder's own room is masked too: each row alone."""
    torch.manual_seed(0)
    model = TRANSLATORS[name]().eval()
    rows = rows_of_ids(99, lengths=(7, 4, 5))
    ids = mt.from_sequences([row[0] for row in rows])
    options = {"max_new_tokens": 6, **WAYS[way]}
    with mt.masked_factories():
        out = model.generate(ids, attention_mask=ids.get_mask().long(), **options)
    for got, row in zip(mt.filled(out, 0) if mt.is_masked_tensor(out) else out, rows, strict=True):
        alone = model.generate(row, **options)[0]
        assert torch.equal(got[: len(alone)], alone)


@pytest.mark.parametrize("beams", [1, 3])
def test_mamba_generates_from_plain_prompts(beams: int) -> None:
    """Its recurrence is written by hand and stays masked after padding; its own attention mask starts it anew."""
    model = text.build("mamba", "default", head=transformers.MambaForCausalLM)
    ids, mask = prompts()
    prompt = mt.as_masked_tensor(torch.where(mask, ids, -100), mask)
    options = {"max_new_tokens": 4, "pad_token_id": 0, "eos_token_id": None, "num_beams": beams}
    out = model.generate(prompt.filled(0), attention_mask=prompt.get_mask().long(), **options)
    for got, row in zip(out, rows_of_ids(99, lengths=(7, 4, 5)), strict=True):
        assert torch.equal(got[7:], model.generate(row, **options)[0, row.shape[1] :])
    with mt.masked_factories():
        kept = model.generate(prompt, attention_mask=mask.long(), **options)
    assert (kept.filled(-1)[1:, 7:] == -1).all()  # masked; what beams never wrote is -1


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without torch.distributed")
def test_ranks_with_different_numbers_of_labels() -> None:
    from .helpers.ranked_models import errors
    from .helpers.ranks import gathered

    for found in gathered(2, errors):
        assert max(found.values()) < 1e-12, found
