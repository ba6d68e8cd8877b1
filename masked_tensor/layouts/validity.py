"""Masks of any layout, broadcast to an input of any layout, and read only at stored entries.

A mask is True where it says so: a strided mask at its True elements, a sparse one where it *specifies* True.  The
cost is the number of stored mask entries, or the number of elements of a strided mask before broadcasting.
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from .. import masks
from ..pair import Pair
from ..select import select
from . import strided
from .elements import canonical, is_sparse, keys, same_pattern, values, values_at, verbs_of, with_values
from .positions import Coordinate, find, pays_table, ravel, sort_distinct, unravel


def specified_mask(x: Tensor) -> Tensor:
    """The mask of the entries that a sparse tensor stores.

    Passed as ``mask=`` to a functional form, it restricts the form to the stored entries, at the lowest cost.

    Args:
        x (Tensor): Plain, of any shape, dtype and layout. A strided tensor stores all entries.

    Returns:
        Tensor: True at every stored entry; bool, of ``x``'s shape and layout, with its indices.

    Example:
        >>> from masked_tensor.extend import specified_mask
        >>> specified_mask(torch.tensor([[0.0, 2.0]]).to_sparse()).to_dense()
        tensor([[False,  True]])
    """
    x = canonical(x.detach())
    return with_values(x, torch.ones_like(values(x), dtype=torch.bool))


def valid_outputs(data: Tensor, valid: Tensor | None) -> Pair:
    """A result with its validity; None: what it stores is valid."""
    return Pair(data, specified_mask(data) if valid is None else valid)


def nonzero(mask: Tensor) -> Tensor:
    """``mask != 0`` in the mask's layout."""
    return mask != 0 if not is_sparse(mask) else with_values(mask, values(mask) != 0)


def true_keys(mask: Tensor) -> Tensor:
    """The sorted keys of the True entries, in the mask's own shape."""
    if not is_sparse(mask):
        return mask.reshape(-1).nonzero().view(-1)
    return sort_distinct(keys(mask)[values(mask)])


def dense_mask(mask: Tensor) -> Tensor:
    """The mask as a strided tensor, for a strided input."""
    if not is_sparse(mask):
        return mask
    key = true_keys(mask)
    return strided.build(key, torch.ones_like(key, dtype=torch.bool), mask.shape, mask)


def restrict(mask: Tensor, other: Tensor) -> Tensor:
    """A sparse mask AND another mask of any layout that broadcasts to it, in the pattern of the first."""
    return with_values(mask, values(mask) & at(other, mask))


def zero_masked_values(x: Tensor, mask: Tensor) -> Tensor:
    """A sparse tensor in the pattern of its sparse mask, 0 where the mask is False; the gradient is 0 there too."""
    stored = values(x) if same_pattern(x, mask) else values_at(x, keys(mask))
    return with_values(mask, select(stored, values(mask), 0))


def at(mask: Tensor, x: Tensor) -> Tensor:
    """Whether the mask is True at each stored element of ``x``: one bool per value, in their order."""
    if is_sparse(mask) and same_pattern(mask, x):
        return values(mask)
    verbs = verbs_of(x)
    return look_up(mask, x.shape, lambda dim: verbs.coordinate(x, dim), values(x.detach()).shape[0])


