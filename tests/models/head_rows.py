"""What the heads of transformers are given: rows alone, and one batch of them with its padding somewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from . import signals, text
from .judge import LENGTHS, padded, rows_of_ids, takes

CLASSES = 3
LABEL = 1  #: under the mask of labels: a class, which would be counted if the mask were lost
TARGETS = (6, 9, 4)
ONE_EACH = (1, 1, 1)
FRAMES = ("lasr_ctc", "parakeet_ctc")  #: whose loss asks for an attention mask, which is that of the frames


@dataclass(frozen=True)
class Rows:
    """Each row alone, and what the loss of each weighs in that of the batch: the number of its labels.

    ``ragged`` says along which dimension an argument is padded; ``at`` names positions in time, which move with the
    padding; ``fixed`` names what is padded behind in every batch.
    """

    alone: list[dict[str, Any]]
    weights: tuple[int, ...]
    ragged: dict[str, int]
    at: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    total: bool = False  #: the loss of the batch is the sum

    def batch(self, form: str, multiple: int = 1) -> dict[str, Any]:
        """The rows in one batch: ``right``, ``left`` or ``packed``; as long as a multiple of ``multiple``."""
        made = {name: self._joined(name, form, multiple) for name in self.alone[0]}
        if form == "left":
            lengths = torch.tensor(LENGTHS)
            made |= {name: made[name] + max(LENGTHS) - lengths for name in self.at}
        return made

    def _joined(self, name: str, form: str, multiple: int) -> Tensor:
        values = [row[name] for row in self.alone]
        if name == "attention_mask":
            return padded(values, 0).filled(0)
        if name not in self.ragged:
            return torch.cat(values)
        dim = self.ragged[name]
        under = torch.nan if values[0].is_floating_point() else LABEL if name == "labels" else -100
        made = padded(values, under, dim)
        if made.shape[dim] % multiple:
            shape = [-n % multiple if d == dim else n for d, n in enumerate(made.shape)]
            made = torch.cat([made, mt.as_masked_tensor(values[0].new_zeros(shape), torch.tensor(False))], dim)
        if form == "left" and name not in self.fixed:
            return mt.to_right(made.movedim(dim, 1)).movedim(1, dim).contiguous()
        return made.packed((0, dim)) if form == "packed" else made


def _tokens(model: nn.Module) -> list[dict[str, Any]]:
    return [{"input_ids": row} for row in rows_of_ids(text.vocabulary(model))]


def _classes(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.randint(CLASSES, shape, generator=torch.Generator().manual_seed(seed))


def _causal(model: nn.Module) -> Rows:
    """The first token is no label where the loss shifts labels: it has none if only that one is given."""
    alone = [row | {"labels": row["input_ids"]} for row in _tokens(model)]
    ids = alone[0]["input_ids"]
    with torch.no_grad():
        loss = model(input_ids=ids, labels=torch.cat([ids[:, :1], torch.full_like(ids[:, 1:], -100)], 1)).loss
    without = int(not loss.isfinite())
    return Rows(alone, tuple(n - without for n in LENGTHS), {"input_ids": 1, "labels": 1})


def _masked(model: nn.Module) -> Rows:
    alone = [row | {"labels": row["input_ids"].flip(1)} for row in _tokens(model)]
    return Rows(alone, LENGTHS, {"input_ids": 1, "labels": 1})


def _of_tokens(model: nn.Module) -> Rows:
    alone = [row | {"labels": _classes(row["input_ids"].shape, i)} for i, row in enumerate(_tokens(model))]
    return Rows(alone, LENGTHS, {"input_ids": 1, "labels": 1})


def _ended(model: nn.Module) -> list[dict[str, Any]]:
    """Tokens of which the last says that it is; an encoder-decoder reads its state."""
    rows = _tokens(model)
    if takes(model, "decoder_input_ids"):
        for row in rows:
            row["input_ids"][:, -1] = model.config.eos_token_id
    return rows


def _of_rows(model: nn.Module) -> Rows:
    alone = [row | {"labels": _classes((1,), i)} for i, row in enumerate(_ended(model))]
    return Rows(alone, ONE_EACH, {"input_ids": 1})


def _reward(model: nn.Module) -> Rows:
    dtype = next(p.dtype for p in model.parameters() if p.is_floating_point())
    alone = [row | {"labels": torch.tensor([i / 2 - 1], dtype=dtype)} for i, row in enumerate(_ended(model))]
    return Rows(alone, ONE_EACH, {"input_ids": 1})


def _questions(model: nn.Module) -> Rows:
    at = ("start_positions", "end_positions")
    alone = [row | {k: torch.tensor([2 + i + j]) for j, k in enumerate(at)} for i, row in enumerate(_tokens(model))]
    return Rows(alone, ONE_EACH, {"input_ids": 1}, at)


def _choice(model: nn.Module) -> Rows:
    pairs = zip(_tokens(model), rows_of_ids(text.vocabulary(model), seed=2), strict=True)
    alone = [{"input_ids": torch.stack([row["input_ids"], other], 1)} for row, other in pairs]
    alone = [row | {"labels": torch.tensor([i % 2])} for i, row in enumerate(alone)]
    return Rows(alone, ONE_EACH, {"input_ids": 2})


def _sequences(model: nn.Module) -> Rows:
    if getattr(model.config, "decoder_start_token_id", None) is None:
        model.config.decoder_start_token_id = 1
    labels = rows_of_ids(text.vocabulary(model), seed=1, lengths=TARGETS)
    alone = [row | {"labels": y} for row, y in zip(_tokens(model), labels, strict=True)]
    return Rows(alone, TARGETS, {"input_ids": 1, "labels": 1}, fixed=("labels",))


def _states(model: nn.Module) -> Rows:
    alone, name = _tokens(model), "decoder_input_ids"
    if not takes(model, name):
        return Rows(alone, ONE_EACH, {"input_ids": 1})
    targets = rows_of_ids(text.vocabulary(model), seed=1, lengths=TARGETS)
    alone = [row | {name: y} for row, y in zip(alone, targets, strict=True)]
    return Rows(alone, ONE_EACH, {"input_ids": 1, name: 1}, fixed=(name,))


def _speech(model: nn.Module) -> Rows:
    """Labels that are fewer than frames; the loss is a mean over rows, or a sum."""
    form = signals.FORMS[model.main_input_name][0]
    rows, _ = signals.given(model, torch.nan, form)
    labels = rows_of_ids(text.vocabulary(model), seed=1, lengths=(3, 2, 4))
    alone = [row | {"labels": y} for row, y in zip(rows, labels, strict=True)]
    ragged = {model.main_input_name: form[1], "labels": 1}
    if model.config.model_type in FRAMES:
        alone = [row | {"attention_mask": torch.ones_like(row[model.main_input_name][..., 0]).long()} for row in alone]
    total = getattr(model.config, "ctc_loss_reduction", "mean") == "sum"
    return Rows(alone, ONE_EACH, ragged, total=total)


@dataclass(frozen=True)
class Head:
    """The list of transformers that has a class for each type, what it is given, and fields of its configuration."""

    classes: str
    rows: Callable[[nn.Module], Rows]
    labels: int | None = None


HEADS = {
    "causal": Head("CAUSAL_LM", _causal),
    "masked": Head("MASKED_LM", _masked),
    "seq2seq": Head("SEQ_TO_SEQ_CAUSAL_LM", _sequences),
    "sequence": Head("SEQUENCE_CLASSIFICATION", _of_rows, CLASSES),
    "reward": Head("SEQUENCE_CLASSIFICATION", _reward, 1),
    "tokens": Head("TOKEN_CLASSIFICATION", _of_tokens, CLASSES),
    "questions": Head("QUESTION_ANSWERING", _questions, 2),
    "choice": Head("MULTIPLE_CHOICE", _choice),
    "embedding": Head("TEXT_ENCODING", _states),
    "ctc": Head("CTC", _speech),
}
