"""Assignment: a valid value unmasks the entry, a masked value masks it, and a masked index writes nothing.

An in-place op on the whole tensor that copies from no tensor (``zero_``, ``fill_``, ``normal_``, ``clamp_``) keeps the
mask, even through a view (``y[0].fill_(9)``). Ops that name the entries they write (``y[0] = 9``, ``index_fill_``,
``put_``, ``scatter_``, ``tril_``) assign, and so does ``copy_``.

The functional forms are here; ``x[k] = v``, ``copy_``, ``out=`` and the other in-place variants follow from them.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload, is_tracked
from ..errors import expect_positions
from ..op import Op, ops
from ..packing.kinds import keep_storage, store_anew
from ..pair import Pair, Payload
from ..select import guard
from ..shapes import canonical_dims
from ..sparse.rules import on_values
from .choose import masked_fill, number_of, without_masked
from .index import CONDITIONS, Index, clamp_indices, key, logical_not, narrow_mask, plain_indices
from .scatter import accumulate_at, append_slot, drop_extra_slot, redirect_masked


def copy(x: Pair | Tensor, src: Pair | Tensor | complex, non_blocking: bool = False) -> Pair:
    """``x.copy_(src)``: the values and the validity of ``src``."""
    if not isinstance(src, Pair | Tensor):  # a number
        wide = {float: torch.float64, complex: torch.complex128}
        src = torch.tensor(src, dtype=wide.get(type(src)))
    x, src = pair.as_pair(x), pair.as_pair(src)
    data = src.data.to(device=x.data.device, dtype=x.data.dtype, non_blocking=non_blocking)
    return Pair(data.expand(x.data.shape), src.mask.to(x.data.device).expand(x.data.shape), src.payload)


def fill(x: Pair | Tensor, value: Any) -> Pair:
    """``x.fill_(value)``: the value at the same entries; the mask stays, or is all False if ``value`` is masked."""
    x = pair.as_pair(x)
    if type(value) is Pair:
        mask = masks.logical_and(x.mask, value.mask.expand(x.data.shape))
        return Pair(torch.ops.aten.fill(x.data, value.data), mask)
    if isinstance(value, Tensor) or is_tracked(x.data):
        return Pair(torch.ops.aten.fill(x.data, value), x.mask)
    return Pair(torch.full_like(x.data, value), x.mask)  # without a copy of what is overwritten


def zero(x: Pair) -> Pair:
    """``x.zero_()``: 0 at the same entries; the mask stays."""
    return Pair(fill(x, 0).data, x.mask, Payload.ZERO)


def index_put(
    x: Pair | Tensor, indices: Sequence[Index], values: Pair | Tensor, accumulate: bool = False, unsafe: bool = False
) -> Pair:
    """``x[indices] = values``, or ``+=``, in which every occurrence of an index counts."""
    x, values = pair.as_pair(x), pair.as_pair(values)
    bare, valid = plain_indices(indices)
    if accumulate:
        return accumulate_at(x, bare, valid, values)
    # Where a valid entry overwrites a masked one, torch sends the slot's gradient to both.
    values = Pair(guard(number_of(values, x.data.dtype), values.mask), values.mask, values.payload)
    if valid is None:
        data = torch.ops.aten.index_put(x.data, bare, values.data)
        return Pair(data, _mask_put(x.mask, bare, values.mask, data.shape), keeps_zero(x, values))
    first = next(i for i, k in enumerate(bare) if k is not None)
    size = x.data.shape[first]
    bare[first] = redirect_masked(bare[first], valid, size)  # type: ignore[arg-type]  # the first that is not None
    data = drop_extra_slot(torch.ops.aten.index_put(append_slot(x.data, first), bare, values.data), first, size)
    mask = drop_extra_slot(torch.ops.aten.index_put(append_slot(x.mask, first), bare, values.mask), first, size)
    return Pair(data, mask, keeps_zero(x, values))


def conditions(indices: Sequence[Index]) -> list[Tensor | None] | None:
    """The keys of a write into a plain tensor: a masked entry of a condition selects nothing.

    None if a masked key is not a condition: the entries to leave out would have to be looked up.
    """
    if any(type(k) is Pair and k.data.dtype not in CONDITIONS for k in indices):
        return None
    return [None if k is None else key(k) for k in indices]


def add_at(x: Pair | Tensor, mask: Pair | Tensor, indices: Sequence[Index], values: Pair | Tensor) -> Pair:
    """``_unsafe_masked_index_put_accumulate``: ``x[indices] += values``, adding 0 where ``mask`` is False."""
    x = pair.as_pair(x)
    if x.data.numel() == 0:  # there is no place to add to
        return Pair(x.data.clone(), x.mask, x.payload)
    bare, valid = plain_indices(clamp_indices(x.data, indices))
    return accumulate_at(x, bare, valid, masked_fill(values, logical_not(mask), 0))


def _mask_put(mask: Tensor, indices: Sequence[Tensor | None], value: Tensor, shape: Sequence[int]) -> Tensor:
    small = masks.compact(value)
    if small.numel() == 1:  # one validity for all that is written: constant dimensions stay so
        valid, rest, key = small.reshape(()), narrow_mask(mask, indices), indices[0]
        if len(indices) == 1 and key is not None and key.dtype is torch.bool:  # bit by bit, without positions
            chosen = key.reshape(key.shape + (1,) * (mask.dim() - key.dim()))
            return masks.expand_to(rest ^ (chosen & (rest ^ valid)), shape)
        return masks.expand_to(torch.ops.aten.index_put(rest, indices, valid), shape)
    result: Tensor = torch.ops.aten.index_put(mask, indices, value)
    return result


def keeps_zero(x: Pair, source: Pair) -> Payload:
    """What is known of the masked-out data after ``source`` was written into ``x``."""
    return Payload.ZERO if x.payload is Payload.ZERO and source.payload is Payload.ZERO else Payload.ANY


def put(x: Pair | Tensor, index: Pair | Tensor, source: Pair | Tensor, accumulate: bool = False) -> Pair:
    """``torch.put``: writes into the flattened tensor."""
    x, at, source = pair.as_pair(x), pair.as_pair(index), pair.as_pair(source)
    expect_positions("the index of put", at.data)
    flat = Pair(x.data.reshape(-1), masks.reshape(x.mask, (x.mask.numel(),)), x.payload)
    shape = at.data.shape
    values = Pair(source.data.reshape(shape), masks.reshape(source.mask, shape), source.payload)
    result = index_put(flat, [index], values, accumulate)
    return Pair(result.data.reshape(x.data.shape), masks.reshape(result.mask, x.data.shape), result.payload)


def index_copy(x: Pair | Tensor, dim: int, index: Pair | Tensor, source: Pair | Tensor) -> Pair:
    """``x.index_copy(dim, index, source)``."""
    x, source = pair.as_pair(x), pair.as_pair(source)
    return _write_along(
        torch.index_copy, x, dim, index, guard(source.data, source.mask), source.mask, keeps_zero(x, source)
    )


def index_fill(x: Pair | Tensor, dim: int, index: Pair | Tensor, value: Any) -> Pair:
    """``x.index_fill(dim, index, value)``."""
    x = pair.as_pair(x)
    if type(value) is Pair:
        number = number_of(value, x.data.dtype)
        return _write_along(torch.index_fill, x, dim, index, number, value.mask, keeps_zero(x, value))
    return _write_along(torch.index_fill, x, dim, index, value, True, x.payload)


def _write_along(op: Any, x: Pair, dim: int, index: Pair | Tensor, value: Any, valid: Any, payload: Payload) -> Pair:
    if type(index) is not Pair:
        return Pair(op(x.data, dim, index, value), op(x.mask, dim, index, valid), payload)
    expect_positions(f"the index of {op.__name__}", index.data)
    (dim,) = canonical_dims(dim, max(x.data.dim(), 1))
    if x.data.dim() == 0:
        x = pair.moved(x, torch.reshape, (1,))
        if op is torch.index_copy and value.dim() == 0:
            value, valid = value.reshape(1), valid.reshape(1)
        return pair.moved(_write_along(op, x, dim, index, value, valid, payload), torch.reshape, ())
    size = x.data.shape[dim]
    at = redirect_masked(without_masked(index), index.mask, size, wrap=op is torch.index_fill)
    data = drop_extra_slot(op(append_slot(x.data, dim), dim, at, value), dim, size)
    return Pair(data, drop_extra_slot(op(append_slot(x.mask, dim), dim, at, valid), dim, size), payload)


def masked_scatter(x: Pair | Tensor, mask: Pair | Tensor, source: Pair | Tensor) -> Pair:
    """The entries of ``source``, in order, into the True positions of ``mask``; a masked one counts as False."""
    x, chosen = pair.as_pair(x), without_masked(mask)
    if type(source) is not Pair:
        data = scatter_in_order(x.data, chosen, source)
        return Pair(data, masks.expand_to(x.mask | chosen, data.shape), x.payload)
    data = scatter_in_order(x.data, chosen, source.data)
    valid = torch.masked_scatter(masks.expand_to(x.mask, data.shape), chosen, source.mask)
    return Pair(data, valid, keeps_zero(x, source))


def scatter_in_order(data: Tensor, chosen: Tensor, source: Tensor) -> Tensor:
    """``torch.masked_scatter`` on plain tensors; the error of a short source states both numbers."""
    try:
        return torch.masked_scatter(data, chosen, source)
    except RuntimeError as error:
        if "Number of elements of source" not in str(error):
            raise
        wanted = int(chosen.expand(torch.broadcast_shapes(chosen.shape, data.shape)).sum())
        raise RuntimeError(
            f"masked_scatter: the mask has {wanted} True positions, but source has only {source.numel()} elements"
        ) from None


def fill_diagonal(x: Pair, fill_value: float, wrap: bool = False) -> Pair:
    """``x.fill_diagonal_(value)``: the diagonal becomes valid."""
    return Pair(
        x.data.clone().fill_diagonal_(fill_value, wrap),
        x.mask.clone(memory_format=torch.contiguous_format).fill_diagonal_(True, wrap),
        x.payload,
    )


def write_view(op: OpOverload, x: Pair | Tensor, src: Pair | Tensor, *args: Any) -> Pair:
    """``select_scatter`` and its siblings: a view of ``x`` is replaced by ``src``."""
    x, src = pair.as_pair(x), pair.as_pair(src)
    return Pair(op(x.data, src.data, *args), op(x.mask, src.mask, *args), keeps_zero(x, src))


def write_strided(
    x: Pair | Tensor, src: Pair | Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Pair:
    """``as_strided_scatter``: the mask is first laid out in memory like the data."""
    x, src = pair.as_pair(x), pair.as_pair(src)
    # Overlapping writes: torch's formula also sends gradients to entries that were overwritten.
    data = torch.as_strided_scatter(guard(x.data, x.mask), guard(src.data, src.mask), size, stride, storage_offset)
    offset = 0 if storage_offset is None else storage_offset - x.data.storage_offset()
    memory = torch.as_strided_scatter(masks.storage_mask(x.mask, x.data), src.mask, size, stride, offset)
    return Pair(data, memory.as_strided(x.data.shape, x.data.stride()), keeps_zero(x, src))


OPS = [
    Op("copy", copy, packed=store_anew, same=True, replaces=True),
    Op("fill", fill, sparse=on_values, packed=keep_storage, same=True),
    Op("zero", zero, sparse=on_values, packed=keep_storage, same=True),
    *ops("index_put _unsafe_index_put _index_put_impl", index_put, conditions=conditions),
    Op("_unsafe_masked_index_put_accumulate", add_at),
    Op("put", put),
    Op("index_copy", index_copy),
    Op("index_fill", index_fill),
    Op("masked_scatter", masked_scatter),
    Op("fill_diagonal", fill_diagonal),
    *ops("select_scatter slice_scatter diagonal_scatter", write_view, generic=True),
    Op("as_strided_scatter", write_strided),
]