def counts(mask: Tensor | None, shape: Sequence[int], dims: Sequence[int], key: Tensor) -> Tensor | int:
    """The number of valid elements in the slices along ``dims``, for the slices at ``key`` of the kept shape."""
    if mask is None:
        return prod(shape[d] for d in dims)
    mask = _compact(mask)
    lead = len(shape) - mask.dim()
    own = [d - lead for d in dims if d >= lead and mask.shape[d - lead] != 1]
    repeats = prod(shape[d] for d in dims if d - lead not in own)
    kept = [d for d in range(len(shape)) if d not in dims]
    sizes = [shape[d] for d in kept]
    coordinates = dict(zip(kept, unravel(key, sizes), strict=True))
    rest = [d for d in range(mask.dim()) if d not in own and mask.shape[d] != 1]
    wanted = ravel(lambda d: coordinates[d + lead], mask.shape, rest)
    if not is_sparse(mask):
        number = masks.count(mask, own) if own else mask.to(torch.int64)
        number = number.reshape(-1)
        return repeats * (number[wanted] if wanted is not None else number.expand(key.shape[0]))
    position = unravel(true_keys(mask), mask.shape)
    have = ravel(lambda d: position[d], mask.shape, rest)
    if wanted is None or have is None:
        return repeats * torch.full_like(key, true_keys(mask).numel())
    full = prod([mask.shape[d] for d in rest])
    if pays_table(full, have.numel()):
        return repeats * torch.bincount(have, minlength=full)[wanted]
    table, number = have.unique(return_counts=True)
    place, found = find(wanted, table)
    return repeats * torch.where(found, number[place] if table.numel() else 0, 0)


def outputs(mask: Tensor | None, shape: Sequence[int], dims: Sequence[int], device: torch.device) -> Tensor:
    """The sorted keys (in the kept shape) of the slices along ``dims`` that have a valid element."""
    kept = [d for d in range(len(shape)) if d not in dims]
    if mask is None:
        some = all(shape[d] > 0 for d in dims)
        return torch.arange(prod(shape[d] for d in kept) if some else 0, device=device)
    if not is_sparse(mask):
        valid = masks.any(masks.expand_to(mask, shape), dims) if dims else masks.expand_to(mask, shape)
        return valid.reshape(-1).nonzero().view(-1)
    position = unravel(true_keys(mask), mask.shape)
    lead = len(shape) - mask.dim()
    own = [d - lead for d in kept if d >= lead and mask.shape[d - lead] == shape[d]]
    found = ravel(lambda d: position[d], mask.shape, own)
    number = true_keys(mask).numel()
    found = torch.zeros(min(number, 1), dtype=torch.int64, device=device) if found is None else found.unique()
    place = dict(zip(own, unravel(found, [mask.shape[d] for d in own]), strict=True))
    return _broadcast({d + lead: p for d, p in place.items()}, found.numel(), {d: shape[d] for d in kept}, device)


def expand_keys(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """The sorted keys in ``shape`` of a broadcast mask's True entries, every repetition spelled out."""
    key = true_keys(mask)
    lead = len(shape) - mask.dim()
    place = {d + lead: p for d, p in enumerate(unravel(key, mask.shape)) if mask.shape[d] == shape[d + lead]}
    return _broadcast(place, key.numel(), dict(enumerate(shape)), mask.device)


def _broadcast(place: dict[int, Tensor], number: int, sizes: dict[int, int], device: torch.device) -> Tensor:
    """The keys of ``number`` entries whose coordinates are ``place``, repeated along the other dims of ``sizes``."""
    key = torch.zeros(number, dtype=torch.int64, device=device)
    for dim, size in sizes.items():
        if dim in place:
            key = key * size + place[dim].view(-1, *[1] * (key.dim() - 1))
        else:
            key = (key * size).unsqueeze(-1) + torch.arange(size, device=device)
    return key.reshape(-1).sort().values


def _compact(mask: Tensor) -> Tensor:
    return mask if is_sparse(mask) else masks.compact(mask)


def look_up(mask: Tensor, shape: Sequence[int], coordinate: Coordinate, number: int) -> Tensor:
    """Whether the mask, broadcast to ``shape``, is True at each of ``number`` positions."""
    mask = _compact(mask)
    lead = len(shape) - mask.dim()
    rest = [d for d in range(mask.dim()) if mask.shape[d] != 1]
    key = ravel(lambda d: coordinate(d + lead), mask.shape, rest)
    if not is_sparse(mask):
        return mask.reshape(-1)[key] if key is not None else mask.reshape(1).expand(number)
    table = true_keys(mask)
    if key is None:
        return (table.numel() > 0) * torch.ones(number, dtype=torch.bool, device=mask.device)
    return find(key, table)[1]
