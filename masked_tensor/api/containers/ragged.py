"""Sequences of different lengths become one padded batch: the one place where this is done.

Sequences are stacked along a new first dimension, and every other dimension is as long as the longest.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils import rnn

from ... import masks
from ...masks import sides
from ...pair import Pair, plain_pair
from ...shared.rows.lengths import check_side

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}  # torch indexes these alone


def pad_and_stack(
    pairs: Sequence[Pair],
    side: str = "right",
    fill: float = 0.0,
    *,
    whole: bool = False,
    wanted: tuple[int, int] | None = None,
) -> Pair:
    """The pairs ``(T_i, U_i, ...)`` as ``(B, T, U, ...)``; ``whole`` says that none has masked entries of its own.

    ``fill`` lies under the padding.  ``wanted`` is a dimension of the pairs and how long it becomes, where that is not
    the longest.  Data of different dtypes are promoted, as in ``torch.stack``.
    """
    check_side(side)
    sizes = [p.data.shape for p in pairs]
    if any(len(size) != len(sizes[0]) for size in sizes):
        raise ValueError(f"sequences must have the same number of dimensions, got shapes {[tuple(s) for s in sizes]}")
    longest = [max(size[d] for size in sizes) for d in range(len(sizes[0]))]
    if wanted is not None:
        longest[wanted[0]] = wanted[1]
    dims = [d for d in range(len(longest)) if {size[d] for size in sizes} != {longest[d]}]
    data = _pad_parts([p.data for p in pairs], dims, longest, side, fill)
    mask = plain_pair(data).mask
    for d in dims:
        mask = masks.logical_and(mask, _until_length([size[d] for size in sizes], d + 1, data, side))
    if not whole:
        mask = masks.logical_and(mask, _pad_parts([p.mask for p in pairs], dims, longest, side, False))
    if side == "left" and len(dims) == 1:
        sides.note_left(mask, dims[0] + 1)
    return Pair(data, mask)


def expect_one(name: str, pairs: Sequence[Pair], dim: int, before: int = 0) -> None:
    """Raises if shapes differ elsewhere than along ``dim``, which the caller counts with ``before`` dimensions more."""
    fixed = {(*p.data.shape[:dim], *p.data.shape[dim + 1 :]) for p in pairs}
    if len(fixed) == 1 and pairs[0].data.dim() > dim:
        return
    sizes = [tuple(p.data.shape) for p in pairs]
    shown = f"got shapes {sizes[:4]}{' ...' if len(sizes) > 4 else ''}"
    if () in sizes:
        raise ValueError(
            f"{name}: each sequence needs a time dimension, {shown}; single numbers form one tensor: "
            "masked_tensor(numbers)"
        )
    way = ""
    if len({len(size) for size in sizes}) == 1:
        differ = [d for d, along in enumerate(zip(*sizes, strict=True)) if len(set(along)) > 1]
        way = f"; if time is their dimension {differ[0]}, give dim={differ[0] + before}" if len(differ) == 1 else ""
    raise ValueError(f"{name}: sequences may differ along dimension {dim} alone, {shown}{way}")


def pad_and_cat(pairs: Sequence[Pair]) -> Pair:
    """Batches one after the other, each padded to the longest along the dimensions after the first."""
    if len(pairs) == 1:
        return pairs[0]
    longest = [max(p.data.shape[d] for p in pairs) for d in range(1, pairs[0].data.dim())]
    data = [_pad_to(p.data, longest, 0) for p in pairs]
    mask = [_pad_to(p.mask, longest, False) for p in pairs]
    return Pair(torch.cat(data), torch.cat(mask))


def to_padded(rows: Pair, lengths: Tensor, side: str = "right") -> Pair:
    """The rows ``(N, ...)`` of all sequences, one after the other, as a batch ``(B, T, ...)``."""
    mask = masks.lengths_to_mask(lengths, int(lengths.max()) if len(lengths) else 0)
    mask = mask.flip(1) if side == "left" else mask
    shape = (*mask.shape, *rows.data.shape[1:])
    kind = rows.data.dtype
    bits = rows.data.view(_SIGNED.get(kind, kind))
    data = bits.new_zeros(shape).index_put((mask,), bits).view(kind)
    return Pair(data, rows.mask.new_zeros(shape).index_put((mask,), rows.mask))


def per_step(mask: Tensor, data: Tensor, dim: int = 1, batch: int = 0) -> Tensor:
    """A ``(B, T)`` mask over ``data`` with its batch and its time at these dims, constant along all others."""
    shape = [1] * data.dim()
    shape[batch], shape[dim] = mask.shape
    return (mask if batch < dim else mask.t()).reshape(shape).expand(data.shape)


def _until_length(lengths: Sequence[int], dim: int, data: Tensor, side: str) -> Tensor:
    mask = masks.lengths_to_mask(torch.tensor(lengths), data.shape[dim]).to(data.device)
    return per_step(mask.flip(1) if side == "left" else mask, data, dim)


def _pad_parts(parts: Sequence[Tensor], dims: Sequence[int], longest: Sequence[int], side: str, fill: float) -> Tensor:
    if not dims:
        return torch.stack(promote(parts))
    parts = promote(parts)
    if len(dims) == 1:
        if all(p.shape[dims[0]] < longest[dims[0]] for p in parts):  # one of them is as long, then torch pads the rest
            parts[0] = _pad_to(parts[0], longest, fill, side)
        moved = [p.movedim(dims[0], 0) for p in parts]
        return rnn.pad_sequence(moved, True, fill, side).movedim(1, dims[0] + 1)
    return torch.stack([_pad_to(p, longest, fill, side) for p in parts])


def pad_dims(pair: Pair, sizes: Sequence[int], side: str = "right") -> Pair:
    """``pair`` padded to ``sizes``; the padding is masked."""
    mask = pair.mask
    for d, size in enumerate(sizes):
        if size == mask.shape[d] > 1 and masks.is_constant(mask, d):
            mask = mask.narrow(d, 0, 1)  # as small as it was
    inside = [1 if mask.shape[d] == 1 and size == pair.data.shape[d] else size for d, size in enumerate(sizes)]
    data = _pad_to(pair.data, sizes, 0, side)
    return Pair(data, masks.expand_to(_pad_to(mask, inside, False, side), data.shape))


def _pad_to(x: Tensor, sizes: Sequence[int], fill: float, side: str = "right") -> Tensor:
    """``x`` with its last dimensions padded to ``sizes``."""
    pads: list[int] = []
    for size, wanted in zip(reversed(x.shape), reversed(sizes), strict=False):
        pads += [0, wanted - size] if side == "right" else [wanted - size, 0]
    return torch.nn.functional.pad(x, pads, value=fill) if any(pads) else x


def promote(parts: Sequence[Tensor]) -> list[Tensor]:
    """The tensors in the one dtype that torch promotes theirs to."""
    kinds = {p.dtype for p in parts}
    if len(kinds) <= 1:
        return list(parts)
    dtype = parts[0].dtype
    for kind in kinds:
        dtype = torch.promote_types(dtype, kind)
    return [p.to(dtype) for p in parts]
