"""Connectionist temporal classification: the sum over all alignments, spelled out."""

from typing import Any

import torch
from torch.nn import functional as F

from ..helpers.harness import Masked
from .loss import both, reduced


def ctc_loss(
    op: Any,
    scores: Any,
    targets: Any,
    steps: Any,
    lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Masked:
    x, t = both(scores), both(targets)
    steps, lengths = (
        both(torch.as_tensor(steps) if isinstance(steps, list) else steps),
        both(torch.as_tensor(lengths) if isinstance(lengths, list) else lengths),
    )
    known_lengths = steps.mask & lengths.mask
    steps, lengths = steps.data.tolist(), torch.where(lengths.mask, lengths.data, 0).tolist()
    values, mask = [], []
    parts = (
        zip(t.data, t.mask, strict=True)
        if t.data.dim() == 2
        else zip(t.data.split(lengths), t.mask.split(lengths), strict=True)
    )
    for i, ((labels, known), n, s) in enumerate(zip(parts, lengths, steps, strict=True)):
        row, valid = x.data[:s, i], x.mask[:s, i]
        kept = valid.any(-1)
        row, labels = row.masked_fill(~valid, -torch.inf)[kept], labels[:n][known[:n]]
        mask.append(len(row) > 0 and bool(known_lengths[i]))
        if not mask[-1]:
            values.append(row.new_zeros(()))
            continue
        sizes = (torch.tensor([len(row)]), torch.tensor([len(labels)]))
        value = F.ctc_loss(row[:, None], labels[None], *sizes, blank, "none", zero_infinity)[0]
        values.append(value / max(1, len(labels)) if reduction == "mean" else value)
    return reduced(torch.stack(values), torch.tensor(mask), reduction)


ORACLES = {"nn.functional.ctc_loss": ctc_loss}
XFAIL = {
    ("nn.functional.ctc_loss", "gradient"): "torch's derivative presumes scores from log_softmax (see test_loss)",
    ("nn.functional.ctc_loss", "compiled"): "torch: the shape of _ctc_loss's buffers depends on data",
}
