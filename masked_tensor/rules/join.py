"""Joins: every part keeps its validity; plain parts are valid.

Layouts, dtypes and devices promote as in torch.  A dimension in which every part's mask is constant stays constant;
so does the joined dimension, if all parts share one mask.  Joining features to padding is reported.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import masks, pair
from ..op import Op
from ..packing import joins as packed
from ..packing.kinds import packed_rule
from ..pair import Pair, Payload
from ..shared import feature_joins


def cat(tensors: Sequence[Pair | Tensor], dim: int = 0) -> Pair:
    """``torch.cat``."""
    parts = [t if type(t) is Pair else pair.plain_pair(t) for t in tensors]
    try:
        data = torch.cat([p.data for p in parts], dim)
    except RuntimeError as error:
        raise _with_way_out(error, "must match except in dimension", f"masked_tensor.cat(tensors, dim={dim})") from None
    parts = [p for p in parts if p.data.shape != (0,)] or parts[
        :1
    ]  # torch skips empty 1-D parts, whatever the others are
    dim %= data.dim()
    valid = [p.mask for p in parts]
    if dim and data.dim() > 2:
        feature_joins.look("cat", valid, dim)
    return Pair(data, _cat_masks(valid, dim, data.shape), _payload(parts))


def stack(tensors: Sequence[Pair | Tensor], dim: int = 0) -> Pair:
    """``torch.stack``."""
    parts = [t if type(t) is Pair else pair.plain_pair(t) for t in tensors]
    try:
        data = torch.stack([p.data for p in parts], dim)
    except RuntimeError as error:
        way_out = f"masked_tensor.cat([t.unsqueeze({dim}) for t in tensors], dim={dim})"
        raise _with_way_out(error, "equal size", way_out) from None
    dim %= data.dim()
    valid = [p.mask for p in parts]
    if dim and data.dim() > 2:
        feature_joins.look("stack", valid, dim, new=True)
    return Pair(data, _stack_masks(valid, dim, data.shape), _payload(parts))


def block_diag(tensors: Sequence[Pair | Tensor]) -> Pair:
    """``torch.block_diag``: the zeros around the blocks are valid."""
    parts = [pair.as_pair(t) for t in tensors]
    data = torch.block_diag(*(p.data for p in parts))
    return Pair(data, ~torch.block_diag(*(~p.mask for p in parts)), _payload(parts))


def chunk_cat(tensors: Sequence[Pair | Tensor], dim: int, num_chunks: int) -> Pair:
    """Each part is padded with zeros, cut into chunks and laid side by side: those zeros are valid."""
    parts = [pair.as_pair(t) for t in tensors]
    data = torch._chunk_cat([p.data for p in parts], dim, num_chunks)
    return Pair(data, ~torch._chunk_cat([~p.mask for p in parts], dim, num_chunks), _payload(parts))


def pad_sequence(
    sequences: Sequence[Pair | Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Pair:
    """torch's ``pad_sequence``: the padding is valid (``masked_tensor.pad_sequence`` masks it)."""
    parts = [pair.as_pair(s) for s in sequences]
    pad = torch.nn.utils.rnn.pad_sequence
    data = pad([p.data for p in parts], batch_first, padding_value, padding_side)
    mask = pad([p.mask for p in parts], batch_first, True, padding_side)
    return Pair(data, mask, _payload(parts))


def _stack_masks(parts: Sequence[Tensor], dim: int, shape: Sequence[int]) -> Tensor:
    first, *others = parts
    if (first.numel() > 1 and 0 in first.stride()) or all(masks.same_memory(first, m) for m in others):
        return _cat_masks([m.unsqueeze(dim) for m in parts], dim, shape)  # which may stay small
    return torch.stack(list(parts), dim)


def _cat_masks(parts: Sequence[Tensor], dim: int, shape: Sequence[int]) -> Tensor:
    constant = all(masks.is_constant(m, dim) for m in parts)
    if constant and all(masks.same_rows(parts[0], m) for m in parts):  # of one, as rotary embeddings
        return masks.with_rows_of(parts[0], shape[dim], dim)
    for d in range(len(shape)):
        if d != dim and shape[d] > 0 and all(m.stride(d) == 0 or m.shape[d] == 1 for m in parts):
            parts = [m.narrow(d, 0, 1) for m in parts]
    if constant:
        first, *others = (m.narrow(dim, 0, 1) for m in parts)
        if all(masks.same_memory(first, m) for m in others):  # parts of one tensor, as rotary embeddings join them
            return masks.expand_to(first, shape)
    return masks.expand_to(torch.cat(list(parts), dim), shape)


def _with_way_out(error: RuntimeError, about: str, line: str) -> RuntimeError:
    """torch's error for shapes that differ, with the line that pads; another error itself."""
    return RuntimeError(f"{error}; {line} pads to the longest, and masks the padding") if about in str(error) else error


def _payload(parts: Sequence[Pair]) -> Payload:
    return Payload.ANY if Payload.ANY in [p.payload for p in parts] else Payload.ZERO


OPS = [
    Op("cat", cat, packed=packed_rule(packed.cat, free=("tensors",))),
    Op("stack", stack, packed=packed_rule(packed.stack, stored=("tensors",))),
    Op("_stack", stack),
    Op("block_diag", block_diag),
    Op("_chunk_cat", chunk_cat),
    Op("pad_sequence", pad_sequence, batched=True),
]
