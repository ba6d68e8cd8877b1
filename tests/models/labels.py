"""The encoder-decoders of transformers with labels: the scores, the gradients of all parameters, and the loss."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from . import text
from .judge import LENGTHS, LIMITS, Inputs, Verdict, judge, padded, rows_of_ids, short, takes

TARGETS = (6, 9, 4)
MEANINGS = [means for means in text.MEANS if means.startswith("meaning")]


def types() -> list[str]:
    """The model types whose model takes tokens and labels, and makes the tokens of its decoder from the labels."""
    heads = {name: _head(name) for name in text.types()}
    return [name for name, head in heads.items() if head and "labels" in inspect.signature(head.forward).parameters]


def _head(name: str) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING as HEADS

    try:
        return HEADS[CONFIG_MAPPING[name]]
    except KeyError:
        return None


def found(name: str, variant: str) -> Verdict:
    """What becomes of one type, and which meaning makes it exact that is not."""
    said = _found(name, variant)
    for means in MEANINGS if said.outcome == "differs" else ():
        with text.MEANS[means][0]():
            if _found(name, variant).outcome == "exact":
                return Verdict("helped", means)
    return said


def _found(name: str, variant: str) -> Verdict:
    """Where its own code cannot do float64, in float32."""
    said = Verdict("not built")
    for dtype in (text.VARIANTS[variant][0], torch.float32):
        try:
            model = text.build(name, variant, dtype, _head(name), _given)
        except Exception as error:
            return Verdict("not built", short(error))
        said = judge(model, _scores, *_given(model, -100))
        if said.outcome != "fails alone":
            break
    if said.outcome != "exact":
        return said
    off = _loss_off(model)
    return said if off <= LIMITS[dtype] else Verdict("differs", f"loss by {off:.1e}")


def _options(model: nn.Module) -> dict[str, Any]:
    return {"use_cache": False} if takes(model, "use_cache") else {}


def _scores(model: nn.Module, given: Inputs) -> Tensor:
    """The scores where there is a label: to shift labels to the right leaves the last of a short row behind its end."""
    scores: Tensor = model(**given, **_options(model)).logits
    return scores + 0 * given["labels"].unsqueeze(-1)


def _given(model: nn.Module, garbage: float) -> tuple[list[Inputs], Inputs]:
    size = min(99, getattr(model.config, "vocab_size", 99))
    if getattr(model.config, "decoder_start_token_id", None) is None:
        model.config.decoder_start_token_id = 1
    ids, labels = rows_of_ids(size, lengths=LENGTHS), rows_of_ids(size, seed=1, lengths=TARGETS)
    rows = [{"input_ids": x, "labels": y} for x, y in zip(ids, labels, strict=True)]
    return rows, {"input_ids": padded(ids, garbage), "labels": padded(labels, garbage)}


def _loss_off(model: nn.Module) -> float:
    """The loss of the batch is the mean over its tokens, not over its rows."""
    rows, batch = _given(model, -100)
    with torch.no_grad():
        losses = [float(model(**row, **_options(model)).loss) for row in rows]
        alone = sum(n * loss for n, loss in zip(TARGETS, losses, strict=True)) / sum(TARGETS)
        return abs(float(model(**batch, **_options(model)).loss) - alone) / max(1.0, abs(alone))
