"""Order by two keys, validity first: masked entries come last in both directions, after NaN, and are never chosen.

The values are mapped to integers that sort as they do (NaN greatest) and leave one integer free at each end for
masked-out entries.  64-bit integers leave none free, so the valid entries are moved to the front before a stable sort.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .. import masks, settings
from ..compat import in_transform, is_readable_memory, is_tracked
from ..fill import fill_into
from ..layouts import meshes
from ..op import Op
from ..packing import per_sequence as packed
from ..pair import Pair, Payload, moved
from ..select import select, zero_masked
from ..shared.order_statistics import median_rank, select_median
from ..shared.too_few import is_enough
from ..sparse import sorting
from ..sparse.rules import sparse_rule

_WIDER = {torch.bool: torch.int16, torch.uint8: torch.int16, torch.int8: torch.int16, torch.int16: torch.int32}
_WIDER |= {torch.int32: torch.int64}
_WIDER |= {torch.uint16: torch.int32, torch.uint32: torch.int64}
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}  # torch gathers these only
_INFINITY = {torch.float16: 0x7C00, torch.bfloat16: 0x7F80, torch.float32: 0x7F800000, torch.float64: 0x7FF << 52}


def is_constant_along(x: Pair, dim: int) -> bool:
    """Whether each slice along ``dim`` is valid as a whole or masked as a whole: then the plain op will do."""
    return x.data.dim() == 0 or x.mask.stride(dim) == 0 or x.data.shape[dim] <= 1


def has_integers(dtype: torch.dtype) -> bool:
    """Whether integers of at most 64 bits can hold the values and two more."""
    return dtype in _WIDER or dtype in _INFINITY


def integers(x: Pair, highest: bool) -> Tensor:
    """Integers in the order of the values; what is masked out gets the highest of all, or the lowest."""
    data = x.data.detach()
    if data.dtype in _WIDER:
        wide = data.to(_WIDER[data.dtype])
        info = torch.iinfo(wide.dtype)
        return select(wide, x.mask, info.max if highest else info.min)
    dtype = _BITS[data.dtype.itemsize]
    info, bits = torch.iinfo(dtype), data.resolve_neg().view(dtype)
    hidden = info.max if highest else info.min
    # Sign and magnitude to an integer: -0 and 0 become one.  Negative NaN lies below -inf: turn the circle until -inf
    # is the second lowest; then every NaN is above +inf, and all become one as well.
    magnitude, sign, turn = bits.abs(), bits & info.min, _INFINITY[data.dtype] + 1 + info.min
    if not is_readable_memory(data):
        return select((magnitude + sign + turn).clamp(max=nan_integer(data.dtype)), x.mask, hidden)
    result = magnitude.add_(sign).add_(turn).clamp_(max=nan_integer(data.dtype))  # in place: fresh memory costs more
    fill_into(result, result, x.mask, hidden)
    return result


def by_pieces(choose: Callable[[Pair], Tensor], x: Pair, dim: int) -> Tensor:
    """``choose(x)``, indices along ``dim``, a few rows at a time: the working set of a step stays in cache."""
    data, last = x.data.detach(), dim % x.data.dim() == x.data.dim() - 1
    rows_of_memory = is_readable_memory(data) and data.dim() >= 2 and last
    if not rows_of_memory or data.numel() <= settings.CHUNK:
        return choose(x)
    rows = max(1, settings.CHUNK * data.shape[0] // data.numel())
    parts = zip(data.split(rows), x.mask.split(rows), strict=True)
    return torch.cat([choose(Pair(part, mask)) for part, mask in parts])


def nan_integer(dtype: torch.dtype) -> int:
    """The integer of every NaN."""
    return torch.iinfo(_BITS[dtype.itemsize]).min + 2 * _INFINITY[dtype] + 2


def order(x: Pair, dim: int, descending: bool = False, stable: bool | None = True) -> Tensor:
    """The indices that sort ``x`` along ``dim``, masked entries last."""
    if has_integers(x.data.dtype):
        return by_pieces(lambda part: _argsort(integers(part, not descending), dim, descending, stable), x, dim)
    if x.data.dtype.is_complex:
        return _argsort(x.data, dim, descending, stable)  # torch's own error: there is no order
    front = _argsort(masks.to_bytes(~x.mask), dim, False, True)
    data = x.data.detach()
    if data.dtype is torch.uint64:  # in the same order: the sign bit counts the other way round
        data = data.view(torch.int64) ^ torch.iinfo(torch.int64).min
    data = data.gather(dim, front)
    count = masks.count(x.mask, dim, keepdim=True)
    info = torch.iinfo(data.dtype)
    data = select(data, _positions(data, dim) < count, info.min if descending else info.max)
    return front.gather(dim, _argsort(data, dim, descending, True))


def gather(data: Tensor, dim: int, index: Tensor) -> Tensor:
    """``data.gather(dim, index)``, of wide unsigned integers too."""
    signed = _SIGNED.get(data.dtype)
    return data.gather(dim, index) if signed is None else data.view(signed).gather(dim, index).view(data.dtype)


def _argsort(data: Tensor, dim: int, descending: bool, stable: bool | None) -> Tensor:
    return torch.sort(data, stable=stable, dim=dim, descending=descending)[1]


def _positions(data: Tensor, dim: int) -> Tensor:
    shape = [1] * data.dim()
    if shape:
        shape[dim] = data.shape[dim]
    place = torch.arange(data.numel() if not shape else shape[dim], device=data.device)
    return meshes.replicate_like(place, data).reshape(shape)


def sort(x: Pair, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> tuple[Pair, Pair]:
    """``torch.sort``: values and indices."""
    if is_constant_along(x, dim) or x.data.is_complex():
        values, indices = torch.sort(x.data, stable=stable, dim=dim, descending=descending)
        return Pair(values, x.mask, x.payload), Pair(indices, x.mask)
    if not x.data.is_contiguous():  # in the order of memory, as torch's results are
        dims = sorted(range(x.data.dim()), key=x.data.stride, reverse=True)
        if dims != list(range(x.data.dim())):
            results = sort(moved(x, torch.permute, dims), dims.index(dim % len(dims)), descending, stable=stable)
            back = [dims.index(d) for d in range(len(dims))]
            return moved(results[0], torch.permute, back), moved(results[1], torch.permute, back)
    indices = order(x, dim, descending, stable)
    mask = _positions(x.data, dim) < masks.count(x.mask, dim, keepdim=True)
    return Pair(gather(x.data, dim, indices), mask, x.payload), Pair(indices, mask)


def kthvalue(x: Pair, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Pair, Pair]:
    """``torch.kthvalue``: masked where fewer than ``k`` entries are valid."""
    if is_constant_along(x, dim):
        return _reduce_whole(x, dim, keepdim, *torch.kthvalue(x.data, k, dim, keepdim))
    if not 1 <= k <= x.data.shape[dim]:
        raise RuntimeError(f"selected number k out of range for dimension {dim}")
    if has_integers(x.data.dtype):
        indices = by_pieces(lambda part: torch.kthvalue(integers(part, True), k, dim, True)[1], x, dim)
    else:
        indices = order(x, dim).narrow(dim, k - 1, 1)
    return take_chosen(x, dim, indices, is_enough(masks.count(x.mask, dim, keepdim=True), k), keepdim)


def _reduce_whole(x: Pair, dim: int, keepdim: bool, values: Tensor, indices: Tensor) -> tuple[Pair, Pair]:
    """Results of the plain op over slices that are valid, or masked, as a whole."""
    mask = masks.any(x.mask, dim, keepdim)
    return Pair(values, mask, x.payload), Pair(select(indices, mask, 0), mask, Payload.ZERO)


def take_chosen(x: Pair, dim: int, indices: Tensor, mask: Tensor, keepdim: bool) -> tuple[Pair, Pair]:
    """The entries at ``indices`` (of size 1 along ``dim``) as values and indices; index 0 where nothing was chosen."""
    values, indices = gather(x.data, dim, indices), zero_masked(Pair(indices, mask))
    if not keepdim and x.data.dim():
        values, indices, mask = values.squeeze(dim), indices.squeeze(dim), mask.squeeze(dim)
    return Pair(values, mask), Pair(indices, mask, Payload.ZERO)


def median(
    x: Pair, dim: int | None = None, keepdim: bool = False, *, skip_nan: bool = False
) -> Pair | tuple[Pair, Pair]:
    """The lower of the two middle values; NaN if any valid entry is, or with ``skip_nan`` if all are."""
    data = x.data
    if dim is None:
        flat = Pair(data.reshape(-1), masks.reshape(x.mask, (x.mask.numel(),)), x.payload)
        if data.numel() == 0:
            return Pair(select_median(data, None, False, skip_nan), masks.reduce_validity(x.mask))
        found = median(flat, 0, skip_nan=skip_nan)
        one = found if type(found) is Pair else found[0]
        return Pair(_shared_by_ties(flat, one.data), one.mask) if is_tracked(data) or in_transform() else one
    if is_constant_along(x, dim):
        return _reduce_whole(x, dim, keepdim, *select_median(data, dim, keepdim, skip_nan))
    if has_integers(data.dtype):
        indices = _select_valid(x, dim, skip_nan)
    else:
        indices = order(x, dim).gather(dim, median_rank(masks.count(x.mask, dim, keepdim=True)))
    return take_chosen(x, dim, indices, masks.any(x.mask, dim, True), keepdim)


def _shared_by_ties(x: Pair, value: Tensor) -> Tensor:
    """``value``, whose gradient goes in equal parts to the valid entries that equal it, as that of a whole median."""
    data, value = x.data, value.detach()
    ties = masks.logical_and(x.mask, (data == value) | (data.isnan() & value.isnan()))
    part = (select(data, ties, 0) / ties.sum().clamp_min(1)).sum()
    return torch.where(value.isfinite(), value + (part - part.detach()), part)


def _select_valid(x: Pair, dim: int, skip_nan: bool) -> Tensor:
    """The index of the median: that of the numbers, in a dtype that has NaN, unless a valid NaN counts."""
    data, kept = x.data.detach(), x.data.dtype
    if not kept.is_floating_point:
        data = data.to(torch.float64 if kept.itemsize == 4 else torch.float32)
    values: Tensor
    indices: Tensor
    values, indices = select_median(select(data, x.mask, torch.nan), dim, True, True)
    if not kept.is_floating_point:
        return indices
    if skip_nan:
        return torch.where(values.isnan(), masks.to_bytes(x.mask).argmax(dim, True), indices)
    greatest, first = zero_masked(Pair(data, x.mask, x.payload)).max(dim, True)  # NaN, and where, if there is one
    return torch.where(greatest.isnan(), first, indices)


def rank(x: Pair, dim: int | None, method: str) -> Pair:
    """The ranks from 1 up along ``dim`` (None: of all entries), ties as scipy.stats.rankdata names them."""
    if dim is None or x.data.dim() == 0:
        flat = Pair(x.data.reshape(-1), masks.reshape(x.mask, (x.mask.numel(),)), x.payload)
        return Pair(rank(flat, 0, method).data.reshape(x.data.shape), x.mask, Payload.ZERO)
    data = x.data.detach()
    at, n = order(x, dim), masks.count(x.mask, dim, keepdim=True)
    ranks = _ranks_in_order(gather(data, dim, at), n, dim, method)
    if method == "average":
        ranks = ranks.to(torch.float64 if data.dtype is torch.float64 else torch.float32) / 2
    return Pair(select(torch.empty_like(ranks).scatter_(dim, at, ranks), x.mask, 0), x.mask, Payload.ZERO)


def _ranks_in_order(data: Tensor, n: Tensor, dim: int, method: str) -> Tensor:
    """The ranks of sorted entries, of which ``n`` are valid; twice the rank for ``average``."""
    size, place = data.shape[dim], _positions(data, dim).expand(data.shape)
    if method == "ordinal" or size == 0:
        return place + 1
    below, above = data.narrow(dim, 0, size - 1), data.narrow(dim, 1, size - 1)
    changes = below != above
    if data.is_floating_point():
        changes &= ~(below.isnan() & above.isnan())
    edge = torch.ones_like(data.narrow(dim, 0, 1), dtype=torch.bool)
    first = torch.cat([edge, changes], dim)
    if method == "dense":
        return first.cumsum(dim)
    least = select(place, first, 0).cummax(dim).values + 1
    if method == "min":
        return least
    last = torch.cat([changes, edge], dim) | (place + 1 == n)
    greatest = select(place, last, size).flip(dim).cummin(dim).values.flip(dim) + 1
    return greatest if method == "max" else least + greatest


OPS = [
    Op("sort", sort, sparse=sparse_rule(sorting.sort), packed=packed.along_any(ranked=True)),
    Op("kthvalue", kthvalue, sparse=sparse_rule(sorting.kthvalue)),
    Op("median", median, sparse=sparse_rule(sorting.median)),
    Op("nanmedian", median, {"skip_nan": True}, sparse=sparse_rule(sorting.nanmedian)),
]
