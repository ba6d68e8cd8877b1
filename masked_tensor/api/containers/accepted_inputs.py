"""What is accepted as data and as a mask, and the errors for everything else."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.masked import MaskedTensor as TorchMasked

from ... import errors, layouts, masks, shapes
from ...engine.boundary.enter_leave import enter
from ...engine.tensor import MaskedTensor
from ...layouts import meshes
from ...pair import Pair, plain_pair
from ...select import zero_masked
from . import kinds, lists, sources, tables
from .arrow import reading
from .arrow.library import library


def pair_of_input(data: Any, dtype: torch.dtype | None = None, device: Any = None, name: str = "data") -> Pair:
    """The values of ``data``, and which of them it marks as missing; errors call it ``name``."""
    tensor = partial(_tensor, dtype=dtype, device=device, name=name)
    take = partial(pair_of_input, dtype=dtype, device=device, name=name)
    if isinstance(data, Tensor):
        found: Pair | None = _of_tensor(data)
    else:
        found = _of_container(data, take, dtype)
    if found is not None:
        moved = found.data.to(device=device, dtype=dtype)
        return Pair(moved, found.mask.to(moved.device), found.payload)
    if type(data).__module__ == "numpy" and str(getattr(data, "dtype", "")) == "object":
        data = data.tolist()  # None and pandas' NA are missing
    if isinstance(data, list | tuple):
        return lists.pair_of_list(data, take, tensor)
    return plain_pair(tensor(data))


def has_validity(data: Tensor) -> bool:
    """Whether a tensor says itself what is valid."""
    return type(data) is MaskedTensor or isinstance(data, TorchMasked) or data.is_nested or layouts.is_sparse(data)


def table(data: Any, dtype: torch.dtype, choose: reading.Choose) -> tuple[Pair, list[str]]:
    """The pair of anything that is not a tensor, and the names of its columns, if it is a table of which they have any.

    ``choose`` is asked which columns of these names are read.
    """
    reader = _reader_of(data)
    if reader is None and reading.speaks_arrow(data):
        sources.refuse_source(data)
        return reading.read_named(data, dtype, choose)
    take = partial(pair_of_input, dtype=dtype)
    names = [str(name) for name in (data if isinstance(data, dict) else getattr(data, "columns", ()))]
    at = choose(names) if names else None
    if at is None:
        return take(data), names
    names = [names[i] for i in at]
    values, valid = _read(reader, data)
    if isinstance(values, tables.Columns):
        picked = tables.Columns([*names], [values.columns[i] for i in at])
        return tables.read_columns(picked, take, dtype), names
    pair = _of_read(data, values, valid, take, dtype)
    kept = torch.tensor(at, device=pair.data.device)
    return Pair(pair.data.index_select(-1, kept), pair.mask.index_select(-1, kept)), names


def _of_container(data: Any, take: Callable[[Any], Pair], dtype: torch.dtype | None) -> Pair | None:
    """The pair of a container, or None if ``data`` is none; ``take`` makes a pair of what a reader returns."""
    reader = _reader_of(data)
    if reader is None and not isinstance(data, dict):
        sources.refuse_source(data)
        return reading.read(data, dtype) if reading.speaks_arrow(data) else None
    return _of_read(data, *_read(reader, data), take, dtype)


def _reader_of(data: Any) -> kinds.Reader | None:
    found = kinds.reader_of(data)
    return kinds.own_arrays if found is None and reading.speaks_arrow(data) and library() is None else found


def _read(reader: kinds.Reader | None, data: Any) -> tuple[Any, Any]:
    """What the reader of a container returns, checked."""
    if reader is None:
        return tables.of_dict(data) if isinstance(data, dict) else data, None
    found = reader(data)
    if not (isinstance(found, tuple) and len(found) == 2):
        raise TypeError(f"the reader of {type(data).__name__} must return (values, valid), got {found!r}")
    return found


def _of_read(data: Any, values: Any, valid: Any, take: Callable[[Any], Pair], dtype: torch.dtype | None) -> Pair:
    """The pair of what the reader of ``data`` returned."""
    pair = tables.read_columns(values, take, dtype) if isinstance(values, tables.Columns) else take(values)
    if valid is None:  # a tensor is the reader's own: no copy of it was made
        return Pair(pair.data, pair.mask) if isinstance(values, Tensor) else pair
    valid = mask_of_input(valid, pair.data, f"the mask of {type(data).__name__}")
    return Pair(pair.data, masks.logical_and(valid, pair.mask))


def _of_tensor(data: Tensor) -> Pair:
    if isinstance(data, TorchMasked):
        return kinds.torch_masked(data)
    if data.is_nested:
        return kinds.read_nested(data)
    if data.is_quantized:
        raise TypeError(f"quantized data ({data.dtype}) cannot be masked; use data.dequantize()")
    entered = enter(data, torch.is_grad_enabled())
    if type(entered) is Pair:
        if type(data) is MaskedTensor and data._packed is not None and data._packed.grid.full:  # its very values
            return Pair(entered.data.clone(), entered.mask, entered.payload)
        return entered
    if layouts.is_sparse(data):
        layouts.verbs_of(data).validate(data.detach())
        return layouts.pair_on_pattern(data, None)  # what is specified is valid
    return plain_pair(data)


def _tensor(data: Any, dtype: torch.dtype | None = None, device: Any = None, name: str = "data") -> Tensor:
    if not isinstance(data, list | tuple | int | float | complex | bool) and hasattr(data, "__array__"):
        data = data.__array__()
        if not data.dtype.isnative or min(data.strides, default=0) < 0:  # the byte order of files; reversed
            data = data.astype(data.dtype.newbyteorder("="), copy=True)
    try:
        return torch.tensor(data, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as reason:
        text = lists.first_text(data)
        found = reason if text is None else f"{text!r} is a string; {_NO_TEXT}"
        if getattr(getattr(data, "dtype", None), "kind", "") in ("m", "M"):
            found = f"{data.dtype} holds times; convert them, in pandas: (times - times.min()).dt.total_seconds()"
        raise TypeError(
            f"{name} must be a tensor, number, list, array or table of numbers, got {type(data).__name__}: {found}"
        ) from reason


_NO_TEXT = (
    "give numbers, None for what is missing, and codes for categories (pandas: column.astype('category').cat.codes)"
)


def mask_of_input(mask: Any, data: Tensor, name: str = "mask") -> Tensor:
    """``mask`` as a plain bool tensor that fits ``data``; a masked entry of a mask is masked out."""
    if mask is None:
        raise TypeError("as_masked_tensor of a strided tensor needs a mask that is True where an entry is valid")
    if not isinstance(mask, Tensor) or (has_validity(mask) and not layouts.is_sparse(mask)):
        own = pair_of_input(mask, device=None if isinstance(mask, Tensor) else data.device, name=name)
        mask = masks.logical_and(own.data, own.mask) if own.data.dtype is torch.bool else zero_masked(own)
    mask = mask.detach()
    if not (layouts.is_sparse(mask) and layouts.same_pattern(mask, data)):  # that of the data is known to be right
        layouts.verbs_of(mask).validate(mask)
    if mask.layout != data.layout:
        raise ValueError(f"{name} must have data's layout {data.layout}, got {mask.layout}")
    mask = _of_numbers(mask, name)
    if mask.dtype is not torch.bool or not shapes.can_expand(mask.shape, data.shape):
        raise errors.bad_mask(name, mask, data)
    if mask.device != data.device:
        raise ValueError(
            f"{name} must be on data's device {data.device}, got {mask.device}; use {name}.to(data.device)"
        )
    return meshes.place_like(masks.expand_to(mask, data.shape), data)


def _of_numbers(mask: Tensor, name: str) -> Tensor:
    """A mask of the integers 0 and 1, as tokenizers and files have it; others are left as they are."""
    if mask.dtype is torch.bool or mask.is_floating_point() or mask.is_complex():
        return mask
    numbers = layouts.values(mask)
    if type(mask) is Tensor and not mask.is_meta and not ((numbers == 0) | (numbers == 1)).all():
        also = "; if it holds sequence lengths, use from_lengths(data, lengths)" if mask.dim() == 1 else ""
        raise ValueError(f"{name} must be bool or hold only 0 and 1; pass a condition, such as {name} > 0{also}")
    return layouts.nonzero(mask)
