"""What may be given as data and as a mask, and the errors for what may not."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .. import errors, layouts, masks, shapes
from ..engine.ports import enter
from ..engine.tensor import MaskedTensor, pair_of
from ..pair import Pair, plain


def pair(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> Pair:
    """What ``data`` says of its own values and holes."""
    if isinstance(data, Tensor):
        data = enter(data, torch.is_grad_enabled())
        if type(data) is not Pair and layouts.is_sparse(data):
            layouts.of(data).validate(data.detach())
            data = layouts.paired(data, None)  # what is specified is valid
        pair = data if type(data) is Pair else plain(data)
        moved = pair.data.to(device=device, dtype=dtype)
        return Pair(moved, pair.mask.to(moved.device), pair.payload)
    if hasattr(data, "_mask") and hasattr(data, "filled"):  # a numpy masked array
        holes = getattr(data, "mask", False)
        values = _tensor(data.data, dtype, device)
        return Pair(values, masks.fit(~torch.as_tensor(holes, device=values.device), values.shape))
    if isinstance(data, list | tuple) and _has_hole(data):
        some = next(_values(data), 0.0)  # in the holes: of a type that the values have anyway
        values = _tensor(_replaced(data, lambda v: some if _is_hole(v) else v), dtype, device)
        return Pair(values, torch.tensor(_replaced(data, lambda v: not _is_hole(v)), device=values.device))
    return plain(_tensor(data, dtype, device))


def _tensor(data: Any, dtype: torch.dtype | None, device: Any) -> Tensor:
    if not isinstance(data, list | tuple | int | float | complex | bool) and hasattr(data, "__array__"):
        data = data.__array__()
    try:
        return torch.tensor(data, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as reason:
        raise TypeError(
            f"data must be a tensor, number, list, or numpy (masked) array, got {type(data).__name__}: {reason}"
        ) from reason


def _has_hole(data: Any) -> bool:
    return any(_has_hole(v) for v in data) if isinstance(data, list | tuple) else _is_hole(data)


def _is_hole(value: Any) -> bool:
    return value is None or (type(value) is MaskedTensor and value.dim() == 0 and not pair_of(value).mask)


def _values(data: Any) -> Iterator[Any]:
    if isinstance(data, list | tuple):
        for v in data:
            yield from _values(v)
    elif not _is_hole(data):
        yield data


def _replaced(data: Any, by: Any) -> Any:
    return [_replaced(v, by) for v in data] if isinstance(data, list | tuple) else by(data)


def mask(mask: Any, data: Tensor, name: str = "mask") -> Tensor:
    """``mask`` as a plain bool tensor that fits ``data``; a masked entry of a mask is masked out."""
    if type(mask) is MaskedTensor:
        pair = enter(mask, False)
        mask = pair.data & pair.mask if pair.data.dtype is torch.bool else pair.data
    elif mask is None:
        raise TypeError("a strided tensor does not say what is valid; give it a mask")
    elif not isinstance(mask, Tensor):
        mask = _tensor(mask, None, data.device)
    mask = mask.detach()
    layouts.of(mask).validate(mask)
    if mask.layout != data.layout:
        raise ValueError(f"{name} must have data's layout {data.layout}, got {mask.layout}")
    if mask.dtype is not torch.bool or not shapes.broadcasts(mask.shape, data.shape):
        raise errors.bad_mask(name, mask, data)
    if mask.device != data.device:
        raise ValueError(
            f"{name} must be on data's device {data.device}, got {mask.device}; use {name}.to(data.device)"
        )
    return masks.fit(mask, data.shape)
