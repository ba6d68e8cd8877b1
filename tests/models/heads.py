"""Heads of transformers as users train them: scores, loss, side losses, and the gradients of all parameters.

A batch has its padding behind the rows, in front of them, or is packed.  It is compared with the rows, each alone: its
loss is the mean over what the rows' losses are means of.  A side loss of experts is no mean of the rows' own: it is
that of the router logits of all rows, joined.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import masked_tensor as mt

from . import left, other_page, signals, text
from .head_rows import HEADS, Rows
from .judge import LIMITS, Verdict, distance, first_states, parameter_gradients, short, takes

DECODER = "decoder_input_ids"
FORMS = ("right", "left", "packed")
SIDE = ("load_balancing_loss_func", "router_z_loss_func")
NEEDED = {"pad_token_id": 0, "decoder_start_token_id": 1}
LOSS_LIMIT = 1e-5  #: transformers computes the losses of float64 in float32
Context = Callable[[], AbstractContextManager[Any]]
Given = dict[str, Any]


def types() -> list[str]:
    """The types that take tokens, or for the head "ctc" signals."""
    return sorted({*text.types(), *(name for name in signals.types() if head_class(name, "ctc"))}, key=str.lower)


def head_class(name: str, kind: str) -> Any:
    """The class that a type has for a head; None if there is none."""
    from transformers.models.auto import configuration_auto, modeling_auto

    classes = getattr(modeling_auto, f"MODEL_FOR_{HEADS[kind].classes}_MAPPING")
    try:
        found = classes[configuration_auto.CONFIG_MAPPING[name]]
    except (KeyError, ImportError, ValueError):
        found = text.model_class(name) if kind == "embedding" else None
    return found[0] if isinstance(found, tuple) else found


def kinds(name: str) -> list[str]:
    """The heads that a type has."""
    classes = {kind: head_class(name, kind) for kind in HEADS}
    if classes["masked"] is classes["seq2seq"]:  # of an encoder-decoder
        classes["masked"] = None
    if text.is_text(name):
        return [kind for kind, found in classes.items() if found and kind != "ctc"]
    return ["ctc"] * bool(classes["ctc"])


@dataclass
class Said:
    """What a head says: its scores, the loss, and side losses."""

    scores: list[Tensor]
    loss: Tensor
    sides: list[Tensor]


def _said(model: nn.Module, given: Given, kind: str) -> Said:
    options = {k: k == "output_router_logits" for k in ("use_cache", "output_router_logits") if takes(model, k)}
    found = model(**given, **options)
    if kind == "embedding":
        states = first_states(found)
        return Said([states], F.normalize(states.mean(1) if states.dim() > 2 else states, dim=-1), [])
    if kind == "questions":
        scores = [found.start_logits, found.end_logits]
    elif kind == "seq2seq":  # to shift labels to the right leaves the last of a short row behind its end
        scores = [found.logits + 0 * given["labels"].unsqueeze(-1)]
    else:
        scores = [found.logits]
    sides = [x for k, x in found.items() if k.endswith("_loss") and isinstance(x, Tensor) and not x.dim()]
    return Said(scores, found.loss, sides)


def _total(losses: list[Tensor], rows: Rows) -> Tensor:
    """The loss of the batch, by those of its rows."""
    total: Any = sum(n * loss for n, loss in zip(rows.weights, losses, strict=True))
    return total if rows.total else total / sum(rows.weights)


def _contrast(sentences: Tensor) -> Tensor:
    """Each sentence is to be unlike the others."""
    return F.cross_entropy(sentences @ sentences.mT, torch.arange(len(sentences)))


@contextmanager
def _sides(model: nn.Module, make: Callable[[str, Any], Any]) -> Iterator[None]:
    """The side losses of the model's own file are those that ``make`` makes of their names and functions."""
    module = sys.modules[type(model).__module__]
    with ExitStack() as stack:
        for name in SIDE:
            if hasattr(module, name):
                stack.enter_context(mock.patch.object(module, name, make(name, getattr(module, name))))
        yield


