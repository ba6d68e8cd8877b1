"""Embedding by definition: one id after the other."""

import itertools
from typing import Any

import torch

from ..helpers.harness import Masked
from .matmul import masked


def embedding(
    op: Any,
    weight: Any,
    ids: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Masked:
    ids, weight = masked(ids), masked(weight)
    table = torch.where(weight.mask, weight.data, 0)
    if max_norm is not None:
        for row in set(ids.data[ids.mask].tolist()):
            norm = table[row].norm(norm_type)
            if norm > max_norm:
                table[row] *= max_norm / (norm + 1e-7)
    data = torch.zeros(*ids.data.shape, *table.shape[1:], dtype=table.dtype)
    valid = torch.zeros(data.shape, dtype=torch.bool)
    for place in itertools.product(*(range(size) for size in ids.data.shape)):
        if ids.mask[place]:
            row = int(ids.data[place])
            data[place], valid[place] = table[row], weight.mask[row]
    return Masked(data, valid)


def one_hot(op: Any, ids: Any, num_classes: int = -1) -> Masked:
    ids = masked(ids)
    classes = num_classes if num_classes >= 0 else int(torch.where(ids.mask, ids.data, 0).max()) + 1
    data = torch.zeros(*ids.data.shape, classes, dtype=torch.int64)
    for place in itertools.product(*(range(size) for size in ids.data.shape)):
        if ids.mask[place]:
            data[(*place, int(ids.data[place]))] = 1
    return Masked(data, ids.mask.unsqueeze(-1).expand(data.shape))


ORACLES = {"nn.functional.embedding": embedding, "nn.functional.one_hot": one_hot}
XFAIL = {
    ("nn.functional.embedding", "gradient"): "with padding_idx or by frequency it is no derivative, in torch neither",
    ("nn.functional.embedding", "compiled"): "max_norm names rows by the values of the valid ids",
    ("nn.functional.one_hot", "compiled"): "without num_classes the shape depends on the values, in torch too",
}
