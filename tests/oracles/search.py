"""Places in a sorted sequence, value by value."""

from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .index import every, masked


def searchsorted(op: Any, sequence: Any, values: Any, **kwargs: Any) -> Masked:
    """Positions among the valid entries, mapped back: before the first valid entry that is not less."""
    sorter = kwargs.pop("sorter", None)
    if not isinstance(values, Masked | Tensor):
        values = torch.tensor(values, dtype=masked(sequence).data.dtype)
    sequence, values = masked(sequence), masked(values)
    if sorter is not None:
        sorter = masked(sorter)
        at = sorter.data.where(sorter.mask, 0)
        sequence = Masked(sequence.data.gather(-1, at), sequence.mask.gather(-1, at) & sorter.mask)
    dtype = torch.int32 if kwargs.get("out_int32") else torch.int64
    result = torch.zeros(values.data.shape, dtype=dtype)
    for place in every(values.data.shape):
        row = place[:-1] if sequence.data.dim() > 1 else ()
        entries, valid = sequence.data[row], sequence.mask[row]
        where = valid.nonzero().reshape(-1).tolist()
        k = int(torch.searchsorted(entries[valid], values.data[place], **kwargs))
        result[place] = where[k - 1] + 1 if k else 0
    return Masked(result, values.mask)


def bucketize(op: Any, values: Any, boundaries: Any, **kwargs: Any) -> Masked:
    return searchsorted(op, boundaries, values, **kwargs)


ORACLES = {"searchsorted": searchsorted, "bucketize": bucketize}