def _alone(model: nn.Module, rows: Rows, kind: str) -> list[Said]:
    """What is said of each row, with the side losses of all of them."""
    calls: list[list[tuple[str, Any, tuple[Any, ...], Given]]] = []

    def recorded(name: str, function: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            calls[-1].append((name, function, args, kwargs))
            return function(*args, **kwargs)

        return run

    said = []
    with _sides(model, recorded):
        for row in rows.alone:
            calls.append([])
            said.append(_said(model, row, kind))
    if not any(calls):
        return said
    joined = [_joined(of_rows) for of_rows in zip(*calls, strict=True)]
    with _sides(model, lambda name, function: lambda *args, **kwargs: next(left)):
        said = []
        for row in rows.alone:
            left = iter(joined)
            said.append(_said(model, row, kind))
    return said


def _joined(calls: tuple[tuple[str, Any, tuple[Any, ...], Given], ...]) -> Any:
    """A side loss of the tokens of all rows; switch_transformers balances each row by itself."""
    name, function, args, kwargs = calls[0]
    key = None if args else next(iter(kwargs))
    logits = [c[2][0] if key is None else c[3][key] for c in calls]
    if name == SIDE[0] and not isinstance(logits[0], tuple):
        return sum(function(*args, **kwargs) for _, _, args, kwargs in calls) / len(calls)
    layers = isinstance(logits[0], tuple)
    of_all = tuple(torch.cat(x, -2) for x in zip(*logits, strict=True)) if layers else torch.cat(logits, 1)
    return function(of_all, *args[1:], **kwargs) if key is None else function(**kwargs | {key: of_all})


# -------------------------------------------------------------------------------------------------------------- judging


def verdicts(name: str, kind: str) -> dict[str, list[str]]:
    """What each form of a batch gives: as eager code in float64, or float32, where its own code cannot do that."""
    for dtype in (torch.float64, torch.float32):
        try:
            model, rows = _built(name, kind, dtype)
        except Exception as error:
            return {form: ["not built", short(error)] for form in FORMS}
        try:
            alone = _alone(model, rows, kind)
            losses = [x.loss for x in alone]
            total = _contrast(torch.cat(losses)) if kind == "embedding" else _total(losses, rows)
            expected = parameter_gradients(model, total)
        except Exception as error:
            found = Verdict("fails alone", short(error))
            continue
        if all(x.isfinite().all() for x in [total, *expected.values()]):
            break
        found = Verdict("fails alone", f"what is not finite, in {dtype}")
    else:
        return {form: [found.outcome, found.detail] for form in FORMS}
    judged = _Judge(model, rows, kind, alone, total.detach(), expected)
    said = {form: judged.form(name, form) for form in FORMS if (form, kind) != ("left", "ctc")}
    return {form: [verdict.outcome, verdict.detail] for form, verdict in said.items()}


def _built(name: str, kind: str, dtype: torch.dtype) -> tuple[nn.Module, Rows]:
    head = HEADS[kind]

    def made(config: Any, **options: Any) -> nn.Module:
        if head.labels is not None:
            config.num_labels = head.labels
        config.use_cache = False
        for field, token in NEEDED.items():  # by some heads, though not by their types
            if getattr(config, field, None) is None:
                setattr(config, field, token)
        return head_class(name, kind)._from_config(config, **options)

    model = text.build(
        name, "eager", dtype, SimpleNamespace(_from_config=made), lambda model, _: (head.rows(model).alone, {})
    )
    return model, head.rows(model)


@dataclass
class _Judge:
    model: nn.Module
    rows: Rows
    kind: str
    alone: list[Said]
    total: Tensor
    expected: dict[str, Tensor]

    def form(self, name: str, form: str) -> Verdict:
        """With the first of the means that makes it exact; without any if none does."""
        seen = []
        for means, context, at, multiple, extras in _means(name, form, self.model):
            batch = self.rows.batch(at, multiple)
            with context():
                seen.append(self._judged(batch | self._extras(batch, extras)))
            if seen[-1].outcome == "exact":
                return Verdict("helped", means) if means else seen[-1]
        return seen[0]

    def _extras(self, batch: Given, extras: Iterable[str]) -> Given:
        """What is given beside the tokens."""
        if not extras:
            return {}
        ids = batch["input_ids"]
        valid = ids.get_mask().long()
        positions = (valid.cumsum(-1) - 1).clamp(min=0)
        found = {"position_ids": positions, "position_ids + 2": positions + 2, "attention_mask": valid}
        if DECODER in extras:
            read = mt.to_left(batch.get("labels", ids) if self.kind == "seq2seq" else ids)
            start = torch.full_like(read.get_data()[:, :1], self.model.config.decoder_start_token_id)
            given = mt.as_masked_tensor(torch.cat([start, read.get_data()[:, :-1]], 1), read.get_mask())
            if self.kind != "seq2seq" and not ids.get_mask()[..., 0].all():  # as the tokens are padded
                given = mt.to_right(given)
            found[DECODER] = given.packed() if ids.is_packed else given
        return {k.partition(" ")[0]: found[k] for k in extras}

    def _judged(self, batch: Given) -> Verdict:
        try:
            said = _said(self.model, batch, self.kind)
            total = _contrast(said.loss) if self.kind == "embedding" else said.loss
        except Exception as error:
            return Verdict("refused", short(error))
        try:
            found = parameter_gradients(self.model, total)
        except Exception as error:
            return Verdict("refused", f"backward: {short(error)}")
        return self._compared(said, total, found)

    def _compared(self, said: Said, total: Tensor, found: dict[str, Tensor]) -> Verdict:
        limit = LIMITS[self.alone[0].scores[0].dtype]
        rest = max(limit, LOSS_LIMIT)
        seen = {"loss": (distance(_plain(total), self.total), rest)}
        for i, batch in enumerate(said.scores):
            worst = _scores_off(batch, [x.scores[i] for x in self.alone])
            if isinstance(worst, str):
                return Verdict("differs", worst)
            seen[f"scores {i}" if i else "scores"] = worst, limit
        for i, (ours, theirs) in enumerate(zip(said.sides, self.alone[0].sides, strict=True)):
            seen[f"side loss {i}"] = distance(_plain(ours), theirs.detach()), rest
        if found.keys() != self.expected.keys() or any(mt.is_masked_tensor(g) for g in found.values()):
            return Verdict("differs", "a parameter has a masked gradient, or none")
        seen["gradients"] = max(distance(found[k], g) for k, g in self.expected.items()), rest
        off = [f"{what} by {by:.1e}" for what, (by, most) in seen.items() if not by <= most]
        return Verdict("differs", ", ".join(off)) if off else Verdict("exact")


def _plain(x: Tensor) -> Tensor:
    return mt.filled(x, torch.nan).detach() if mt.is_masked_tensor(x) else x.detach()


def _scores_off(batch: Tensor, alone: list[Tensor]) -> float | str:
    """How far the valid scores are from those of the rows; in words if another number of them is valid."""
    masked = mt.is_masked_tensor(batch)
    data = batch.get_data().detach() if masked else batch.detach()
    mask = batch.get_mask() if masked else torch.ones_like(batch, dtype=torch.bool)
    worst = 0.0
    for x, valid, row in zip(data, mask, alone, strict=True):
        if valid.sum() != row.numel():
            return f"{valid.sum()} of {row.numel()} scores are valid"
        worst = max(worst, distance(x[valid], row[0].detach().flatten()))
    return worst


def _means(name: str, form: str, model: nn.Module) -> Iterator[tuple[str, Context, str, int, tuple[str, ...]]]:
    """What is tried: as it is, then what the type itself needs without a head."""
    yield "", nullcontext, form, 1, ()
    if takes(model, DECODER):
        yield f"`{DECODER}` with the mask of what they are shifted from", nullcontext, form, 1, (DECODER,)
    if form == "left":
        for means, (extras, context) in left.MEANS.items():
            if means and all(takes(model, k.partition(" ")[0]) for k in extras):
                yield means, context, form, 1, extras
        return
    outcome, known = other_page.known_types().get(name, {}).get("eager", ("", ""))
    for means, (context, _) in text.MEANS.items():
        if outcome == "helped" and known in text.MEANS and means != known:  # what the type needs without a head
            continue
        if means == "to_right(x)":
            yield means, nullcontext, "left", 1, ()
        elif means.startswith("rows"):
            yield means, nullcontext, form, 16, ()
        else:
            yield means, context, form, 1, ()
