"""The sparse note's pseudo-code, element by element: what every functional form means, whatever the layouts.

Slow on purpose: for every output a Python loop collects the elements the mask shows (unspecified ones are 0), and the
plain op runs on that short list.
"""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def shown(mask: Tensor | None, shape: tuple[int, ...]) -> dict[tuple[int, ...], bool]:
    """For every index: whether the mask shows it."""
    if mask is None:
        return dict.fromkeys(itertools.product(*map(range, shape)), True)
    if mask.layout is not torch.strided:
        indices, values = pattern(mask)
        true = {i for i, v in zip(indices, values, strict=True) if v}
        dense = {i: i in true for i in itertools.product(*map(range, mask.shape))}
    else:
        dense = {i: bool(mask[i]) for i in itertools.product(*map(range, mask.shape))}
    lead = len(shape) - mask.dim()

    def source(index: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(0 if mask.shape[d] == 1 else index[d + lead] for d in range(mask.dim()))

    return {index: dense[source(index)] for index in itertools.product(*map(range, shape))}


def flags(mask: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    """``shown`` as a tensor."""
    visible = _remembered(mask, shape, "shown", lambda: shown(mask, tuple(shape)))
    return torch.tensor([*visible.values()], dtype=torch.bool).reshape(shape)


def specified(x: Tensor) -> Tensor:
    """Where ``x`` stores something; a strided tensor stores everything."""
    found = torch.full(x.shape, x.layout is torch.strided)
    for index in [] if x.layout is torch.strided else pattern(x)[0]:
        found[index] = True
    return found


def pattern(x: Tensor) -> tuple[list[tuple[int, ...]], list[Any]]:
    """The specified indices and their values, dense dimensions spelled out; duplicates are kept."""
    found: list[tuple[tuple[int, ...], Any]] = []
    if x.layout is torch.sparse_coo:
        for place, value in zip(x._indices().t().tolist(), x._values(), strict=True):
            for inner in itertools.product(*map(range, value.shape)):
                found.append(((*place, *inner), value[inner].item()))
        return [f[0] for f in found], [f[1] for f in found]
    by_rows = x.layout in (torch.sparse_csr, torch.sparse_bsr)
    offsets, plain = (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())
    values = x.values()
    block = tuple(values.shape[offsets.dim() : offsets.dim() + 2]) if x.layout in BLOCKED else (1, 1)
    for batch in itertools.product(*map(range, offsets.shape[:-1])):
        for outer in range(offsets.shape[-1] - 1):
            for position in range(int(offsets[batch][outer]), int(offsets[batch][outer + 1])):
                inner = int(plain[batch][position])
                row, column = (outer, inner) if by_rows else (inner, outer)
                value = values[batch][position] if x.layout in BLOCKED else values[batch][position][None, None]
                for i, j in itertools.product(range(block[0]), range(block[1])):
                    for rest in itertools.product(*map(range, value.shape[2:])):
                        index = (*batch, row * block[0] + i, column * block[1] + j, *rest)
                        found.append((index, value[(i, j, *rest)].item()))
    return [f[0] for f in found], [f[1] for f in found]


BLOCKED = (torch.sparse_bsr, torch.sparse_bsc)


def reduction(
    function: Callable[[Tensor], Tensor],
    dense: Tensor,
    mask: Tensor | None,
    dims: tuple[int, ...],
    keepdim: bool,
    empty: Any,
) -> tuple[Tensor, Tensor]:
    """``function`` on the list of shown elements of every slice, and whether there are any."""
    shape = tuple(dense.shape)
    results = [function(dense.reshape(-1)[e]) if len(e) else None for e in elements(mask, shape, dims)]
    out_shape = [1 if d in dims else n for d, n in enumerate(shape) if keepdim or d not in dims]
    like = next((r for r in results if r is not None), None)
    dtype = like.dtype if like is not None else function(dense.reshape(-1)).dtype
    data = torch.stack([torch.tensor(empty).to(dtype) if r is None else r for r in results]) if results else dense
    return data.reshape(out_shape), torch.tensor([r is not None for r in results]).reshape(out_shape)


def elements(mask: Tensor | None, shape: tuple[int, ...], dims: tuple[int, ...]) -> list[Tensor]:
    """For every slice along ``dims``: the row-major numbers of the elements that the mask shows, in their order."""
    visible = _remembered(mask, shape, "shown", lambda: shown(mask, shape))

    def listed() -> list[Tensor]:
        numbers = dict(zip(visible, itertools.count(), strict=False))
        kept = [d for d in range(len(shape)) if d not in dims]
        slices = []
        for place in itertools.product(*(range(shape[d]) for d in kept)):
            found = []
            for inner in itertools.product(*(range(shape[d]) for d in dims)):
                where = dict(zip(kept, place, strict=True)) | dict(zip(dims, inner, strict=True))
                index = tuple(where[d] for d in range(len(shape)))
                if visible[index]:
                    found.append(numbers[index])
            slices.append(torch.tensor(found, dtype=torch.int64))
        return slices

    return _remembered(mask, shape, dims, listed)  # type: ignore[no-any-return]


_KNOWN: dict[Any, tuple[Tensor | None, Any]] = {}  # with the mask, so that its id stays its own


def _remembered(mask: Tensor | None, shape: tuple[int, ...], dims: Any, make: Callable[[], Any]) -> Any:
    key = id(mask), tuple(shape), dims
    if key not in _KNOWN:
        _KNOWN[key] = mask, make()
    return _KNOWN[key][1]


def position(
    function: Callable[[Tensor], Tensor], dense: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool
) -> tuple[Tensor, Tensor]:
    """argmax and argmin: positions among all elements of a slice, shown or not."""
    shape = tuple(dense.shape)
    numbers = torch.zeros(shape, dtype=torch.int64)
    for index in itertools.product(*map(range, shape)):
        number = 0
        for d in dims:
            number = number * shape[d] + index[d]
        numbers[index] = number
    where, valid = reduction(lambda v: function(v), dense, mask, dims, keepdim, 0)
    seen = flags(mask, shape)
    order = [d for d in range(len(shape)) if d not in dims] + list(dims)
    number_rows = numbers.permute(order).reshape(where.numel(), -1)
    flag_rows = seen.permute(order).reshape(where.numel(), -1)
    flat = where.reshape(-1).tolist()
    picked = [int(n[f][w]) if f.any() else 0 for n, f, w in zip(number_rows, flag_rows, flat, strict=True)]
    return torch.tensor(picked).reshape(where.shape), valid


def elementwise(
    function: Callable[[Tensor], Tensor], x: Tensor, mask: Tensor | None, dim: int, dense: Tensor
) -> tuple[Tensor, Tensor]:
    """``function`` on the shown (for a sparse input: and stored) elements of every slice along ``dim``, put back."""
    shape = tuple(dense.shape)
    valid = flags(mask, shape) & specified(x)
    rows, flag_rows = (t.movedim(dim, -1).reshape(-1, shape[dim]) for t in (dense, valid))
    result = torch.zeros(rows.shape, dtype=function(rows[0]).dtype)
    for row, flag, out in zip(rows, flag_rows, result, strict=True):
        if flag.any():
            out[flag] = function(row[flag])
    moved = [n for d, n in enumerate(shape) if d != dim] + [shape[dim]]
    return result.reshape(moved).movedim(-1, dim), valid


def most_frequent(v: Tensor) -> Tensor:
    """torch.mode, but NaN, which equals nothing, is the last of several candidates (torch's sort leaves that open)."""
    numbers = v[~v.isnan()]
    return numbers.mode(0)[0] if numbers.numel() else v[0]


def last_mode(v: Tensor) -> Tensor:
    """The last of the positions of the mode; of NaN alone, which equal nothing, the first."""
    value = most_frequent(v)
    return v.isnan().nonzero()[0, 0] if value.isnan() else (v == value).nonzero()[-1, 0]
