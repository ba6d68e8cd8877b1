"""Segments: torch's own reduction of the valid entries of each; of one without entries, too."""

from typing import Any

import torch

from ..helpers.harness import Masked
from .index import every, masked


def segment_reduce(op: Any, x: Any, reduce: str, *, lengths: Any = None, offsets: Any = None, **kwargs: Any) -> Masked:
    x, axis, initial = masked(x), kwargs["axis"], kwargs.get("initial")
    ends = (
        masked(offsets).data if lengths is None else torch.nn.functional.pad(masked(lengths).data.cumsum(axis), (1, 0))
    )
    shape = (*ends.shape[:-1], ends.shape[-1] - 1, *x.data.shape[axis + 1 :])
    data, mask = torch.zeros(shape, dtype=x.data.dtype), torch.zeros(shape, dtype=torch.bool)
    for place in every(shape):
        outer, k, rest = place[:axis], place[axis], place[axis + 1 :]
        part = slice(int(ends[(*outer, k)]), int(ends[(*outer, k + 1)]))
        valid = x.mask[(*outer, part, *rest)]
        entries = x.data[(*outer, part, *rest)][valid]
        if len(entries) or not len(valid):
            data[place] = op(entries, reduce, lengths=torch.tensor([len(entries)]), initial=initial)[0]
            mask[place] = True
    return Masked(data, mask)


XFAIL = {
    (f"_segment_reduce.{name}", law): "the samples' lengths are masked, too, and a masked one among them raises"
    for name in ("lengths", "offsets")
    for law in ("compiled", "inference", "vmap", "autocast")
}
ORACLES = {"_segment_reduce.lengths": segment_reduce, "_segment_reduce.offsets": segment_reduce}
