"""Scattered accumulation: a masked index or source entry contributes nothing, and neither does a masked destination.

A result is valid iff its destination or at least one contribution is.  ``scatter`` without a reduction assigns: a
masked index writes nothing, and a masked source masks its target.  Writes that must not happen go to an extra slot.
"""

from collections.abc import Sequence
from operator import getitem
from typing import Any

import torch
from torch import Tensor

from .. import errors, masks, pair
from ..compat import has_tangent
from ..kernels.identity import identity
from ..kernels.precision import counts_in_float32, rounds_noticeably
from ..op import Op
from ..pair import Pair, Payload
from ..select import guard, select, zero_masked
from ..shared import strict_counts
from .choose import without_masked
from .index import align_validity


def append_slot(data: Tensor, dim: int) -> Tensor:
    """``data`` with one more slot at the end of ``dim``, for what must not be written."""
    shape = list(data.shape)
    shape[dim] = 1
    return torch.cat([data, data.new_zeros(shape)], dim)


def drop_extra_slot(data: Tensor, dim: int, size: int) -> Tensor:
    """``data`` without the slot that ``extended`` added, contiguous as the plain op's result is."""
    return data.narrow(dim, 0, size).contiguous()


def redirect_masked(index: Tensor, valid: Tensor, size: int, wrap: bool = True) -> Tensor:
    """``index`` where ``valid``, else the slot past the end of a dimension of ``size``.

    Valid indices out of range stay out of range; negative ones count from the end if ``wrap``.
    """
    if wrap:
        index = torch.where((index < 0) & (index >= -size), index + size, index)
    index = torch.where((index >= size) | (index < 0), size + 1, index)
    return select(index, valid, size)


def scatter(x: Pair | Tensor, dim: int, index: Pair | Tensor, src: Any, *, reduce: str | None = None) -> Pair:
    """``x.scatter(dim, index, src)``; ``src`` may be a number."""
    x = pair.as_pair(x)
    _check_scattered(x.data, dim, pair.data_of(index), pair.data_of(src))
    if x.data.dim() == 0:
        return _on_flat(scatter, x, dim, index, src, reduce=reduce)
    if pair.data_of(index).numel() == 0:
        return _unchanged(x)
    part = _part(src, index)
    if reduce is not None:
        return _reduce_into(x, dim, index, part, {"add": "sum", "multiply": "prod"}[reduce], True)
    # Where a valid entry overwrites a masked one, torch sends the slot's gradient to both.
    value: Any = guard(part.data, part.mask) if type(part) is Pair else part
    valid: Any = part.mask if type(part) is Pair else True
    payload = Payload.ZERO if type(part) is not Pair or part.payload is Payload.ZERO else Payload.ANY
    payload = payload if x.payload is Payload.ZERO else Payload.ANY
    if isinstance(index, Tensor):
        return Pair(torch.scatter(x.data, dim, index, value), torch.scatter(x.mask, dim, index, valid), payload)
    size = x.data.shape[dim]
    at = redirect_masked(without_masked(index), index.mask, size, wrap=False)
    data = drop_extra_slot(torch.scatter(append_slot(x.data, dim), dim, at, value), dim, size)
    return Pair(data, drop_extra_slot(torch.scatter(append_slot(x.mask, dim), dim, at, valid), dim, size), payload)


def scatter_add(x: Pair | Tensor, dim: int, index: Pair | Tensor, src: Pair | Tensor) -> Pair:
    """``x.scatter_add(dim, index, src)``."""
    return scatter_reduce(x, dim, index, src, "sum")


def scatter_reduce(
    x: Pair | Tensor, dim: int, index: Pair | Tensor, src: Pair | Tensor, reduce: str, *, include_self: bool = True
) -> Pair:
    """``x.scatter_reduce(dim, index, src, reduce)``: sum, prod, mean, amax, amin over destination and contributions."""
    _check_scattered(pair.data_of(x), dim, pair.data_of(index), pair.data_of(src))
    if pair.data_of(x).dim() == 0:
        return _on_flat(scatter_reduce, pair.as_pair(x), dim, index, src, reduce, include_self=include_self)
    if pair.data_of(index).numel() == 0:
        return _unchanged(pair.as_pair(x))
    try:
        return _reduce_into(pair.as_pair(x), dim, index, _part(src, index), reduce, include_self)
    except IndexError as error:  # of index_add, by which means are taken; torch's scatter_reduce raises the other kind
        size = pair.data_of(x).shape[dim]
        raise RuntimeError(f"an index is out of bounds for dimension {dim} with size {size}") from error


