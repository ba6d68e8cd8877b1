"""Mask algebra: both, count, any, all, and the compact form they work on.

A mask keeps stride 0 along the dimensions in which it is constant.  ``compact`` shrinks those to size 1, ``both`` works
there and re-expands: the AND of two ``(B, T, 1)`` padding masks over ``(B, T, C)`` data touches ``B * T`` bytes.
Nothing here reads a value on the host, but for ``note_facts``, which is called where a mask is taken in.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any, cast

import torch
from torch import Tensor

from .. import counting, settings, shapes
from ..compat import IS_OLD, in_transform, is_readable_memory, is_wrapped
from . import bits, known, sides
from .known import any_along as any_along
from .known import derive as derive
from .known import is_all_valid as is_all_valid
from .known import is_quiet as is_quiet
from .known import with_rows_of as with_rows_of
from .reshaping import compact as compact
from .reshaping import compact_others as compact_others
from .reshaping import reshape_constant, reshaped_strides
from .same import same_memory as same_memory
from .same import same_rows as same_rows


def to_bytes(mask: Tensor) -> Tensor:
    """The mask as uint8 (0 or 1): the same memory; traced, a copy (inductor of torch 2.11 has no such view).

    Of a traced mask that was made of bytes it is these: inductor converts 2 million in 14 ms.
    """
    if type(mask) is Tensor:
        return mask.to(torch.uint8) if _is_in_transform(mask) else mask.view(torch.uint8)
    made_of: Tensor | None = getattr(mask, "made_of_bytes", None)
    if made_of is not None:
        return made_of
    return compact(mask).to(torch.uint8).expand(mask.shape)


def _is_in_transform(mask: Tensor) -> bool:
    """Whether ``vmap`` holds it: in torch 2.11 it has no views as another dtype.  Dynamo cannot trace the question."""
    return not torch.compiler.is_dynamo_compiling() and is_wrapped(mask)


def from_bytes(mask: Tensor) -> Tensor:
    """The mask with these bytes (0 or 1): the same memory; traced, a comparison (inductor has no such view)."""
    if type(mask) is Tensor:
        return mask.to(torch.bool) if _is_in_transform(mask) else mask.view(torch.bool)
    found: Any = (compact(mask).to(torch.float32) != 0).expand(mask.shape)  # inductor vectorises this, not byte != 0
    found.made_of_bytes = mask
    return cast(Tensor, found)


def realize(mask: Tensor) -> Tensor:
    """``mask`` itself; traced, computed once: inductor would compute it anew for every element of the data.

    ``as_strided`` is what makes inductor write down what it is taken of.
    """
    if type(mask) is Tensor:
        return mask
    small = to_bytes(compact(mask)).contiguous()
    return from_bytes(small.as_strided(small.shape, small.stride())).expand(mask.shape)


def note_facts(mask: Tensor) -> None:
    """Notes how many entries of ``mask`` are valid: in all, and in a slice along each dimension at least.

    It reads values; ``mask`` is memory that nobody will write to: a copy that was just made.
    """
    small = compact(mask)
    if not (0 < small.numel() <= settings.NOTED and 0 < mask.dim() <= 4 and is_readable_memory(small)):
        return
    number = int(count(small).item())
    if number:
        fewest = {d: int(small.sum(d).amin().item()) for d, size in enumerate(small.shape) if size > 1}
        known.note(mask, fewest, number * (mask.numel() // small.numel()))


def forget_facts(mask: Tensor) -> Tensor:
    """``mask``, or a copy, about which nothing is known: for memory that others may write to."""
    known.forget(mask)
    return compact(mask).clone().expand(mask.shape) if is_all_valid(mask) else mask


def logical_and(a: Tensor, b: Tensor) -> Tensor:
    """The mask that is True where both masks are: ``a & b``, broadcast.

    Args:
        a (Tensor): A bool tensor of any shape.
        b (Tensor): A bool tensor, broadcastable to ``a``.

    Returns:
        Tensor: A bool tensor of the broadcast shape, with stride 0 where both have it.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> from masked_tensor.extend import masks
        >>> masks.logical_and(torch.tensor([True, False]), torch.tensor([True]))
        tensor([ True, False])
    """
    if same_memory(a, b):
        return a
    if 0 not in a.stride() and 0 not in b.stride():
        return torch.bitwise_and(a, b)
    for one, other in ((b, a), (a, b)):
        if is_all_valid(one):
            if other.shape[other.dim() - one.dim() :] == one.shape:
                return other
            return expand_to(other, shapes.broadcast_two(a.shape, b.shape))
    if same_rows(a, b):
        return expand_to(a if a.numel() >= b.numel() else b, tuple(map(max, a.shape, b.shape)))
    small, other = compact(a), compact(b)
    memory = type(small) is Tensor is type(other)  # traced, a size is not to be compared
    large = memory and max(small.numel(), other.numel()) >= settings.FEW
    if large and is_readable_memory(small) and is_readable_memory(other):
        result = bits.logical_and_of_runs(small, other)
    else:
        result = torch.bitwise_and(small, other)
    same = memory and a.shape == b.shape
    return expand_to(result, a.shape if same else shapes.broadcast_two(a.shape, b.shape))


def complement(mask: Tensor) -> Tensor:
    """``~mask``; constant dimensions stay compact."""
    return expand_to(~compact(mask), mask.shape)


def expand_to(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """The mask, broadcast to ``shape`` with stride 0 in new dimensions.

    Args:
        mask (Tensor): A bool tensor, broadcastable to ``shape``.
        shape (tuple of int): The new shape.

    Returns:
        Tensor: A bool tensor of ``shape``, a view of ``mask``.

    Raises:
        RuntimeError: ``mask`` does not broadcast to ``shape``.

    Example:
        >>> from masked_tensor.extend import masks
        >>> masks.expand_to(torch.tensor([[True], [False]]), (2, 3)).stride()
        (1, 0)
    """
    shape = shape if isinstance(shape, tuple) else tuple(shape)
    return mask if mask.shape == shape else mask.expand(shape)


def reshape(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """The mask in another shape, with stride 0 along constant dimensions unless they are merged with others.

    Args:
        mask (Tensor): A bool tensor of any shape.
        shape (tuple of int): A shape with the same number of entries.

    Returns:
        Tensor: A bool tensor of ``shape``.

    Raises:
        RuntimeError: ``shape`` has another number of entries.

    Example:
        >>> from masked_tensor.extend import masks
        >>> mask = torch.tensor([[True], [False]]).expand(2, 6)
        >>> masks.reshape(mask, (2, 3, 2)).stride()
        (1, 0, 0)
    """
    shape = tuple(shape)
    strides = mask.stride()
    if 0 not in strides or mask.numel() == 0:
        return mask.reshape(shape)
    found: Tensor = derive(mask, ("reshape", shape), _reshape, mask, strides, shape)
    return found


def _reshape(mask: Tensor, strides: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    if type(mask) is Tensor and is_quiet():
        fits = prod(mask.shape) == prod(shape)  # otherwise it has -1, or torch says what is wrong
        found = reshaped_strides(mask.shape, strides, shape) if fits else ()
        if found is not None:
            return mask.as_strided(shape, found) if fits else mask.reshape(shape)
    return reshape_constant(mask, shape)


def storage_mask(mask: Tensor, data: Tensor) -> Tensor:
    """One bool per element of the memory that ``data`` spans, True where an element of ``data`` is valid.

    Of ``data`` only the geometry is asked.
    """
    if data.numel() == 0:
        return torch.zeros(0, dtype=torch.bool, device=mask.device)
    if data.is_contiguous():
        memory = mask.new_empty(data.numel())
        memory.view(data.shape).copy_(mask)
        return memory
    span = sum((size - 1) * stride for size, stride in zip(data.shape, data.stride(), strict=True)) + 1
    memory = mask.new_zeros(span)
    for dim, stride in enumerate(data.stride()):
        if stride == 0 and mask.shape[dim] > 1 and mask.stride(dim) == 0:  # expanded, and its mask with it
            mask = mask.narrow(dim, 0, 1)
    memory.as_strided(mask.shape, data.stride()).copy_(mask)
    return memory


def to_device(mask: Tensor, device: torch.device) -> Tensor:
    """``mask`` on ``device``; of constant dimensions only one entry is copied.  From meta: nothing is valid yet."""
    if mask.device == device:
        return mask
    if mask.is_meta:
        return full(mask.shape, device, False) if type(mask) is Tensor else torch.zeros_like(mask, device=device)
    moved = compact(mask).to(device).expand(mask.shape)
    sides.note_as(moved, range(mask.dim()), mask)
    return moved


def full(shape: Sequence[int], device: torch.device, value: bool = True) -> Tensor:
    """A constant mask, which takes one byte.

    On the CPU, all masks that are True share it, so do not write into the result.

    Args:
        shape (tuple of int): The shape of the mask.
        device (torch.device): The device of the mask.
        value (bool, optional): The value of the mask. Default: True.

    Returns:
        Tensor: A bool tensor of ``shape``, with stride 0 everywhere.

    Example:
        >>> from masked_tensor.extend import masks
        >>> masks.full((2, 3), torch.device("cpu")).stride()
        (0, 0)
    """
    if value and device.type == "cpu" and is_quiet():
        return known.all_true(tuple(shape))
    return torch.full((), value, dtype=torch.bool, device=device).expand(tuple(shape))


def has_valid(mask: Tensor, number: Tensor) -> Tensor:
    """Whether ``mask``, of which ``number`` entries are valid, has a valid one: 0-d."""
    found = any_along(mask, None, False) if id(mask) in known.KNOWN else None
    return number != 0 if found is None else found


def count(mask: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The number of True entries along ``dim``.

    Args:
        mask (Tensor): A bool tensor of any shape.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. Default: False.

    Returns:
        Tensor: An int64 tensor of ``mask``'s shape without ``dim``.

    Raises:
        IndexError: ``dim`` is out of range.

    Example:
        >>> from masked_tensor.extend import masks
        >>> masks.count(torch.tensor([[True, False], [True, True]]), 1)
        tensor([1, 2])
    """
    if dim is None and not keepdim and id(mask) in known.KNOWN:  # most are not: no call for these
        number = known.number(mask)
        if number is not None:
            return torch.full((), number, dtype=torch.int64)
    if is_small(mask):
        if dim is None and not keepdim and not (IS_OLD and in_transform()):  # whose vmap warns
            return torch.count_nonzero(mask)
        return torch.sum(mask, _dims(dim, mask), keepdim)
    dims = shapes.canonical_dims(dim, mask.dim())
    small = compact(mask)
    repeats = 1 if small is mask else prod([mask.shape[d] for d in dims if small.shape[d] != mask.shape[d]])
    if is_all_valid(mask):
        total, repeats = torch.full(shapes.reduced_shape(small.shape, dims, keepdim), repeats, dtype=torch.int64), 1
    elif not dims:
        total = small.to(torch.int64)
    elif is_readable_memory(small) and small.numel() >= settings.COUNTED:
        total = _as_it_lies(counting.count, small, dims, keepdim)
    elif type(small) is Tensor:
        total = to_bytes(small).sum(dims, keepdim=keepdim, dtype=torch.int64)
    else:  # inductor vectorises 32 bits
        wide = torch.int32 if type(size := small.numel()) is int and size < 2**31 else torch.int64
        total = small.to(wide).sum(dims, keepdim=keepdim, dtype=wide).to(torch.int64)
    total = total if repeats == 1 else total * repeats
    return total if small is mask else expand_to(total, shapes.reduced_shape(mask.shape, dims, keepdim))


