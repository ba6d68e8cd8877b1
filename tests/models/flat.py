"""The text models of transformers on flat tokens (``mt.flat``): values and gradients, padded on either side.

*Evaluation* and *training* are modes of the model; its dropout is 0 in both.
"""

from collections.abc import Iterable

import torch
from torch import nn

import masked_tensor as mt

from . import text
from .judge import Inputs, Verdict, judge, short

CHECKS = ("right", "left", "training, right", "training, left")


def verdicts(name: str, checks: Iterable[str] = CHECKS) -> dict[str, list[str]]:
    """What each check says of one type, in float64 (float32, where its own code cannot do that)."""
    said = {check: Verdict("not built") for check in checks}
    for dtype in (torch.float64, torch.float32):
        try:
            model = mt.flat(text.build(name, "default", dtype))
            rows, batch = text.inputs(model, -100)
        except Exception as error:
            return {check: ["not built", short(error)] for check in checks}
        said = {check: _verdict(model, rows, batch, check) for check in checks}
        if all(verdict.outcome != "fails alone" for verdict in said.values()):
            break
    return {check: [verdict.outcome, verdict.detail] for check, verdict in said.items()}


def _verdict(model: nn.Module, rows: list[Inputs], batch: Inputs, check: str) -> Verdict:
    model.train(check.startswith("training"))

    def called(model: nn.Module, given: Inputs) -> torch.Tensor:
        torch.manual_seed(0)
        ids = given["input_ids"]
        if not isinstance(ids, mt.MaskedTensor):
            return text.call(model, given)
        left = check.endswith("left")
        out = text.call(model, given | {"input_ids": mt.to_right(ids) if left else ids})
        if not isinstance(out, mt.MaskedTensor):  # what is pooled: one row for each sequence
            return mt.as_masked_tensor(out, torch.ones_like(out, dtype=torch.bool))
        return mt.to_left(out) if left else out

    return judge(model, called, rows, batch)