def index_add(x: Pair | Tensor, dim: int, index: Pair | Tensor, source: Pair | Tensor, *, alpha: float = 1) -> Pair:
    """``x.index_add(dim, index, source)``: no expanded index is made."""
    old, new = pair.as_pair(x), pair.as_pair(source)
    _check_slices("index_add", old.data, dim, pair.data_of(index), new.data)
    if old.data.dim() == 0:
        return _on_flat(index_add, old, dim, index, source, alpha=alpha)
    if strict_counts.KNOWN and type(index) is not Pair:
        strict_counts.refuse("index_add", new)
    valid = new.mask
    if type(index) is Pair:
        valid = masks.logical_and(valid, _expand_index(index.mask, new.data, dim))
    at = without_masked(index)
    values = zero_masked(new) if valid is new.mask else select(new.data, valid, 0)
    data = torch.index_add(zero_masked(old), dim, at, values, alpha=alpha)
    if type(x) is not Pair:
        return pair.plain_pair(data)
    if type(source) is not Pair and type(index) is not Pair:
        return Pair(data, torch.index_fill(old.mask, dim, at.to(torch.int64), True), old.payload)
    hits = torch.index_add(old.mask.to(torch.int32), dim, at, valid.to(torch.int32))
    return Pair(data, hits != 0, Payload.ZERO)


def index_reduce(
    x: Pair | Tensor, dim: int, index: Pair | Tensor, source: Pair | Tensor, reduce: str, *, include_self: bool = True
) -> Pair:
    """``x.index_reduce(dim, index, source, reduce)``: prod, mean, amax, amin."""
    _check_slices("index_reduce", pair.data_of(x), dim, pair.data_of(index), pair.data_of(source))
    if pair.data_of(x).dim() == 0:
        return _on_flat(index_reduce, pair.as_pair(x), dim, index, source, reduce, include_self=include_self)
    added = pair.data_of(source)
    at = _expand_index(without_masked(index), added, dim)
    spelled = Pair(at, _expand_index(index.mask, added, dim)) if type(index) is Pair else at
    return _reduce_into(pair.as_pair(x), dim, spelled, pair.as_pair(source), reduce, include_self)


def accumulate_at(x: Pair, indices: Sequence[Tensor | None], valid: Tensor | None, values: Pair) -> Pair:
    """``index_put(..., accumulate=True)``; ``valid``: the validity of the indices' broadcast shape."""
    shape = torch.ops.aten.index(x.mask, indices).shape
    if strict_counts.KNOWN and valid is None:
        strict_counts.refuse("index_put", values)
    mask = masks.expand_to(values.mask, shape)
    if valid is not None:
        mask = masks.logical_and(mask, masks.expand_to(align_validity(valid, x.data, indices), shape))
    added = select(values.data.expand(shape), mask, 0)
    data = torch.ops.aten.index_put(zero_masked(x), indices, added, True)
    hits = torch.ops.aten.index_put(x.mask.to(torch.int32), indices, mask.to(torch.int32), True)
    return Pair(data, hits != 0, Payload.ZERO)


def _reduce_into(x: Pair, dim: int, index: Pair | Tensor, src: Any, reduce: str, include_self: bool) -> Pair:
    """Contributions that do not count go to the slot past the end."""
    at = without_masked(index)
    if strict_counts.KNOWN and reduce == "sum" and type(index) is not Pair:
        strict_counts.refuse("scatter_add", src)
    if not isinstance(src, Pair):
        src = pair.plain_pair(torch.full_like(at, src, dtype=x.data.dtype))
    valid = masks.logical_and(src.mask, index.mask) if type(index) is Pair else src.mask
    values = zero_masked(src) if valid is src.mask else select(src.data, valid, 0)
    size = x.data.shape[dim]
    groups = _groups(at, x.data, dim) if reduce == "mean" and type(index) is not Pair else None
    if groups is not None:
        return _group_means(x, dim, groups, values, valid, include_self)
    hit = torch.scatter_reduce(_bytes(x.mask), dim, at, _bytes(valid), "amax").view(torch.bool)
    if reduce == "sum" and include_self:
        return Pair(torch.scatter_add(zero_masked(x), dim, at, values), hit, Payload.ZERO)
    at = redirect_masked(at, valid, size, wrap=False)
    if reduce == "mean":
        return Pair(_mean(x, dim, at, values, include_self), hit)
    if reduce == "prod" and (has_tangent(x.data) or has_tangent(values)):
        raise errors.no_tangent("a product by scatter_reduce or index_reduce")
    start = append_slot(select(x.data, x.mask, identity(reduce, x.data.dtype)), dim)
    result = torch.scatter_reduce(start, dim, at, values, reduce, include_self=include_self)
    return Pair(drop_extra_slot(result, dim, size), hit)


def _groups(at: Tensor, x: Tensor, dim: int) -> Tensor | None:
    """The 1-D index that ``at`` repeats along the other dimensions of ``x``, of floats; None if it repeats none."""
    dim %= x.dim()
    others = [d for d in range(x.dim()) if d != dim]
    if not (x.is_floating_point() or x.is_complex()) or not masks.is_constant(at, others):
        return None
    if any(at.shape[d] != x.shape[d] for d in others):
        return None
    return masks.first_slice(at, others).reshape(-1)


