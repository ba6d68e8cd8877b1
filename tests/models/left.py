"""The text models of transformers with the padding in front, and with another meaning of products.

*Left*: the batch that ``text.inputs`` makes, with its padding moved to the front (``to_right``), and the result moved
back; of an encoder-decoder the tokens of the encoder alone.  *Product*: the usual batch, padded behind its rows, in
``meaning(product="all")``.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from . import text
from .judge import Inputs, Verdict, judge, short, takes

CHECKS = ("left", "product")
FIRST = "; its `pooler_output` reads `x[:, 0]`"  #: which is padding, and masked
Context = Callable[[], AbstractContextManager[Any]]
#: What is given beside the tokens, and in which context: the first that makes a model exact is named.
MEANS: dict[str, tuple[tuple[str, ...], Context]] = {
    "": ((), nullcontext),
    "`position_ids`": (("position_ids",), nullcontext),
    "`position_ids + 2`": (("position_ids + 2",), nullcontext),
    "its own `attention_mask`": (("attention_mask",), nullcontext),
    "`position_ids` and its own `attention_mask`": (("position_ids", "attention_mask"), nullcontext),
    '`meaning(product="all")`': ((), lambda: mt.meaning(product="all")),
    '`position_ids` in `meaning(product="all")`': (("position_ids",), lambda: mt.meaning(product="all")),
    '`meaning(padding="tensor")`': ((), lambda: mt.meaning(padding="tensor")),
    "`masked_factories()`": ((), mt.masked_factories),
}


def turned(extras: tuple[str, ...]) -> Callable[[nn.Module, Inputs], Tensor]:
    """How a model is called with the padding in front, and with what beside the tokens."""

    def called(model: nn.Module, given: Inputs) -> Tensor:
        if not isinstance(given["input_ids"], mt.MaskedTensor):
            return text.call(model, given)
        states = text.call(model, _turned(given, extras))
        return states if "decoder_input_ids" in given else mt.to_left(states)

    return called


def _turned(given: Inputs, extras: tuple[str, ...]) -> Inputs:
    ids = mt.to_right(given["input_ids"])
    valid = ids.get_mask().long()
    positions = (valid.cumsum(1) - 1).clamp(min=0)
    found = {"position_ids": positions, "position_ids + 2": positions + 2, "attention_mask": valid}
    return given | {"input_ids": ids} | {_argument(k): found[k] for k in extras}


def _argument(extra: str) -> str:
    return extra.partition(" ")[0]


def verdicts(name: str, checks: Iterable[str] = CHECKS) -> dict[str, list[str]]:
    """What each check says of one type, as eager code in float64 (float32, where its own code cannot do that)."""
    for dtype in (torch.float64, torch.float32):
        try:
            model = text.build(name, "eager", dtype)
            rows, batch = text.inputs(model, -100)
        except Exception as error:
            return {check: ["not built", short(error)] for check in checks}
        with mt.meaning(product="all"):
            found = judge(model, text.call, rows, batch)
        if found.outcome != "fails alone":
            said = {"left": left(model, rows, batch), "product": found}
            return {check: [said[check].outcome, said[check].detail] for check in checks}
    return {check: [found.outcome, found.detail] for check in checks}


def left(model: nn.Module, rows: list[Inputs], batch: Inputs) -> Verdict:
    """What the first of the means says that makes a model exact; what is seen without any if none does."""
    seen = []
    for name, (extras, context) in MEANS.items():
        if all(takes(model, _argument(k)) for k in extras):
            with context():
                seen.append(judge(model, turned(extras), rows, batch))
            if seen[-1].outcome == "exact":
                return Verdict(
                    "helped" if name else "exact", name + FIRST * _reads_first(model, extras, context, batch)
                )
    return seen[0]


def _reads_first(model: nn.Module, extras: tuple[str, ...], context: Context, batch: Inputs) -> bool:
    """Whether the model has a pooled output, and it is masked for rows with padding."""
    off = {"use_cache": False} if takes(model, "use_cache") else {}
    with torch.no_grad(), context():
        found = model(**_turned(batch, extras), **off)
    pooled = getattr(found, "pooler_output", None)
    return pooled is not None and mt.is_masked_tensor(pooled) and pooled.count().item() < pooled.shape.numel()