def divisors(mask: Tensor, dims: tuple[int, ...], keepdim: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """What a mean along ``dims`` divides by, the number of valid entries or 1, in ``dtype``, and where there are any.

    Nobody writes to them: they are kept with the mask.
    """

    def make() -> tuple[Tensor, Tensor]:
        number, some = count(mask, dims, keepdim), any_along(mask, dims, keepdim)
        return number.clamp_min(1).to(dtype), number > 0 if some is None else some

    number, some = derive(mask, ("divisors", dims, keepdim, dtype), make)
    return number, some


def any(mask: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether any entry along ``dim`` is True; False for an empty slice.

    Args:
        mask (Tensor): A bool tensor of any shape.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. Default: False.

    Returns:
        Tensor: A bool tensor of ``mask``'s shape without ``dim``.

    Raises:
        IndexError: ``dim`` is out of range.

    Example:
        >>> from masked_tensor.extend import masks
        >>> masks.any(torch.tensor([[True, False], [False, False]]), 1)
        tensor([ True, False])
    """
    if id(mask) in known.KNOWN:
        found = any_along(mask, dim, keepdim)
        if found is not None:
            return found
    if is_small(mask):
        return torch.any(mask) if dim is None and not keepdim else torch.any(mask, _dims(dim, mask), keepdim)
    return _any_or_all(mask, dim, keepdim, False)


def all(mask: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether all entries along ``dim`` are True; True for an empty slice.

    Args:
        mask (Tensor): A bool tensor of any shape.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. Default: False.

    Returns:
        Tensor: A bool tensor of ``mask``'s shape without ``dim``.

    Raises:
        IndexError: ``dim`` is out of range.

    Example:
        >>> from masked_tensor.extend import masks
        >>> masks.all(torch.tensor([[True, False], [True, True]]), 1)
        tensor([False,  True])
    """
    if is_small(mask):
        return torch.all(mask) if dim is None and not keepdim else torch.all(mask, _dims(dim, mask), keepdim)
    return _any_or_all(mask, dim, keepdim, True)


def reduce_validity(mask: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The mask of a reduction along ``dim``: True for slices that have a valid entry or are empty.

    Args:
        mask (Tensor): A bool tensor of any shape.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. Default: False.

    Returns:
        Tensor: A bool tensor of ``mask``'s shape without ``dim``.

    Raises:
        IndexError: ``dim`` is out of range.

    Example:
        >>> from masked_tensor.extend import masks
        >>> masks.reduce_validity(torch.tensor([[True, False], [False, False]]), 1)
        tensor([ True, False])
    """
    if mask.numel() > 0:
        return any(mask, dim, keepdim)
    return full(shapes.reduced_shape(mask.shape, shapes.canonical_dims(dim, mask.dim()), keepdim), mask.device)


def is_small(mask: Tensor) -> bool:
    """Whether ``mask`` is so small that only the number of calls matters; never 0-d, constant or traced."""
    return type(mask) is Tensor and 0 < mask.numel() < settings.FEW and mask.ndim > 0 and 0 not in mask.stride()


def _dims(dim: int | Sequence[int] | None, mask: Tensor) -> tuple[int, ...]:
    if type(dim) is int:
        return (dim,)
    return dim if type(dim) is tuple and dim else shapes.canonical_dims(dim, mask.dim())


def _any_or_all(mask: Tensor, dim: int | Sequence[int] | None, keepdim: bool, every: bool) -> Tensor:
    if type(dim) is int and mask.dim() > 0 and is_constant(mask, dim):  # the same memory
        return mask.narrow(dim, 0, 1) if keepdim else mask.select(dim, 0)
    if not isinstance(dim, int) and dim is not None and len(dim) == 1:
        return _any_or_all(mask, dim[0], keepdim, every)
    dims = shapes.canonical_dims(dim, mask.dim())
    if not dims:
        return mask
    small = compact(mask)
    shape = shapes.reduced_shape(mask.shape, dims, keepdim)
    if is_all_valid(mask):
        return full(shape, mask.device)
    if prod([mask.shape[d] for d in dims]) == 0:
        return full(shape, mask.device, every)
    if small.numel() == 0:
        return expand_to(small.new_empty(shapes.reduced_shape(small.shape, dims, keepdim)), shape)
    if prod([small.shape[d] for d in dims]) == 1:  # constant along dims: the same memory
        return expand_to(small if keepdim else small.squeeze(dims), shape)
    if is_readable_memory(small):
        return expand_to(_as_it_lies(counting.any_or_all, small, dims, keepdim, every), shape)
    # amax and amin over bytes (inductor: over floats) are vectorised; any() and all() over bool are 45 times slower.
    reduce = torch.amin if every else torch.amax
    if type(small) is Tensor:
        return expand_to(from_bytes(reduce(to_bytes(small), dims, keepdim)), shape)
    return expand_to(reduce(small.to(torch.float32), dims, keepdim) != 0, shape)


def _as_it_lies(
    kernel: Callable[..., Tensor], small: Tensor, dims: tuple[int, ...], keepdim: bool, *rest: bool
) -> Tensor:
    """``kernel`` of the bytes, along the memory, whatever the strides: a table may lie column by column."""
    small = small.view(torch.uint8)
    order = () if small.is_contiguous() else shapes.memory_order(small.stride())
    if order in ((), tuple(range(small.dim()))):
        return kernel(small, dims, keepdim, *rest)
    result = kernel(small.permute(order), tuple(sorted(order.index(d) for d in dims)), True, *rest)
    result = result.permute([order.index(d) for d in range(small.dim())])
    return (result if keepdim else result.squeeze(dims)).contiguous()


def is_constant(mask: Tensor, dim: int | Sequence[int]) -> bool:
    """Whether ``mask`` cannot vary along ``dim`` (each of them), and has an entry: static, from size and stride."""
    for d in (dim,) if isinstance(dim, int) else dim:
        size = mask.size(d)
        if size != 1 and (size <= 0 or mask.stride(d) != 0):
            return False
    return True


def first_slice(mask: Tensor, dims: Sequence[int]) -> Tensor:
    """The first slice along each of ``dims``, kept at size 1: all there is to know of a mask constant along them."""
    for d in dims:
        mask = mask.narrow(d, 0, 1)
    return mask


def no_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """For mask arithmetic: no autocast, or a count of 1001 would be rounded to 1000."""
    kind = device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.autocast(kind, enabled=False)
    return nullcontext()


def lengths_to_mask(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """The mask ``(..., max_length)`` that is True at positions below each length."""
    size = int(lengths.max()) if max_length is None else max_length  # creation may look at values
    if is_readable_memory(lengths) and lengths.numel() * size >= settings.FEW and not lengths.is_floating_point():
        ends = torch.arange(2 * size) < size  # each row is a stretch of it: a copy is a fifth of the comparisons
        start = size - lengths.long().clamp(0, size)
        return ends.unfold(0, size, 1).index_select(0, start.flatten()).view(*lengths.shape, size)
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)