def _group_means(x: Pair, dim: int, groups: Tensor, values: Tensor, valid: Tensor, include_self: bool) -> Pair:
    """Means by a 1-D index: what does not count adds a 0 to the sum, and to the number, which is exact."""
    exact = torch.float32 if counts_in_float32(valid.shape[dim]) else torch.int64
    start = x.mask.to(exact) if include_self else torch.zeros(x.mask.shape, dtype=exact, device=x.mask.device)
    number = torch.index_add(start, dim, groups, valid.to(exact))
    hit = number != 0
    kept = zero_masked(x) if include_self else select(x.data, masks.logical_and(x.mask, ~hit), 0)
    hit = hit if include_self else hit | x.mask
    if rounds_noticeably(x.data.dtype):
        kept, values = kept.float(), values.float()
    total = torch.index_add(kept, dim, groups, values)
    return Pair((total / number.clamp(min=1).to(total.dtype)).to(x.data.dtype), hit)


def _mean(x: Pair, dim: int, at: Tensor, values: Tensor, include_self: bool) -> Tensor:
    size = x.data.shape[dim]
    start, ones = select(x.data, x.mask, 0), torch.ones_like(at, dtype=torch.int64)
    n = torch.scatter_add(append_slot(torch.zeros_like(x.mask, dtype=torch.int64), dim), dim, at, ones).narrow(
        dim, 0, size
    )
    alone = n == 0
    kept = start if include_self else select(start, alone, 0)
    total = torch.scatter_add(append_slot(kept, dim), dim, at, values).narrow(dim, 0, size)
    n = n + (x.mask if include_self else alone)
    if x.data.is_floating_point() or x.data.is_complex():
        return total / n.clamp(min=1)
    return torch.div(total, n.clamp(min=1), rounding_mode="floor").to(x.data.dtype)


# torch's own conditions on shapes: what is read of a part, expanded or reshaped here would meet other shapes.


def _check_scattered(x: Tensor, dim: int, index: Tensor, src: Any) -> None:
    """An index has as many dimensions as ``x`` and ``src``, and is nowhere longer, but along ``dim`` than ``x``."""
    if index.numel() == 0:  # nothing is written
        return
    errors.expect_positions("the index of a scatter", index)
    shape, at = tuple(x.shape) or (1,), tuple(index.shape) or (1,)
    source = (tuple(src.shape) or (1,)) if isinstance(src, Tensor) else at
    if not len(shape) == len(at) == len(source):
        raise RuntimeError(
            f"the index of a scatter must have as many dimensions as the input and the source, got shape {at}, the "
            f"input {shape} and the source {source}"
        )
    along = dim % len(shape)
    if any(n > source[d] or (d != along and n > shape[d]) for d, n in enumerate(at)):
        raise RuntimeError(
            f"the index of a scatter must be no larger than the source, nor than the input apart from dimension {dim}, "
            f"got shape {at}, the source {source} and the input {shape}"
        )


def _check_slices(op: str, x: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """One slice of ``source`` for each index, of the shape of those of ``x``."""
    errors.expect_positions(f"the index of {op}", index)
    if index.dim() > 1:
        raise IndexError(f"{op}: the index must have one dimension, got shape {tuple(index.shape)}")
    shape, given = list(x.shape), list(source.shape)
    if shape and given and len(shape) == len(given):
        shape[dim] = given[dim] = 1
    if shape != given:
        raise RuntimeError(
            f"{op}: the source must have the input's shape apart from dimension {dim}, got {tuple(source.shape)} and "
            f"{tuple(x.shape)}"
        )
    slices = source.shape[dim] if given else 1
    if index.numel() != slices:
        raise RuntimeError(f"{op}: the index must name each of the {slices} slices of the source, got {index.numel()}")


def _unchanged(x: Pair) -> Pair:
    """Nothing is written: an index without entries may have any shape."""
    return pair.moved(x, torch.clone)


def _part(src: Any, index: Pair | Tensor) -> Any:
    """``src`` as a pair of the index's shape, which may be the smaller one; numbers as they are."""
    if not isinstance(src, Pair | Tensor):
        return src
    src = pair.as_pair(src)
    shape = pair.data_of(index).shape
    if src.data.shape == shape:
        return src
    if src.data.dim() == 0:
        return pair.moved(src, torch.reshape, shape)
    return pair.moved(src, getitem, tuple(slice(n) for n in shape))


def _expand_index(index: Tensor, like: Tensor, dim: int) -> Tensor:
    """A 1-D index along ``dim``, expanded to the shape of ``like``."""
    shape = [1] * like.dim()
    shape[dim] = index.numel()
    return index.reshape(shape).expand(like.shape)


def _bytes(mask: Tensor) -> Tensor:
    return masks.to_bytes(mask.contiguous())


def _on_flat(rule: Any, x: Pair, dim: int, *operands: Any, **kwargs: Any) -> Pair:
    """0-d operands as tensors of one entry."""

    flat = (pair.moved(v, torch.reshape, (-1,)) if isinstance(v, Pair | Tensor) else v for v in (x, *operands))
    result: Pair = rule(next(flat), dim, *flat, **kwargs)
    return pair.moved(result, torch.reshape, ())


OPS = [
    Op("scatter", scatter),
    Op("scatter_add", scatter_add),
    Op("scatter_reduce", scatter_reduce),
    Op("index_add", index_add),
    Op("index_reduce", index_reduce),
]
